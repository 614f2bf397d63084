// SPDX-License-Identifier: Apache-2.0
// What the server's ends of all calls have in common. gRPC's threads never touch a handler: every
// reaction hops to the loop first.
#pragma once

#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "net/grpc_order.h"
#include "net/grpc_status.h"
#include "rt/child_context.h"
#include "rt/leaf.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::net::internal {

// Runs a handler as a task that is cancelled when the client gives up, and goes with gRPC's last
// reaction. Reactor is one of gRPC's.
template <class Reactor>
class LoopReactor : public Reactor {
 protected:
  explicit LoopReactor(rt::Loop& loop) : loop_(loop) {}

  // The last thing in the constructor of the final class: the loop may be there before it returns.
  void Start(rt::TaskScope& scope, std::string_view name) {
    ToGrpcOf(tag());
    loop_.Post("net.grpc", [this, &scope, name] { scope.Spawn(name, Run()); });
  }
  // The handler; its status ends the call.
  virtual rt::Task<Status> Handle() = 0;

  rt::Loop& loop() { return loop_; }
  // One for all that is handed to gRPC and comes back.
  const void* tag() const { return this; }

 private:
  rt::Task<Status> Run() {
    rt::ChildContext child(co_await rt::CurrentContext());
    child_ = &child;
    if (cancelled_) child.Cancel();
    rt::Task<Status> task = Handle();
    const Status status = co_await task.In(child.context());
    child_ = nullptr;
    {
      const IntoGrpc into(tag());
      this->Finish(ToGrpc(status));
    }
    co_return OkStatus();
  }

  void OnCancel() override {
    FromGrpcOf(tag());
    loop_.Post("net.grpc.cancel", [this] {
      cancelled_ = true;
      if (child_ != nullptr) child_->Cancel();
    });
  }
  // The last reaction: what it posts runs after all that others posted.
  void OnDone() override {
    FromGrpcOf(tag());
    loop_.Post("net.grpc.done", [this] { delete this; });
  }

  rt::Loop& loop_;
  bool cancelled_ = false;
  rt::ChildContext* child_ = nullptr;
};

// One that answers with a stream. One writer at a time.
template <class Reactor, class Response>
class WritingReactor : public LoopReactor<Reactor> {
 protected:
  using LoopReactor<Reactor>::LoopReactor;

  // Returns when gRPC has taken the message. Unavailable if the client is gone.
  rt::Task<Status> Send(Response message) {
    CHECK(writer_ == nullptr) << "one writer at a time";
    if (broken_) co_return Unavailable("the client is gone");
    outgoing_ = std::move(message);
    // Not to be cut short: gRPC refers to the message until it is taken.
    rt::Leaf<Status, rt::Cancellable::kNo> taken;
    writer_ = &taken;
    {
      const IntoGrpc into(this->tag());
      this->StartWrite(&outgoing_);
    }
    Status status = co_await taken;
    writer_ = nullptr;
    co_return status;
  }

 private:
  void OnWriteDone(bool ok) override {
    FromGrpcOf(this->tag());
    this->loop().Post("net.grpc.write", [this, ok] {
      broken_ = !ok;
      writer_->Complete(ok ? OkStatus() : Unavailable("the client is gone"));
    });
  }

  bool broken_ = false;
  Response outgoing_;  // gRPC's while writer_ is set
  rt::Leaf<Status, rt::Cancellable::kNo>* writer_ = nullptr;
};

}  // namespace berth::net::internal
