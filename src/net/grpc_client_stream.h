// SPDX-License-Identifier: Apache-2.0
// A GrpcClientStream is the client's end of a bidirectional call, for tasks of one loop.
//
//   GrpcClientStream<Req, Resp> stream(loop, [&](auto* context, auto* reactor) {
//     stub->async()->Watch(context, reactor);
//   });
//   CO_TRY_STATUS(co_await stream.Write(request));
//   CO_TRY(std::optional<Resp> response, co_await stream.Read());   // nullopt: the server is done
//   CO_TRY_STATUS(co_await stream.Close());
//
// Invariants: 1. One StartWrite and one StartRead at a time: gRPC aborts the process otherwise.
// 2. At most `outbox_max` messages wait to be sent. 3. A message is read from gRPC only when a task
// asks for it: the server feels a slow reader.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "net/grpc_order.h"
#include "net/grpc_status.h"
#include "rt/leaf.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "rt/waiters.h"

namespace berth::net {

struct GrpcStreamOptions {
  size_t outbox_max = 64;
  std::optional<Duration> deadline;  // of the whole call
  std::map<std::string, std::string> metadata;
};

template <class Request, class Response>
class GrpcClientStream {
 public:
  using Reactor = grpc::ClientBidiReactor<Request, Response>;
  using Start = std::function<void(grpc::ClientContext*, Reactor*)>;

  GrpcClientStream(rt::Loop& loop, const Start& start, GrpcStreamOptions options = {})
      : loop_(loop), options_(std::move(options)), reactor_(*this) {
    if (options_.deadline.has_value()) context_.set_deadline(GrpcDeadline(*options_.deadline));
    for (const auto& [name, value] : options_.metadata) context_.AddMetadata(name, value);
    const IntoGrpc into(&reactor_);
    start(&context_, &reactor_);
    reactor_.AddHold();  // we start reads and writes outside of reactions
    reactor_.StartCall();
  }
  // REQUIRES: Finish() or Close() has been awaited.
  ~GrpcClientStream() { CHECK(done_) << "a gRPC stream is destroyed before it was closed"; }
  GrpcClientStream(const GrpcClientStream&) = delete;
  GrpcClientStream& operator=(const GrpcClientStream&) = delete;

  // The next message; nullopt when the server ended the call well, its error otherwise. A cancelled
  // read loses nothing. One reader at a time.
  rt::Task<Result<std::optional<Response>>> Read() {
    while (!ready_.has_value() && !ended_) {
      if (!read_started_) {
        read_started_ = true;
        const IntoGrpc into(&reactor_);
        reactor_.StartRead(&incoming_);
      }
      CO_TRY_STATUS(co_await readers_.Wait());
    }
    if (ready_.has_value()) co_return std::exchange(ready_, std::nullopt);
    if (!done_) CO_TRY_STATUS(co_await readers_.Wait());
    if (!final_.ok()) co_return final_;
    co_return std::optional<Response>();
  }

  // Queues a message; waits while the outbox is full. Unavailable once the call is broken or our
  // side is closed.
  rt::Task<Status> Write(Request message) {
    while (can_write() && outbox_.size() >= options_.outbox_max) {
      CO_TRY_STATUS(co_await writers_.Wait());
    }
    if (!can_write()) co_return Broken();
    outbox_.push_back(std::move(message));
    Pump();
    co_return OkStatus();
  }
  // False if the outbox is full or the call is broken; the message is dropped then.
  [[nodiscard]] bool TryWrite(Request message) {
    if (!can_write() || outbox_.size() >= options_.outbox_max) return false;
    outbox_.push_back(std::move(message));
    Pump();
    return true;
  }
  // No more messages from us, after those in the outbox. Idempotent.
  void WritesDone() {
    half_closed_ = true;
    Pump();
  }

