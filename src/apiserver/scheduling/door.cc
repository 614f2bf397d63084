// SPDX-License-Identifier: Apache-2.0
#include "apiserver/scheduling/door.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <utility>

#include "apiserver/authn/credential_hold.h"
#include "apiserver/authz/impersonation.h"
#include "apiserver/authz/write_guards.h"
#include "apiserver/http/answers.h"
#include "apiserver/registry/field_ownership.h"
#include "base/check.h"
#include "base/strings.h"
#include "base/uid.h"
#include "meta/json.h"
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

// With the names that the .proto has, which are those of our errors. "" for a message that has
// none, which its bytes do not become.
std::string JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  return status.ok() ? json : std::string();
}

}  // namespace

Visit Door::Receive(net::RpcCall call) const {
  Visit visit{.call = std::move(call),
              .id = NewUid(deps_.loop.random()),
              .start = deps_.loop.Now(),
              .caller = {},
              .requests = {},
              .sent = {}};
  visit.caller.address = visit.call.peer.address;
  visit.caller.user_agent = std::string(Metadata(visit.call, "user-agent"));
  RequestInfo& request = visit.requests.emplace_back();
  request.path = visit.call.method;
  request.verb = "post";  // as gRPC sends everything
  return visit;
}

Result<Identity> Door::Authenticate(const net::RpcCall& call) const {
  return deps_.authenticator.Authenticate(
      PeerOf(call), Metadata(call, "authorization"), call.method, deps_.loop.WallNow());
}

Status Door::BecomeImpersonated(const net::RpcCall& call, Caller& caller) const {
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
  return OkStatus();
}

Status Door::Admit(Visit& visit, const meta::KindInfo& kind, std::string_view verb) const {
  TRY(visit.caller.identity, Authenticate(visit.call));
  if (visit.call.peer.introduce) visit.call.peer.introduce(visit.caller.identity.user);
  visit.requests = {RequestFor(kind, verb, {}, visit.call.method)};
  return BecomeImpersonated(visit.call, visit.caller);
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

Status Door::Check(const Visit& visit) const {
  for (const RequestInfo& request : visit.requests) {
    TRY_STATUS(deps_.authorizer.Check(visit.caller.identity, request));
  }
  return OkStatus();
}

Status Door::CheckAgain(const net::RpcCall& call, const std::vector<RequestInfo>& requests) const {
  Caller caller;
  TRY(caller.identity, Authenticate(call));
  TRY_STATUS(BecomeImpersonated(call, caller));
  for (const RequestInfo& request : requests) {
    TRY_STATUS(deps_.authorizer.Check(caller.identity, request));
  }
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

WriteContext Door::ContextFor(const Visit& visit) const {
  CHECK(!visit.requests.empty()) << "there is nothing to write";
  WriteGuards guards = GuardsFor(deps_.authorizer, visit.caller.identity, visit.requests.front());
  WriteContext context;
  context.identity = visit.caller.identity;
  context.ownership = Ownership::kUpdated;
  context.field_manager = ManagerOf(visit.caller.user_agent);
  context.guard = std::move(guards.write);
  context.force_guard = std::move(guards.force);
  return context;
}

AuditLevel Door::LevelOf(const Visit& visit, const RequestInfo& request) const {
  return deps_.audit.LevelOf(visit.caller.identity, request);
}

void Door::Note(Visit& visit, const google::protobuf::Message& message) const {
  const bool is_told = std::ranges::any_of(visit.requests, [&](const RequestInfo& request) {
    return LevelOf(visit, request) >= AuditLevel::kRequest;
  });
  if (is_told) visit.sent = JsonOf(message);
}

void Door::Tell(Visit& visit, const Status& status, const google::protobuf::Message* answer) const {
  const Duration took = deps_.loop.Now() - visit.start;
  for (const RequestInfo& request : visit.requests) {
    const AuditLevel level = LevelOf(visit, request);
    if (level == AuditLevel::kNone) continue;
    const bool shows = MayShowBodies(request);
    std::string answered;
    if (shows && level == AuditLevel::kRequestResponse) {
      if (!status.ok()) answered = meta::WriteJson(StatusDocument(status));
      if (answer != nullptr) answered = JsonOf(*answer);
    }
    deps_.audit.Record({.time = deps_.loop.WallNow() - took,
                        .request_id = visit.id,
                        .identity = visit.caller.identity,
                        .impersonator = visit.caller.impersonator,
                        .source = visit.caller.address,
                        .user_agent = visit.caller.user_agent,
                        .request = request,
                        .name = {},
                        .code = status.ok() ? visit.code : net::HttpStatusOf(status.reason()),
                        .duration = took,
                        .stage = {},
                        .request_body = shows && level >= AuditLevel::kRequest
                                            ? std::string_view(visit.sent)
                                            : std::string_view(),
                        .response_body = answered});
  }
  visit.requests.clear();
  visit.sent = std::string();
}

}  // namespace berth::apiserver
