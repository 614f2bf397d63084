// SPDX-License-Identifier: Apache-2.0
// The SchedulingService is the controller side of the scheduler (berth/scheduler/v1): a third shell
// around the registry, beside HTTP and the in-process client. It keeps nothing of its own: what it
// is asked for becomes a Machine, and what it tells is read from machines and pools, so a restart
// loses nothing but connections.
//
// All functions run on the registry's loop.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apiserver/authn/request_limiter.h"
#include "apiserver/registry.h"
#include "apiserver/scheduling/door.h"
#include "apiserver/scheduling/workload_status.h"
#include "base/metrics.h"
#include "base/result.h"
#include "client/client.h"
#include "net/rpc.h"
#include "rt/task.h"

namespace berth::apiserver {

class SchedulingService {
 public:
  static constexpr std::string_view kName = "/berth.scheduler.v1.SchedulingService/";
  // At once: calls that change something, and streams. One machine's change looks at every stream
  // of its namespace, hence not more. A client with thousands of machines watches the cluster
  // instead of attaching to each.
  static constexpr RequestLimits kLimits{
      .short_total = 512, .short_per_user = 128, .stream_total = 1024, .stream_per_user = 256};

  // Everything outlives the service.
  struct Deps {
    rt::Loop& loop;
    const meta::Scheme& scheme;
    Registry& registry;
    Authenticator& authenticator;
    const Authorizer& authorizer;
    std::function<void(const AuditRecord&)> audit;  // may be empty
    metrics::Registry& metrics;
  };
  explicit SchedulingService(Deps deps, RequestLimits limits = kLimits);
  SchedulingService(const SchedulingService&) = delete;
  SchedulingService& operator=(const SchedulingService&) = delete;

  // The service outlives the server that has the routes.
  void AddRoutes(net::RpcRoutes& routes);

 private:
  // A write that a call asks for, with the right to it.
  struct Write {
    Caller caller;
    RequestInfo request;
    client::ObjectKey key;
    Time start;
    RequestLimiter::Ticket ticket;
  };
  using Answer = rt::Task<Result<std::string>>;

  rt::Task<Status> Schedule(net::RpcCall call, net::MessageStream& stream);
  rt::Task<Status> Attach(net::RpcCall call, net::MessageStream& stream);
  rt::Task<Status> Watch(net::RpcCall call, net::MessageStream& stream);
  Answer Update(net::RpcCall call, std::string request);
  Answer Stop(net::RpcCall call, std::string request);
  Answer Destroy(net::RpcCall call, std::string request);

  Result<Write> BeginWrite(const net::RpcCall& call,
                           std::string_view verb,
                           const client::ObjectKey& key);
  // The machine exists with the wanted content when it is ok.
  rt::Task<Status> Ensure(Write* write, meta::Object wanted);
  Answer Change(Write* write, Mutation mutation);
  rt::Task<Status> Tell(net::RpcCall call,
                        client::ObjectKey key,
                        std::vector<RequestInfo> rights,
                        net::MessageStream& stream);

  rt::Loop& loop_;
  const meta::Scheme& scheme_;
  Registry& registry_;
  Door door_;
  RequestLimiter limiter_;
};

}  // namespace berth::apiserver
