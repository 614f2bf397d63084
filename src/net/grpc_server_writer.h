// SPDX-License-Identifier: Apache-2.0
// The server's end of a call that is answered with a stream.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <utility>

#include "base/result.h"
#include "net/grpc_order.h"
#include "net/grpc_server_reactor.h"
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
class WriteServerReactor final
    : public WritingReactor<grpc::ServerWriteReactor<Response>, Response>,
      private GrpcServerWriter<Response> {
 public:
  using Handler = std::function<rt::Task<Status>(GrpcServerWriter<Response>&)>;
  WriteServerReactor(rt::TaskScope& scope, Handler handler)
      : WritingReactor<grpc::ServerWriteReactor<Response>, Response>(scope.loop()),
        handler_(std::move(handler)) {
    this->Start(scope, "net.grpc.stream");
  }

 private:
  rt::Task<Status> Handle() override { return handler_(*this); }
  rt::Task<Status> Write(Response message) override { return this->Send(std::move(message)); }

  Handler handler_;
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
