// SPDX-License-Identifier: Apache-2.0
// The SchedulingService is the controller side of the scheduler (berth/scheduler/v1): a third shell
// around the registry, beside HTTP and the in-process client. It keeps nothing of its own: what it
// is asked for becomes a Machine, and what it tells is read from machines and pools, so a restart
// loses nothing but connections.
//
// All functions run on the registry's loop.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/audit/audit_log.h"
#include "apiserver/authn/request_limiter.h"
#include "apiserver/fairness/request_gate.h"
#include "apiserver/registry.h"
#include "apiserver/scheduling/cluster_feed.h"
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
  // At once: calls that change something, and streams. The gate seats 128 + 128 of all users but
  // administrators, whom 512 leaves as much room. One machine's change looks at every stream of its
  // namespace, hence not more of these: 8 callers * 128 = 1,024. A client with thousands of
  // machines watches the cluster instead of attaching to each.
  static constexpr RequestLimits kLimits{
      .short_total = 512, .short_per_user = 128, .stream_total = 1024, .stream_per_user = 128};

  // Everything outlives the service.
  struct Deps {
    rt::Loop& loop;
    const meta::Scheme& scheme;
    Registry& registry;
    Authenticator& authenticator;
    const Authorizer& authorizer;
    RequestGate& gate;  // that of HTTPS: whoever asks waits in one queue
    AuditLog& audit;
    metrics::Registry& metrics;
  };
  explicit SchedulingService(Deps deps, RequestLimits limits = kLimits);
  SchedulingService(const SchedulingService&) = delete;
  SchedulingService& operator=(const SchedulingService&) = delete;

  // The service outlives the server that has the routes.
  void AddRoutes(net::RpcRoutes& routes);

 private:
  // What a call holds while it is worked on.
  struct Place {
    RequestGate::Seat seat;
    RequestLimiter::Ticket ticket;
  };
  using StreamMethod = rt::Task<Status> (SchedulingService::*)(Visit*, net::MessageStream*);
  using Written = rt::Task<Result<proto::WorkloadStatus>>;
  using WriteMethod = Written (SchedulingService::*)(Visit*, std::string);

  // Each call is one visit, which the audit log hears of however it ends.
  rt::Task<Status> Serve(net::RpcCall call, net::MessageStream* stream, StreamMethod method);
  // A write is let in twice: before its request is read, and with it.
  rt::Task<Status> Admit(net::RpcCall call, std::string_view verb);
  rt::Task<Result<std::string>> Answer(net::RpcCall call, std::string request, WriteMethod method);

  rt::Task<Status> Schedule(Visit* visit, net::MessageStream* stream);
  rt::Task<Status> Attach(Visit* visit, net::MessageStream* stream);
  rt::Task<Status> Watch(Visit* visit, net::MessageStream* stream);
  Written Update(Visit* visit, std::string message);
  Written Stop(Visit* visit, std::string message);
  Written Destroy(Visit* visit, std::string message);

  // Waits for its turn among the requests that are like this one, over HTTPS as well.
  rt::Task<Result<Place>> TakePlace(const Visit* visit, RequestInfo like, RequestLength length);
  // The right to the visit's write, and the turn for it.
  rt::Task<Result<Place>> BeginWrite(const Visit* visit);
  // The machine exists with the wanted content when it is ok.
  rt::Task<Status> Ensure(Visit* visit, client::ObjectKey key, meta::Object wanted);
  Written Change(Visit* visit, client::ObjectKey key, Mutation mutation);
  // The stream of what the visit asks for, and how it begins is told. The seat is for the
  // beginning.
  rt::Task<Status> TellInstance(Visit* visit,
                                Place place,
                                client::ObjectKey key,
                                net::MessageStream* stream);
  rt::Task<Status> TellCluster(Visit* visit,
                               Place place,
                               ClusterFeed::Options options,
                               net::MessageStream* stream);

  rt::Loop& loop_;
  const meta::Scheme& scheme_;
  Registry& registry_;
  RequestGate& gate_;
  Door door_;
  RequestLimiter limiter_;
};

}  // namespace berth::apiserver
