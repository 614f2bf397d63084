// SPDX-License-Identifier: Apache-2.0
// An H2Stream is one call on an HTTP/2 connection, seen from either end: messages in, messages out,
// and how it ended. Shared by the connection, until HTTP/2 has closed the stream, and by whoever
// uses it. On-loop only.
//
//   open ──Finish (server), trailers (client), Abort, reset, connection lost──► over
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "net/h2/grpc_wire.h"
#include "net/rpc.h"
#include "rt/leaf.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "rt/waiters.h"

namespace berth::net {

class H2Connection;
struct H2Callbacks;  // of nghttp2

class H2Stream final : public MessageStream {
 public:
  H2Stream(H2Connection& connection, RpcLimits limits);
  ~H2Stream() override;
  H2Stream(const H2Stream&) = delete;
  H2Stream& operator=(const H2Stream&) = delete;

  rt::Task<Result<std::optional<std::string>>> Read() override;
  [[nodiscard]] bool TryWrite(std::string message) override;
  rt::Task<Status> Write(std::string message) override;
  size_t outbox_bytes() const override { return outbox_bytes_; }
  void WritesDone() override;
  void Abort(Status why) override;

  // A server's first word, without a message: clients may wait for it. No effect if it was said.
  void BeginAnswer();
  // A server's end of the call, after what is queued. No effect once the call is over.
  void Finish(const Status& status);
  // Aborts with Timeout then.
  void SetDeadline(Duration from_now);
  // Calls fn once, when the call is over before it was finished. An empty fn forgets it.
  void OnOver(rt::Fn fn) { over_fn_ = std::move(fn); }
  // A route's limits, once the call is known; what has come already is judged by them too.
  void SetLimits(const RpcLimits& limits);
  bool over() const { return end_.has_value(); }

 private:
  friend class H2Connection;
  friend struct H2Callbacks;

  // For the connection, which alone knows nghttp2.
  void Receive(std::string_view bytes);
  void ReceiveEnd();  // the peer's half is done
  void EndWith(Status status);
  void Close(Status status);  // HTTP/2 has closed the stream: it is gone from the connection
  // Moves queued bytes into `into`.
  size_t Fill(std::span<char> into);
  bool is_drained() const { return outbox_.empty(); }

  Status WhyNotWritable(size_t bytes) const;
  bool HasRoom(size_t bytes) const;
  void Queue(std::string message);
  void DropOutbox();
  void DropInbox();
  void CountHeld();
  void Consume(size_t bytes);
  void WakeReader();
  void Over();

  H2Connection* connection_;  // null once closed
  int32_t id_ = 0;
  RpcLimits limits_;

  // The peer's words.
  H2Fields fields_;  // of the header block in progress
  size_t fields_cost_ = 0;
  bool has_head_ = false;  // a client's: the head of the answer came
  MessageAssembler assembler_;
  std::list<std::string> inbox_;
  size_t inbox_bytes_ = 0;
  size_t held_ = 0;        // as counted by the connection
  size_t unconsumed_ = 0;  // received, and the window not yet given back
  bool peer_done_ = false;
  std::optional<Status> end_;  // set: over, and how
  rt::Leaf<Status>* reader_ = nullptr;

  // Ours.
  std::list<std::string> outbox_;
  size_t outbox_bytes_ = 0;  // prefixes included
  size_t front_sent_ = 0;    // of the first message and its prefix
  bool writes_done_ = false;
  bool head_sent_ = false;              // a server's: its answer has begun
  std::optional<Status> final_status_;  // a server's: what the trailers will say
  Time progress_;                       // when the peer last took something
  rt::Waiters<Status> writers_;

  std::optional<rt::TimerId> deadline_;
  rt::Fn over_fn_;
};

}  // namespace berth::net
