// SPDX-License-Identifier: Apache-2.0
// A GrpcClientReader is the client's end of a call that the server answers with a stream.
//
//   GrpcClientReader<Change> reader(loop, [&](auto* context, auto* reactor) {
//     stub->async()->Watch(context, &request, reactor);
//   });
//   CO_TRY(std::optional<Change> change, co_await reader.Read());   // nullopt: the server is done
//   CO_TRY_STATUS(co_await reader.Close());
//
// Invariants: 1. One StartRead at a time: gRPC aborts the process otherwise. 2. A message is read
// from gRPC only when a task asks for it: the server feels a slow reader.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <functional>
#include <optional>
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

template <class Response>
class GrpcClientReader {
 public:
  using Reactor = grpc::ClientReadReactor<Response>;
  using Start = std::function<void(grpc::ClientContext*, Reactor*)>;

  GrpcClientReader(rt::Loop& loop, const Start& start) : loop_(loop), reactor_(*this) {
    const IntoGrpc into(&reactor_);
    start(&context_, &reactor_);
    reactor_.AddHold();  // we start reads outside of reactions
    reactor_.StartCall();
  }
  // REQUIRES: Close() has been awaited.
  ~GrpcClientReader() { CHECK(done_) << "a gRPC stream is destroyed before it was closed"; }
  GrpcClientReader(const GrpcClientReader&) = delete;
  GrpcClientReader& operator=(const GrpcClientReader&) = delete;

  // The next message; nullopt when the server ended the call well, its error otherwise. A cancelled
  // read loses nothing. One reader at a time.
  rt::Task<Result<std::optional<Response>>> Read() {
    while (!ready_.has_value() && !done_) {
      if (!read_started_ && !ended_) {
        read_started_ = true;
        const IntoGrpc into(&reactor_);
        reactor_.StartRead(&incoming_);
      }
      CO_TRY_STATUS(co_await readers_.Wait());
    }
    if (ready_.has_value()) co_return std::exchange(ready_, std::nullopt);
    if (!final_.ok()) co_return final_;
    co_return std::optional<Response>();
  }

  // Cancels the call and waits until gRPC is done with it, whatever happens to the caller. Always
  // ok. Idempotent.
  rt::Task<Status> Close() {
    context_.TryCancel();
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

 private:
  // What gRPC calls, on its own threads.
  class OnGrpcThreads final : public Reactor {
   public:
    explicit OnGrpcThreads(GrpcClientReader& reader) : reader_(reader) {}
    void OnReadDone(bool ok) override {
      FromGrpcOf(this);
      reader_.loop_.Post("net.grpc.read", [&r = reader_, ok] { r.ReadEnded(ok); });
    }
    void OnDone(const grpc::Status& status) override {
      FromGrpcOf(this);
      reader_.loop_.Post("net.grpc.done",
                         [&r = reader_, ours = FromGrpc(status)] { r.CallEnded(ours); });
    }

   private:
    GrpcClientReader& reader_;
  };

  void ReadEnded(bool ok) {
    read_started_ = false;
    if (ok) {
      ready_ = std::move(incoming_);
      incoming_ = Response();
    } else {
      ended_ = true;
      ReleaseHold();
    }
    readers_.CompleteAll(OkStatus());
  }
  // The last reaction: all that others posted has run.
  void CallEnded(const Status& status) {
    done_ = true;
    final_ = status;
    readers_.CompleteAll(OkStatus());
    if (closer_ != nullptr) closer_->Complete(OkStatus());
  }
  void ReleaseHold() {
    if (!std::exchange(held_, false)) return;
    const IntoGrpc into(&reactor_);
    reactor_.RemoveHold();
  }

  rt::Loop& loop_;
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
};

}  // namespace berth::net
