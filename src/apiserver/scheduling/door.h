// SPDX-License-Identifier: Apache-2.0
// The Door of the service: who calls, whether that one may, and what is told of it. The same
// authenticator, authorizer and audit log as for HTTPS.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/audit/audit_log.h"
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

namespace google::protobuf {
class Message;
}

namespace berth::apiserver {

struct Caller {
  Identity identity;
  std::string impersonator;  // who really calls, "" without impersonation
  std::string address;
  std::string user_agent;
};

// A Visit is one call on its way through the service: what was sent, who sent it, and what the
// audit log has to be told about it.
struct Visit {
  net::RpcCall call;
  std::string id;
  Time start;
  Caller caller;
  // What the call asks for and the audit log does not know yet: a line for each. Its path only, as
  // long as nobody knows who calls.
  std::vector<RequestInfo> requests;
  // What is told of its body, where a policy asks for that: JSON or YAML.
  std::string sent;
  int code = 200;  // if all is well
};

class Door {
 public:
  // Everything outlives the door.
  struct Deps {
    rt::Loop& loop;
    const meta::Scheme& scheme;
    Authenticator& authenticator;
    const Authorizer& authorizer;
    AuditLog& audit;
  };
  explicit Door(Deps deps) : deps_(deps) {}

  // A visit begins with the call, before anything of it is read.
  Visit Receive(net::RpcCall call) const;
  // Finds out who calls, for what so far only by kind and verb. Unauthorized without a valid
  // certificate or token; Forbidden for an impersonation that is not granted. The connection is
  // told whose credentials it has, whoever is impersonated.
  Status Admit(Visit& visit, const meta::KindInfo& kind, std::string_view verb) const;

  // What a call does to an object, or with verb `watch` to all of a namespace.
  RequestInfo RequestFor(const meta::KindInfo& kind,
                         std::string_view verb,
                         const client::ObjectKey& key,
                         std::string_view method) const;
  // Whether the caller may do all that the visit asks for.
  Status Check(const Visit& visit) const;
  // Whether the caller of a long stream would be let in once more.
  Status CheckAgain(const net::RpcCall& call, const std::vector<RequestInfo>& requests) const;

  // Runs what a caller opened until it ends, or until the caller's certificate or token is void:
  // then Unauthorized.
  rt::Task<Status> WhileKnown(net::RpcCall call, rt::Task<Status> work) const;

  // Of the first of the visit's requests. REQUIRES: Check(visit) is ok.
  WriteContext ContextFor(const Visit& visit) const;

  // Keeps what the call's message says for the audit log, if that will be told.
  void Note(Visit& visit, const google::protobuf::Message& message) const;
  // Tells the audit log how the visit's requests ended, each as a request over HTTPS is told, and
  // forgets them. The answer is null for an error, and for a stream, which has begun.
  void Tell(Visit& visit, const Status& status, const google::protobuf::Message* answer) const;

 private:
  Result<Identity> Authenticate(const net::RpcCall& call) const;
  // The caller becomes whom it asks to be, if it does.
  Status BecomeImpersonated(const net::RpcCall& call, Caller& caller) const;
  AuditLevel LevelOf(const Visit& visit, const RequestInfo& request) const;

  const Deps deps_;
};

}  // namespace berth::apiserver
