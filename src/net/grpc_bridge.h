// SPDX-License-Identifier: Apache-2.0
// The bridge between gRPC's callback API and tasks, for unary calls; streams are in
// grpc_client_stream.h and grpc_server_stream.h. gRPC's threads never touch a component: every
// reaction hops to the loop first.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "net/grpc_order.h"
#include "net/grpc_status.h"
#include "rt/child_context.h"
#include "rt/leaf.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::net {

struct GrpcCallOptions {
  Duration deadline = Duration::Seconds(10);
  std::map<std::string, std::string> metadata;
};

namespace internal {

// Passes the cancellation of a task to its call.
class CallCanceller final : private rt::CancelHook {
 public:
  CallCanceller(rt::Context& context, grpc::ClientContext& call) : context_(context), call_(call) {
    if (context.cancelled()) {
      call.TryCancel();
    } else {
      context.Register(*this);
    }
  }
  ~CallCanceller() { context_.Unregister(*this); }
  CallCanceller(const CallCanceller&) = delete;
  CallCanceller& operator=(const CallCanceller&) = delete;

 private:
  void Cancel() override { call_.TryCancel(); }
  rt::Context& context_;
  grpc::ClientContext& call_;
};

}  // namespace internal

// One unary call, as a task:
//
//   CO_TRY(Response response,
//          co_await CallUnary(stub->async(), &Service::StubInterface::async_interface::Get,
//          request));
//
// Timeout after the deadline, Cancelled with the task; in both cases gRPC is done with the call
// when the task ends.
template <class Async, class Request, class Response>
rt::Task<Result<Response>> CallUnary(std::type_identity_t<Async>* async,
                                     void (Async::*method)(grpc::ClientContext*,
                                                           const Request*,
                                                           Response*,
                                                           std::function<void(grpc::Status)>),
                                     Request request,
                                     GrpcCallOptions options = {}) {
  rt::Context& context = co_await rt::CurrentContext();
  rt::Loop& loop = context.loop();
  grpc::ClientContext call;
  call.set_deadline(GrpcDeadline(options.deadline));
  for (const auto& [name, value] : options.metadata) call.AddMetadata(name, value);
  Response response;
  rt::Leaf<Status, rt::Cancellable::kNo> done;
  // The frame lives until this has run: nothing but it completes the leaf.
  std::function<void(grpc::Status)> finish = [&loop, &done](const grpc::Status& status) {
    FromGrpcOf(&done);
    loop.Post("net.grpc",
              [&done, ours = FromGrpc(status)]() mutable { done.Complete(std::move(ours)); });
  };
  {
    const IntoGrpc into(&done);
    (async->*method)(&call, &request, &response, std::move(finish));
  }
  Status status;
  {
    const internal::CallCanceller canceller(context, call);
    status = co_await done;
  }
  if (!status.ok()) co_return status;
  co_return response;
}

namespace internal {

template <class Response>
class UnaryServerReactor final : public grpc::ServerUnaryReactor {
 public:
  using Start = std::function<rt::Task<Result<Response>>()>;
  UnaryServerReactor(rt::TaskScope& scope, Response* response, Start start)
      : loop_(scope.loop()), response_(response), start_(std::move(start)) {
    ToGrpcOf(this);
    loop_.Post("net.grpc", [this, &scope] { scope.Spawn("net.grpc.unary", Run()); });
  }

 private:
  rt::Task<Status> Run() {
    rt::ChildContext child(co_await rt::CurrentContext());
    child_ = &child;
    if (cancelled_) child.Cancel();
    rt::Task<Result<Response>> task = start_();
    Result<Response> result = co_await task.In(child.context());
    child_ = nullptr;
    if (result.ok()) *response_ = *std::move(result);
    {
      const IntoGrpc into(this);
      Finish(ToGrpc(result.status()));
    }
    co_return OkStatus();
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
  Response* response_;
  Start start_;
  bool cancelled_ = false;
  rt::ChildContext* child_ = nullptr;
};

}  // namespace internal

// Answers a unary method with a task on the scope's loop: return it from the method of a
// CallbackService. The request outlives the task. The task is cancelled when the client gives up.
// REQUIRES: the scope outlives the server (GrpcServer::Stop was awaited before it is closed).
template <class Request, class Response>
grpc::ServerUnaryReactor* ServeUnary(
    rt::TaskScope& scope,
    const Request* request,
    Response* response,
    std::function<rt::Task<Result<Response>>(const Request&)> handler) {
  FromGrpcOf(&kGrpcServerTag);
  return new internal::UnaryServerReactor<Response>(
      scope, response, [request, handler = std::move(handler)] { return handler(*request); });
}

}  // namespace berth::net
