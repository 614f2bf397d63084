// SPDX-License-Identifier: Apache-2.0
// The ApiServer answers every HTTPS request: it finds out who asks and for what, checks that they
// may, hands the call to its handler, and leaves a trace of it in metrics and the audit log.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "apiserver/audit/audit_log.h"
#include "apiserver/authn/authenticator.h"
#include "apiserver/authn/request_limiter.h"
#include "apiserver/authz/authorizer.h"
#include "apiserver/fairness/request_gate.h"
#include "apiserver/http/call.h"
#include "apiserver/http/discovery.h"
#include "apiserver/http/guest_streams.h"
#include "apiserver/http/handlers.h"
#include "apiserver/http/openapi_documents.h"
#include "apiserver/http/placement_reviews.h"
#include "apiserver/http/request_metrics.h"
#include "apiserver/http/reviews.h"
#include "apiserver/http/usage_reads.h"
#include "apiserver/registry.h"
#include "base/metrics.h"
#include "client/advice/placement_advice.h"
#include "client/advice/pool_rooms.h"
#include "fleet/fleet.h"
#include "meta/scheme.h"
#include "net/http.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::apiserver {

class ApiServer {
 public:
  struct Deps {
    rt::Loop& loop;
    const meta::Scheme& scheme;
    Registry& registry;
    Authenticator& authenticator;
    Authorizer& authorizer;
    RequestLimiter& limiter;
    RequestGate& gate;
    AuditLog& audit;
    metrics::Registry& metrics;
    // Ok while the server can take writes; otherwise why not.
    std::function<Status()> readiness;
    // Answers where things would be placed; null on a server that places nothing.
    client::PlacementAdvice* advice = nullptr;
    // How much of each pool is promised, and what its host measures; null where there is none.
    const client::PoolRooms* rooms = nullptr;
    fleet::Fleet* fleet = nullptr;
  };
  explicit ApiServer(Deps deps);

  // Never fails: every error becomes an answer. Runs on the loop.
  rt::Task<net::HttpResponse> Handle(net::HttpRequest request);

 private:
  // Fills in the call from the request (query, info, identity) and checks its rights.
  Status Prepare(Call& call);
  rt::Task<Result<net::HttpResponse>> Dispatch(CallPtr call);
  rt::Task<Result<net::HttpResponse>> DispatchResource(CallPtr call);
  Result<net::HttpResponse> DispatchPath(const Call& call);
  // What every answer gets: headers, metrics, a line in the audit log.
  void Finish(const Call& call, Time start, net::HttpResponse& response);

  rt::Loop& loop_;
  const meta::Scheme& scheme_;
  Authenticator& authenticator_;
  Authorizer& authorizer_;
  RequestLimiter& limiter_;
  RequestGate& gate_;
  AuditLog& audit_;
  metrics::Registry& metrics_;
  std::function<Status()> readiness_;
  PlacementReviews placement_reviews_;
  UsageReads usage_reads_;
  Handlers handlers_;
  GuestStreams guest_streams_;
  Discovery discovery_;
  OpenApiDocuments openapi_;
  Reviews reviews_;
  RequestMetrics request_metrics_;
};

}  // namespace berth::apiserver
