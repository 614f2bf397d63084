// SPDX-License-Identifier: Apache-2.0
// A CallStream is one call on a connection, seen from either end: messages in, messages out, and
// how it ended. Shared by the connection, until the call is gone from it, and by whoever uses it.
// On-loop only.
//
//   open ──Finish (server), its answer (client), Abort, reset, connection lost──► over
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "net/call/message_assembler.h"
#include "net/rpc.h"
#include "rt/leaf.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "rt/waiters.h"

namespace berth::net {

class CallTransport;

class CallStream final : public MessageStream {
 public:
  // `id` is what the transport knows it by.
  CallStream(CallTransport& transport, int32_t id, RpcLimits limits);
  // REQUIRES: Detach() was called.
  ~CallStream() override;
  CallStream(const CallStream&) = delete;
  CallStream& operator=(const CallStream&) = delete;

  rt::Task<Result<std::optional<std::string>>> Read() override;
  [[nodiscard]] bool TryWrite(std::string message) override;
  rt::Task<Status> Write(std::string message) override;
  size_t outbox_bytes() const override { return outbox_bytes_; }
  void WritesDone() override;
  void Abort(Status why) override;

  // For whoever serves or calls.

  // A server's first word, without a message: clients may wait for it.
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

  // For the transport.

  int32_t id() const { return id_; }
  void Receive(std::string_view bytes);
  // The client's half is done.
  void ReceiveEnd();
  // The call is over; what has arrived can still be read.
  void EndWith(Status status);
  // The call is gone from the transport, which is not used any more. If it was not over, it ends
  // with `status`.
  void Detach(Status status);
  // Moves queued bytes into `into`: messages with their prefix.
  size_t Fill(std::span<char> into);
  bool is_drained() const { return outbox_.empty(); }
  // Nothing follows what is queued: on a server, its status is known if final_status() is set.
  bool writes_done() const { return writes_done_; }
  const std::optional<Status>& final_status() const { return final_status_; }
  // When the peer last took something, if it should take more.
  std::optional<Time> stuck_since() const;
  void WakeWriters() { writers_.CompleteAll(OkStatus()); }

 private:
  Status WhyNotWritable(size_t bytes) const;
  bool HasRoom(size_t bytes) const;
  void Queue(std::string message);
  void DropOutbox();
  void DropInbox();
  void CountHeld();
  void Consume(size_t bytes);
  void WakeReader();
  void Over();

  CallTransport* transport_;  // null once detached
  const int32_t id_;
  RpcLimits limits_;

  // The peer's words.
  MessageAssembler assembler_;
  std::list<std::string> inbox_;
  size_t inbox_bytes_ = 0;
  size_t held_ = 0;        // as counted by the transport
  size_t unconsumed_ = 0;  // received, and the window not yet given back
  bool peer_done_ = false;
  std::optional<Status> end_;  // set: over, and how
  rt::Leaf<Status>* reader_ = nullptr;

  // Ours.
  std::list<std::string> outbox_;
  size_t outbox_bytes_ = 0;  // prefixes included
  size_t front_sent_ = 0;    // of the first message and its prefix
  bool writes_done_ = false;
  std::optional<Status> final_status_;  // a server's
  Time progress_;                       // when the peer last took something
  rt::Waiters<Status> writers_;

  std::optional<rt::TimerId> deadline_;
  rt::Fn over_fn_;
};

}  // namespace berth::net
