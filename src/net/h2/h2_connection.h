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
#include "net/h2/flood_guard.h"
#include "net/h2/grpc_wire.h"
#include "net/h2/h2_limits.h"
#include "net/h2/h2_stream.h"
#include "net/rpc.h"
#include "net/stream.h"
#include "rt/child_context.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

struct nghttp2_session;

namespace berth::net {

class H2Connection {
 public:
  enum class Side : uint8_t { kClient, kServer };
  // A server is told of every call whose head has come, outside of nghttp2.
  using OnCall = std::function<void(std::shared_ptr<H2Stream>, H2Fields)>;

  H2Connection(Side side, std::unique_ptr<Stream> stream, const H2Limits& limits, OnCall on_call);
  // REQUIRES: Run() ended, or was never started.
  ~H2Connection();
  H2Connection(const H2Connection&) = delete;
  H2Connection& operator=(const H2Connection&) = delete;

  // Reads and writes until the connection is over, and says why. Streams are over then too.
  rt::Task<Status> Run();
  // Ok once the peer has said its settings; the reason if the connection ended before.
  rt::Task<Status> WaitReady();

  // A client's: begins a call. Unavailable if the connection takes no more.
  Result<std::shared_ptr<H2Stream>> Request(const H2Fields& fields, const RpcLimits& limits);
  // Takes no new calls; ends once those in progress have ended.
  void Drain();
  // Ends the connection now, telling the peer why; calls in progress are lost.
  void Terminate(uint32_t error_code, std::string_view text);
  void RefuseFlood() { Terminate(kEnhanceYourCalm, "too many control frames"); }
  bool usable() const;
  size_t open_streams() const { return streams_.size(); }

  RpcPeer peer() const;
  Stream& stream() { return *stream_; }
  rt::Loop& loop() const { return stream_->loop(); }
  Time Now() const { return stream_->loop().Now(); }

  static constexpr uint32_t kEnhanceYourCalm = 0xb;

 private:
  friend class H2Stream;
  friend struct H2Callbacks;

  // For H2Stream.
  void ResumeSending(H2Stream& stream);
  void SendAbort(H2Stream& stream, const Status& why);
  void GiveWindow(const H2Stream& stream, size_t bytes);
  bool HasRoomToQueue(size_t bytes);
  void CountQueued(int64_t bytes);
  void CountReceived(int64_t bytes);
  Status CheckReceived() const;

  // For the callbacks of nghttp2.
  bool OnFrameBegins(uint8_t type, size_t length, uint8_t flags);
  void OnHeadersBegin(int32_t id);
  void OnField(H2Stream& stream, std::string_view name, std::string_view value);
  void OnHeaders(H2Stream& stream, bool ends_stream);
  void OnAnswerHeaders(H2Stream& stream, bool ends_stream);
  void OnGoaway(uint32_t error_code, std::string_view text);
  void OnStreamClosed(int32_t id, uint32_t error_code);
  H2Stream* Find(int32_t id);

  void SubmitSettings();
  void SubmitHead(H2Stream& stream);
  void SubmitTrailers(H2Stream& stream, const Status& status);
  void Reset(const H2Stream& stream, uint32_t error_code);

  rt::Task<Status> ReadAll();
  rt::Task<Status> WriteAll();
  Status Receive(std::span<const char> bytes);
  void Gather(std::string* out);
  bool IsDone() const;
  void DispatchCalls();
  void WakeWriter();
  void Lose(Status why);
  void Tick();
  void TickStreams(Time now);
  void Ping(Time now);

  const Side side_;
  const H2Limits& limits_;
  const OnCall on_call_;
  std::unique_ptr<Stream> stream_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, std::shared_ptr<H2Stream>> streams_;
  std::vector<std::pair<std::shared_ptr<H2Stream>, H2Fields>> calls_;  // heads that just came
  FloodGuard flood_;
  size_t received_bytes_ = 0;
  size_t queued_bytes_ = 0;
  bool crowded_ = false;  // somebody waits for queued_bytes_ to fall

  bool draining_ = false;  // we or the peer want no new calls
  bool terminated_ = false;
  std::string peer_reason_;  // of its GOAWAY
  std::optional<Status> lost_;
  rt::Event ready_;
  rt::ChildContext* reading_ = nullptr;
  rt::Leaf<Status>* writer_ = nullptr;  // of the idle writer
  bool write_wanted_ = false;
  rt::Event written_;  // reset while a write is stuck

  rt::TimerId tick_;
  Time heard_;       // when the peer last sent something
  Time idle_since_;  // when the last call ended
  std::optional<Time> pinged_;
};

}  // namespace berth::net
