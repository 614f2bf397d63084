// SPDX-License-Identifier: Apache-2.0
// What the services share: requests are checked, answers of runtimes become messages.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/result.h"
#include "iri/runtimes.h"
#include "iri/wire/wire.h"
#include "net/grpc_bridge.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace grpc {
class Service;
}

namespace berth::iri {

template <class Response>
rt::Task<Result<Response>> Refused(Status status) {
  co_return status;
}

// A call that answers nothing but that it was done.
template <class Response>
rt::Task<Result<Response>> Done(rt::Task<Status> task) {
  CO_TRY_STATUS(co_await task);
  co_return Response();
}

// A call whose answer `fill` writes into the message.
template <class Response, class T>
rt::Task<Result<Response>> Filled(rt::Task<Result<T>> task,
                                  std::function<void(const T&, Response&)> fill) {
  const Result<T> answer = co_await task;
  if (!answer.ok()) co_return answer.status();
  Response response;
  fill(*answer, response);
  co_return response;
}

template <class Response>
rt::Task<Result<Response>> VersionAnswer(rt::Task<Result<RuntimeVersion>> task) {
  return Filled<Response, RuntimeVersion>(std::move(task),
                                          [](const RuntimeVersion& version, Response& response) {
                                            response.set_runtime_name(version.runtime_name);
                                            response.set_runtime_version(version.runtime_version);
                                          });
}

template <class Response>
rt::Task<Result<Response>> EventsAnswer(rt::Task<Result<std::vector<Event>>> task) {
  return Filled<Response, std::vector<Event>>(
      std::move(task), [](const std::vector<Event>& events, Response& response) {
        for (const Event& event : events) *response.add_events() = ToProto(event);
      });
}

// ServeUnary, after the request was checked.
template <class Request, class Response, class Handler>
grpc::ServerUnaryReactor* Serve(rt::TaskScope& scope,
                                const Request* request,
                                Response* response,
                                Handler handler) {
  return net::ServeUnary<Request, Response>(
      scope, request, response, [handler = std::move(handler)](const Request& checked) {
        const Status status = CheckMessage(checked);
        if (!status.ok()) return Refused<Response>(status);
        return rt::Task<Result<Response>>(handler(checked));
      });
}

// The services; their calls run in `scope`, watches in `watches`.
std::unique_ptr<grpc::Service> NewMachineService(rt::TaskScope& scope, MachineRuntime& runtime);
std::unique_ptr<grpc::Service> NewVolumeService(rt::TaskScope& scope, VolumeRuntime& runtime);
std::unique_ptr<grpc::Service> NewBucketService(rt::TaskScope& scope, BucketRuntime& runtime);
std::unique_ptr<grpc::Service> NewHostService(rt::TaskScope& scope,
                                              rt::TaskScope& watches,
                                              HostRuntime& runtime);

}  // namespace berth::iri
