// SPDX-License-Identifier: Apache-2.0
// The Door of the service: who calls, and whether that one may. The same authenticator and the same
// authorizer as for HTTPS; what is written through it is audited the same way.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/audit/audit_record.h"
#include "apiserver/authn/authenticator.h"
#include "apiserver/authz/authorizer.h"
#include "apiserver/identity.h"
#include "apiserver/registry.h"
#include "base/result.h"
#include "client/client.h"
#include "meta/kind.h"
#include "meta/scheme.h"
#include "net/rpc.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::apiserver {

struct Caller {
  Identity identity;
  std::string impersonator;  // who really calls, "" without impersonation
  std::string address;
  std::string user_agent;
};

class Door {
 public:
  // Everything outlives the door.
  struct Deps {
    rt::Loop& loop;
    const meta::Scheme& scheme;
    Authenticator& authenticator;
    const Authorizer& authorizer;
    std::function<void(const AuditRecord&)> audit;
  };
  explicit Door(Deps deps) : deps_(std::move(deps)) {}

  // Unauthorized without a valid certificate or token; Forbidden for an impersonation that is not
  // granted.
  Result<Caller> Admit(const net::RpcCall& call) const;

  // What a call does to an object, or with verb `watch` to all of a namespace.
  RequestInfo RequestFor(const meta::KindInfo& kind,
                         std::string_view verb,
                         const client::ObjectKey& key,
                         std::string_view method) const;
  Status Check(const Caller& caller, const RequestInfo& request) const {
    return deps_.authorizer.Check(caller.identity, request);
  }
  // Whether the caller of a long stream would be let in once more.
  Status CheckAgain(const net::RpcCall& call, const std::vector<RequestInfo>& requests) const;

  // Runs what a caller opened until it ends, or until the caller's certificate or token is void:
  // then Unauthorized.
  rt::Task<Status> WhileKnown(net::RpcCall call, rt::Task<Status> work) const;

  // REQUIRES: Check(caller, request) is ok.
  WriteContext ContextFor(const Caller& caller, const RequestInfo& request) const;
  void Audit(const Caller& caller, const RequestInfo& request, const Status& status, Time start);

 private:
  const Deps deps_;
};

}  // namespace berth::apiserver
