// SPDX-License-Identifier: Apache-2.0
// An H2Connection speaks HTTP/2 over one Stream, as client or server: it turns frames into H2Stream
// events and back. One task reads, one writes; what is queued in one turn of the loop leaves in one
// write. On-loop only.
//
// Invariants
// 1. nghttp2 is entered by one of Receive, Gather and the submitting functions at a time; none of
//    them is called from inside a callback that forbids it, and user code never runs inside one.
// 2. What a peer can make grow is bounded by H2Limits.
// 3. A stream is in streams_ exactly while nghttp2 knows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/call/call_stream.h"
#include "net/call/call_transport.h"
#include "net/h2/flood_guard.h"
#include "net/h2/grpc_wire.h"
#include "net/h2/h2_limits.h"
#include "net/rpc.h"
#include "net/stream.h"
#include "rt/child_context.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

struct nghttp2_option;
struct nghttp2_session;
struct nghttp2_session_callbacks;

namespace berth::net {

class H2Connection final : public CallTransport {
 public:
  enum class Side : uint8_t { kClient, kServer };
  // A server is told of every call whose head has come, outside of nghttp2.
  using OnCall = std::function<void(std::shared_ptr<CallStream>, CallHead)>;

  H2Connection(Side side, std::unique_ptr<Stream> stream, const H2Limits& limits, OnCall on_call);
  // REQUIRES: Run() ended, or was never started.
  ~H2Connection() override;

  // Reads and writes until the connection is over, and says why. Streams are over then too.
  rt::Task<Status> Run();
  // Ok once the peer has said its settings; the reason if the connection ended before.
  rt::Task<Status> WaitReady();

  // A client's: begins a call. Unavailable if the connection takes no more.
  Result<std::shared_ptr<CallStream>> Request(const H2Fields& fields, const RpcLimits& limits);
  // Takes no new calls; ends once those in progress have ended.
  void Drain();
  // Ends the connection now, telling the peer why; calls in progress are lost. A peer that does not
  // take even that is not waited for.
  void Terminate(uint32_t error_code, std::string_view text);
  void RefuseFlood() { Terminate(kEnhanceYourCalm, "too many control frames"); }
  bool usable() const;
  size_t open_streams() const { return streams_.size(); }
  // When the last call ended, or the connection began. Of no meaning while there are calls.
  Time idle_since() const { return idle_since_; }

  RpcPeer peer() const;
  Stream& stream() { return *stream_; }
  rt::Loop& loop() const override { return stream_->loop(); }
  Time Now() const { return stream_->loop().Now(); }

  static constexpr uint32_t kEnhanceYourCalm = 0xb;

 private:
  friend struct H2Callbacks;
  friend struct H2Sending;

  struct FrameHead {
    uint8_t type = 0;
    uint8_t flags = 0;
    int32_t stream = 0;
    size_t length = 0;
  };
  // A call as HTTP/2 sees it.
  struct Entry {
    std::shared_ptr<CallStream> call;
    H2Fields fields;  // of the header block in progress
    size_t fields_cost = 0;
    size_t charged = 0;  // of a call that came in: its head, as received bytes
    Time begun;
    bool head_received = false;
    bool head_sent = false;  // a server's: its answer has begun
  };

  void ResumeSending(CallStream& call) override;
  void SendAbort(CallStream& call, const Status& why) override;
  void GiveWindow(CallStream& call, size_t bytes) override;
  void WakeWriters() override;

  // h2_receiving.cc: nghttp2's callbacks, and what they call.
  static const nghttp2_session_callbacks& Callbacks();
  static const nghttp2_option& Options();
  bool OnFrameBegins(const FrameHead& head);
  void OnHeadersBegin(int32_t id);
  void OnField(Entry& entry, std::string_view name, std::string_view value);
  void OnHeaders(Entry& entry, bool ends_stream);
  void Charge(Entry& entry);
  void OnAnswerHeaders(Entry& entry, const H2Fields& fields, bool ends_stream);
  void OnGoaway(uint32_t error_code, std::string_view text);
  void OnStreamClosed(int32_t id, uint32_t error_code);
  Entry* Find(int32_t id);

  // h2_sending.cc
  void SubmitHead(Entry& entry);
  void SubmitTrailers(Entry& entry, const Status& status);
  void Reset(int32_t id, uint32_t error_code);

  void SubmitSettings();
  rt::Task<Status> ReadAll();
  rt::Task<Status> WriteAll();
  Status Receive(std::span<const char> bytes);
  void Gather(std::string* out);
  bool IsDone() const;
  void DispatchCalls();
  void WakeWriter();
  void Lose(Status why);
  void Tick();
  void TickHeads(Time now);
  void TickStreams(Time now);
  void Ping(Time now);

  const Side side_;
  const H2Limits& limits_;
  const OnCall on_call_;
  std::unique_ptr<Stream> stream_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, Entry> streams_;
  std::vector<std::pair<std::shared_ptr<CallStream>, H2Fields>> calls_;  // heads that just came
  FloodGuard flood_;
  uint64_t received_total_ = 0;
  uint64_t accounted_bytes_ = 0;  // of frames that we know

  bool draining_ = false;  // we or the peer want no new calls
  bool terminated_ = false;
  std::string peer_reason_;  // of its GOAWAY
  std::optional<Status> lost_;
  rt::Event ready_;
  rt::ChildContext* reading_ = nullptr;
  rt::Leaf<Status>* writer_ = nullptr;  // of the idle writer
  bool write_wanted_ = false;
  rt::Event written_;  // reset while a write is stuck

  rt::TimerId tick_;  // once terminated: how long the peer has to hear of it
  Time heard_;        // when the peer last sent something
  Time idle_since_;   // when the last call ended
  std::optional<Time> pinged_;
};

}  // namespace berth::net
