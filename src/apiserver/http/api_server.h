// SPDX-License-Identifier: Apache-2.0
// The ApiServer answers every HTTPS request: it finds out who asks and for what, checks that they
// may, hands the call to its handler, and leaves a trace of it in metrics and the audit log.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/audit/audit_log.h"
#include "apiserver/authn/authenticator.h"
#include "apiserver/authn/request_limiter.h"
#include "apiserver/authz/authorizer.h"
#include "apiserver/fairness/request_gate.h"
#include "apiserver/http/call.h"
#include "apiserver/http/discovery.h"
#include "apiserver/http/guest_streams.h"
#include "apiserver/http/handlers.h"
#include "apiserver/http/health.h"
#include "apiserver/http/hosts.h"
#include "apiserver/http/openapi_documents.h"
#include "apiserver/http/pass_on.h"
#include "apiserver/http/placement_reviews.h"
#include "apiserver/http/request_metrics.h"
#include "apiserver/http/reviews.h"
#include "apiserver/http/usage_reads.h"
#include "apiserver/registry.h"
#include "base/metrics.h"
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
    // Sets what is only known when it is looked at; called before the metrics are shown.
    std::function<void()> measure = {};
    // Ok while the server can take writes; otherwise why not.
    std::function<Status()> readiness;
    // What it has of hosts at first.
    Hosts hosts = {};
    // How the server that has them is reached, if another one may; empty: none may.
    PassOn::Connect connect = {};
  };
  explicit ApiServer(Deps deps);

  // Never fails: every error becomes an answer. Runs on the loop.
  rt::Task<net::HttpResponse> Handle(net::HttpRequest request);
  // From the next request on. Hosts that are there stay until the last request has ended.
  void UseHosts(Hosts hosts) { hosts_ = std::move(hosts); }
  // The authority has changed: the leader is asked over new connections.
  void ConnectAnew() { pass_on_.ConnectAnew(); }

 private:
  // Fills in the call from the request (query, info, identity) and checks its rights.
  Status Prepare(Call& call);
  rt::Task<Result<net::HttpResponse>> Dispatch(CallPtr call);
  rt::Task<Result<net::HttpResponse>> DispatchResource(CallPtr call);
  rt::Task<Result<net::HttpResponse>> DispatchDocument(CallPtr call);
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
  std::function<void()> measure_;
  Health health_;
  Hosts hosts_;
  PlacementReviews placement_reviews_;
  UsageReads usage_reads_;
  Handlers handlers_;
  GuestStreams guest_streams_;
  PassOn pass_on_;
  Discovery discovery_;
  OpenApiDocuments openapi_;
  Reviews reviews_;
  RequestMetrics request_metrics_;
};

}  // namespace berth::apiserver
