// SPDX-License-Identifier: Apache-2.0
// The server's end of a bidirectional call, for runtimes and for fakes of other people's servers.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <optional>
#include <utility>

#include "base/result.h"
#include "net/grpc_order.h"
#include "net/grpc_server_reactor.h"
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
class BidiServerReactor final
    : public WritingReactor<grpc::ServerBidiReactor<Request, Response>, Response>,
      private GrpcServerStream<Request, Response> {
 public:
  using Handler = std::function<rt::Task<Status>(GrpcServerStream<Request, Response>&)>;
  BidiServerReactor(rt::TaskScope& scope, Handler handler)
      : WritingReactor<grpc::ServerBidiReactor<Request, Response>, Response>(scope.loop()),
        handler_(std::move(handler)) {
    this->Start(scope, "net.grpc.bidi");
  }

 private:
  rt::Task<Status> Handle() override { return handler_(*this); }
  rt::Task<Status> Write(Response message) override { return this->Send(std::move(message)); }
  rt::Task<Result<std::optional<Request>>> Read() override {
    while (!ready_.has_value() && !ended_) {
      if (!std::exchange(read_started_, true)) {
        const IntoGrpc into(this->tag());
        this->StartRead(&incoming_);
      }
      CO_TRY_STATUS(co_await readers_.Wait());
    }
    co_return std::exchange(ready_, std::nullopt);
  }

  void OnReadDone(bool ok) override {
    FromGrpcOf(this->tag());
    this->loop().Post("net.grpc.read", [this, ok] {
      read_started_ = false;
      if (ok) {
        ready_ = std::move(incoming_);
      } else {
        ended_ = true;
      }
      readers_.CompleteAll(OkStatus());
    });
  }

  Handler handler_;
  bool read_started_ = false;
  bool ended_ = false;
  Request incoming_;  // gRPC's while read_started_
  std::optional<Request> ready_;
  rt::Waiters<Status> readers_;
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
