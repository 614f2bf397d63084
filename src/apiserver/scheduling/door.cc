// SPDX-License-Identifier: Apache-2.0
#include "apiserver/scheduling/door.h"

#include <utility>

#include "apiserver/authn/credential_hold.h"
#include "apiserver/authz/impersonation.h"
#include "apiserver/authz/write_guards.h"
#include "apiserver/registry/field_ownership.h"
#include "base/strings.h"
#include "base/uid.h"
#include "net/status_map.h"
#include "rt/child_context.h"

namespace berth::apiserver {
namespace {

std::string_view Metadata(const net::RpcCall& call, std::string_view name) {
  const auto found = call.metadata.find(name);
  return found == call.metadata.end() ? std::string_view() : std::string_view(found->second);
}

net::Peer PeerOf(const net::RpcCall& call) {
  net::Peer peer{.address = call.peer.address, .certificate_der = {}};
  // The listener lets hosts in with expired certificates, to renew them. That is for hosts.
  if (call.peer.certificate_state == net::CertificateState::kValid) {
    peer.certificate_der = call.peer.certificate_der;
  }
  return peer;
}

}  // namespace

Result<Caller> Door::Admit(const net::RpcCall& call) const {
  const net::Peer peer = PeerOf(call);
  Caller caller{.identity = {},
                .impersonator = {},
                .address = call.peer.address,
                .user_agent = std::string(Metadata(call, "user-agent"))};
  TRY(caller.identity,
      deps_.authenticator.Authenticate(
          peer, Metadata(call, "authorization"), call.method, deps_.loop.WallNow()));
  std::vector<net::Header> headers;
  for (const auto& [name, value] : call.metadata) {
    // What was sent several times is one value here, with commas between; no group has one.
    const bool is_list = name == "impersonate-group" || name.starts_with("impersonate-extra-");
    if (!is_list) {
      headers.push_back({name, value});
      continue;
    }
    for (const std::string_view part : Split(value, ',')) {
      headers.push_back({name, std::string(Trim(part))});
    }
  }
  TRY(auto impersonated, Impersonate(deps_.authorizer, caller.identity, headers));
  if (impersonated) {
    caller.impersonator = std::exchange(caller.identity, *std::move(impersonated)).user;
  }
  return caller;
}

RequestInfo Door::RequestFor(const meta::KindInfo& kind,
                             std::string_view verb,
                             const client::ObjectKey& key,
                             std::string_view method) const {
  RequestInfo request;
  request.is_resource = true;
  request.verb = verb;
  request.path = method;
  request.group = deps_.scheme.GroupOf(kind);
  request.requested_group = request.group;
  request.version = kind.version;
  request.namespace_ = key.namespace_;
  request.resource = kind.plural;
  request.name = key.name;
  if (verb == "watch" && !key.name.empty()) request.field_selector = "metadata.name=" + key.name;
  request.kind = &kind;
  return request;
}

Status Door::CheckAgain(const net::RpcCall& call, const std::vector<RequestInfo>& requests) const {
  TRY(const Caller caller, Admit(call));
  for (const RequestInfo& request : requests) TRY_STATUS(Check(caller, request));
  return OkStatus();
}

rt::Task<Status> Door::WhileKnown(net::RpcCall call, rt::Task<Status> work) const {
  rt::ChildContext child(co_await rt::CurrentContext());
  CredentialHold hold(
      deps_.authenticator, PeerOf(call), std::string(Metadata(call, "authorization")));
  hold.OnVoid([&child] { child.Cancel(); });
  const Status ended = co_await work.In(child.context());
  if (!hold.is_void() || !ended.Is(Reason::kCancelled)) co_return ended;
  co_return Unauthorized("the certificate or token of this stream is revoked");
}

WriteContext Door::ContextFor(const Caller& caller, const RequestInfo& request) const {
  WriteGuards guards = GuardsFor(deps_.authorizer, caller.identity, request);
  WriteContext context;
  context.identity = caller.identity;
  context.ownership = Ownership::kUpdated;
  context.field_manager = ManagerOf(caller.user_agent);
  context.guard = std::move(guards.write);
  context.force_guard = std::move(guards.force);
  return context;
}

void Door::Audit(const Caller& caller,
                 const RequestInfo& request,
                 const Status& status,
                 Time start) {
  if (!deps_.audit) return;
  const Duration took = deps_.loop.Now() - start;
  const int code = status.ok() ? 200 : net::HttpStatusOf(status.reason());
  const std::string id = NewUid(deps_.loop.random());
  deps_.audit({.time = deps_.loop.WallNow() - took,
               .request_id = id,
               .identity = caller.identity,
               .impersonator = caller.impersonator,
               .source = caller.address,
               .user_agent = caller.user_agent,
               .request = request,
               .name = request.name,
               .code = code,
               .duration = took});
}

}  // namespace berth::apiserver
