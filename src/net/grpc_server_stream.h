// SPDX-License-Identifier: Apache-2.0
// The server's end of a bidirectional call, for runtimes and for fakes of other people's servers.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "net/grpc_order.h"
#include "net/grpc_status.h"
#include "rt/child_context.h"
#include "rt/leaf.h"
#include "rt/scope.h"
#include "rt/task.h"
#include "rt/waiters.h"

namespace berth::net {

// What a handler talks to. One reader and one writer at a time.
template <class Request, class Response>
class GrpcServerStream {
 public:
  virtual ~GrpcServerStream() = default;
  // The next message; nullopt when the client has sent its last. Cancelled. A client that breaks
  // off may look like one that has sent its last: gRPC says both in the same words, and that the
  // call was cancelled only a moment later.
  virtual rt::Task<Result<std::optional<Request>>> Read() = 0;
  // Returns when gRPC has taken the message. Unavailable if the client is gone.
  virtual rt::Task<Status> Write(Response message) = 0;
};

namespace internal {

template <class Request, class Response>
class BidiServerReactor final : public grpc::ServerBidiReactor<Request, Response>,
                                private GrpcServerStream<Request, Response> {
 public:
  using Handler = std::function<rt::Task<Status>(GrpcServerStream<Request, Response>&)>;
  BidiServerReactor(rt::TaskScope& scope, Handler handler)
      : loop_(scope.loop()), handler_(std::move(handler)) {
    ToGrpcOf(this);
    loop_.Post("net.grpc", [this, &scope] { scope.Spawn("net.grpc.bidi", Run()); });
  }

 private:
  rt::Task<Status> Run() {
    rt::ChildContext child(co_await rt::CurrentContext());
    child_ = &child;
    if (cancelled_) child.Cancel();
    rt::Task<Status> task = handler_(*this);
    const Status status = co_await task.In(child.context());
    child_ = nullptr;
    {
      const IntoGrpc into(this);
      this->Finish(ToGrpc(status));
    }
    co_return OkStatus();
  }

  rt::Task<Result<std::optional<Request>>> Read() override {
    while (!ready_.has_value() && !ended_) {
      if (!std::exchange(read_started_, true)) {
        const IntoGrpc into(this);
        this->StartRead(&incoming_);
      }
      CO_TRY_STATUS(co_await readers_.Wait());
    }
    co_return std::exchange(ready_, std::nullopt);
  }

  rt::Task<Status> Write(Response message) override {
    CHECK(!write_started_) << "one writer at a time";
    if (write_broken_) co_return Unavailable("the client is gone");
    write_started_ = true;
    outgoing_ = std::move(message);
    // Not to be cut short: gRPC refers to the message until it is taken.
    rt::Leaf<Status, rt::Cancellable::kNo> taken;
    writer_ = &taken;
    {
      const IntoGrpc into(this);
      this->StartWrite(&outgoing_);
    }
    Status status = co_await taken;
    writer_ = nullptr;
    write_started_ = false;
    co_return status;
  }

  void OnReadDone(bool ok) override {
    FromGrpcOf(this);
    loop_.Post("net.grpc.read", [this, ok] {
      read_started_ = false;
      if (ok) {
        ready_ = std::move(incoming_);
      } else {
        ended_ = true;
      }
      readers_.CompleteAll(OkStatus());
    });
  }
  void OnWriteDone(bool ok) override {
    FromGrpcOf(this);
    loop_.Post("net.grpc.write", [this, ok] {
      write_broken_ = !ok;
      writer_->Complete(ok ? OkStatus() : Unavailable("the client is gone"));
    });
  }
  void OnCancel() override {
    FromGrpcOf(this);
    loop_.Post("net.grpc.cancel", [this] {
      cancelled_ = true;
      if (child_ != nullptr) child_->Cancel();
    });
  }
  // The last reaction: what it posts runs after all that others posted.
  void OnDone() override {
    FromGrpcOf(this);
    loop_.Post("net.grpc.done", [this] { delete this; });
  }

  rt::Loop& loop_;
  Handler handler_;
  bool cancelled_ = false;
  rt::ChildContext* child_ = nullptr;
  bool read_started_ = false;
  bool ended_ = false;
  Request incoming_;  // gRPC's while read_started_
  std::optional<Request> ready_;
  rt::Waiters<Status> readers_;
  bool write_started_ = false;
  bool write_broken_ = false;
  Response outgoing_;  // gRPC's while write_started_
  rt::Leaf<Status, rt::Cancellable::kNo>* writer_ = nullptr;
};

}  // namespace internal

// Answers a bidirectional method with a task on the scope's loop: return it from the method of a
// CallbackService. The handler's status ends the call; it is cancelled when the client gives up.
// REQUIRES: as ServeUnary.
template <class Request, class Response>
grpc::ServerBidiReactor<Request, Response>* ServeBidi(
    rt::TaskScope& scope,
    std::function<rt::Task<Status>(GrpcServerStream<Request, Response>&)> handler) {
  FromGrpcOf(&kGrpcServerTag);
  return new internal::BidiServerReactor<Request, Response>(scope, std::move(handler));
}

}  // namespace berth::net