  // WritesDone, then reads and drops what the server still sends; its final status.
  rt::Task<Status> Finish() {
    WritesDone();
    for (;;) {
      Result<std::optional<Response>> message = co_await Read();
      if (!message.ok()) co_return message.status();
      if (!message->has_value()) co_return OkStatus();
    }
  }
  // Cancels the call and waits until gRPC is done with it, whatever happens to the caller. Always
  // ok.
  rt::Task<Status> Close() {
    context_.TryCancel();
    broken_ = true;
    ReleaseHold();
    if (!done_) {
      CHECK(closer_ == nullptr) << "a stream is closed by one task";
      rt::Leaf<Status, rt::Cancellable::kNo> done;
      closer_ = &done;
      const Status closed = co_await done;
      closer_ = nullptr;
      CHECK(closed.ok());
    }
    co_return OkStatus();
  }

  size_t outbox_size() const { return outbox_.size(); }
  bool done() const { return done_; }

 private:
  // What gRPC calls, on its own threads.
  class OnGrpcThreads final : public Reactor {
   public:
    explicit OnGrpcThreads(GrpcClientStream& stream) : stream_(stream) {}
    void OnReadDone(bool ok) override {
      FromGrpcOf(this);
      stream_.loop_.Post("net.grpc.read", [&s = stream_, ok] { s.ReadEnded(ok); });
    }
    void OnWriteDone(bool ok) override {
      FromGrpcOf(this);
      stream_.loop_.Post("net.grpc.write", [&s = stream_, ok] { s.WriteEnded(ok); });
    }
    void OnDone(const grpc::Status& status) override {
      FromGrpcOf(this);
      stream_.loop_.Post("net.grpc.done",
                         [&s = stream_, ours = FromGrpc(status)] { s.CallEnded(ours); });
    }

   private:
    GrpcClientStream& stream_;
  };

  bool can_write() const { return !broken_ && !half_closed_ && !done_; }
  Status Broken() const {
    if (done_ && !final_.ok()) return final_;
    return Unavailable("the stream takes no more messages");
  }

  void Pump() {
    if (write_started_ || broken_ || done_) return;
    if (!outbox_.empty()) {
      write_started_ = true;
      const IntoGrpc into(&reactor_);
      reactor_.StartWrite(&outbox_.front());
    } else if (half_closed_ && !std::exchange(writes_done_sent_, true)) {
      const IntoGrpc into(&reactor_);
      reactor_.StartWritesDone();
    }
  }
  void ReadEnded(bool ok) {
    read_started_ = false;
    if (ok) {
      ready_ = std::move(incoming_);
      incoming_ = Response();
    } else {
      ended_ = true;
      broken_ = true;
      ReleaseHold();
    }
    readers_.CompleteAll(OkStatus());
    if (!ok) writers_.CompleteAll(OkStatus());
  }
  void WriteEnded(bool ok) {
    write_started_ = false;
    outbox_.pop_front();
    if (!ok) broken_ = true;
    Pump();
    if (ok) {
      writers_.CompleteFirst(OkStatus());
    } else {
      writers_.CompleteAll(OkStatus());
    }
  }
  // The last reaction: all that others posted has run.
  void CallEnded(const Status& status) {
    done_ = true;
    ended_ = true;
    final_ = status;
    readers_.CompleteAll(OkStatus());
    writers_.CompleteAll(OkStatus());
    if (closer_ != nullptr) closer_->Complete(OkStatus());
  }
  void ReleaseHold() {
    if (!std::exchange(held_, false)) return;
    const IntoGrpc into(&reactor_);
    reactor_.RemoveHold();
  }

  rt::Loop& loop_;
  const GrpcStreamOptions options_;
  grpc::ClientContext context_;
  OnGrpcThreads reactor_;
  bool held_ = true;
  bool done_ = false;
  Status final_;
  rt::Leaf<Status, rt::Cancellable::kNo>* closer_ = nullptr;

  bool read_started_ = false;
  bool ended_ = false;  // the server sends no more
  Response incoming_;   // gRPC's while read_started_
  std::optional<Response> ready_;
  rt::Waiters<Status> readers_;

  bool write_started_ = false;
  bool broken_ = false;
  bool half_closed_ = false;
  bool writes_done_sent_ = false;
  std::deque<Request> outbox_;  // the first one is gRPC's while write_started_
  rt::Waiters<Status> writers_;
};

}  // namespace berth::net
