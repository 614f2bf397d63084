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
#include "net/grpc_server_reactor.h"
#include "net/grpc_status.h"
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
class UnaryServerReactor final : public LoopReactor<grpc::ServerUnaryReactor> {
 public:
  using Answer = std::function<rt::Task<Result<Response>>()>;
  UnaryServerReactor(rt::TaskScope& scope, Response* response, Answer answer)
      : LoopReactor(scope.loop()), response_(response), answer_(std::move(answer)) {
    Start(scope, "net.grpc.unary");
  }

 private:
  rt::Task<Status> Handle() override {
    rt::Task<Result<Response>> task = answer_();
    Result<Response> result = co_await task;
    if (!result.ok()) co_return result.status();
    *response_ = *std::move(result);
    co_return OkStatus();
  }

  Response* response_;
  Answer answer_;
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
