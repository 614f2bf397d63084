// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/servers_own.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "pki/join_token.h"
#include "pki/token.h"

namespace berth::apiserver {
namespace {

constexpr std::array<std::string_view, 5> kConfigMaps = {
    "authority", "cluster", "cluster-status", "revoked-hosts", "revoked-users"};
// Of each host: the keys that it is known by, and what its token granted.
constexpr std::string_view kHostMapPrefix = "host-";
constexpr std::array<std::string_view, 2> kLeases = {"leader", "scheduler"};
// Of each server, by which the others know it.
constexpr std::string_view kServerLeasePrefix = "server-";

bool IsOf(const RequestInfo& request, std::string_view group, std::string_view resource) {
  return request.group == group && request.resource == resource;
}

// Without a name: whether there are such records among these.
bool IsAmong(std::string_view name,
             std::span<const std::string_view> names,
             std::string_view prefix) {
  return name.empty() || name.starts_with(prefix) || std::ranges::find(names, name) != names.end();
}

bool IsServersOwn(const RequestInfo& request) {
  if (request.namespace_ != pki::kTokenNamespace && !request.namespace_.empty()) return false;
  if (IsOf(request, "", "configmaps")) return IsAmong(request.name, kConfigMaps, kHostMapPrefix);
  if (IsOf(request, "", "secrets")) return IsAmong(request.name, {}, pki::kJoinTokenNamePrefix);
  if (IsOf(request, "coordination.k8s.io", "leases")) {
    return IsAmong(request.name, kLeases, kServerLeasePrefix);
  }
  return false;
}

RequestInfo CreationOf(const Authorizer& authorizer, const meta::Object& object) {
  RequestInfo request;
  request.is_resource = true;
  request.verb = "create";
  request.group = authorizer.scheme().GroupOf(object.kind());
  request.version = object.kind().version;
  request.resource = object.kind().plural;
  request.namespace_ = object.metadata().namespace_;
  request.name = object.metadata().name;
  return request;
}

Status CheckMayAdminister(const Authorizer& authorizer,
                          const Identity& identity,
                          RequestInfo request) {
  request.verb = "administer";
  request.namespace_ = pki::kTokenNamespace;
  if (authorizer.AllowsByRoles(identity, request)) return OkStatus();
  return ForbiddenStatus(identity, request);
}

}  // namespace

Status CheckServersOwn(const Authorizer& authorizer,
                       const Identity& identity,
                       const RequestInfo& request) {
  const bool is_written = request.verb == "update" || request.verb == "patch" ||
                          request.verb == "delete" || request.verb == "deletecollection";
  if (!is_written || !IsServersOwn(request)) return OkStatus();
  return CheckMayAdminister(authorizer, identity, request);
}

Status CheckNewServersOwn(const Authorizer& authorizer,
                          const Identity& identity,
                          const meta::Object& object) {
  RequestInfo request = CreationOf(authorizer, object);
  if (request.name.empty() || !IsServersOwn(request)) return OkStatus();
  return CheckMayAdminister(authorizer, identity, std::move(request));
}

Status CheckAdministers(const Authorizer& authorizer,
                        const Identity& identity,
                        const meta::Object& object) {
  return CheckMayAdminister(authorizer, identity, CreationOf(authorizer, object));
}

}  // namespace berth::apiserver
