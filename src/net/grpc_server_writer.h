// SPDX-License-Identifier: Apache-2.0
// The server's end of a call that is answered with a stream.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "net/grpc_order.h"
#include "net/grpc_status.h"
#include "rt/child_context.h"
#include "rt/leaf.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::net {

// What a handler talks to. One writer at a time.
template <class Response>
class GrpcServerWriter {
 public:
  virtual ~GrpcServerWriter() = default;
  // Returns when gRPC has taken the message. Unavailable if the client is gone.
  virtual rt::Task<Status> Write(Response message) = 0;
};

namespace internal {

template <class Response>
class WriteServerReactor final : public grpc::ServerWriteReactor<Response>,
                                 private GrpcServerWriter<Response> {
 public:
  using Handler = std::function<rt::Task<Status>(GrpcServerWriter<Response>&)>;
  WriteServerReactor(rt::TaskScope& scope, Handler handler)
      : loop_(scope.loop()), handler_(std::move(handler)) {
    ToGrpcOf(this);
    loop_.Post("net.grpc", [this, &scope] { scope.Spawn("net.grpc.stream", Run()); });
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

  rt::Task<Status> Write(Response message) override {
    CHECK(writer_ == nullptr) << "one writer at a time";
    if (broken_) co_return Unavailable("the client is gone");
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
    co_return status;
  }

  void OnWriteDone(bool ok) override {
    FromGrpcOf(this);
    loop_.Post("net.grpc.write", [this, ok] {
      broken_ = !ok;
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
  bool broken_ = false;
  Response outgoing_;  // gRPC's while writer_ is set
  rt::Leaf<Status, rt::Cancellable::kNo>* writer_ = nullptr;
};

}  // namespace internal

// Answers a method with a server stream by a task on the scope's loop: return it from the method of
// a CallbackService. The request outlives the task. The handler's status ends the call; it is
// cancelled when the client gives up. REQUIRES: as ServeUnary.
template <class Response>
grpc::ServerWriteReactor<Response>* ServeWriter(
    rt::TaskScope& scope, std::function<rt::Task<Status>(GrpcServerWriter<Response>&)> handler) {
  FromGrpcOf(&kGrpcServerTag);
  return new internal::WriteServerReactor<Response>(scope, std::move(handler));
}

}  // namespace berth::net
