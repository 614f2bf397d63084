// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/servers_own.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "pki/token.h"

namespace berth::apiserver {
namespace {

constexpr std::array<std::string_view, 3> kConfigMaps = {
    "authority", "revoked-hosts", "revoked-users"};
constexpr std::array<std::string_view, 2> kLeases = {"leader", "scheduler"};
// Of each server, by which the others know it.
constexpr std::string_view kServerLeasePrefix = "server-";

bool IsOf(const RequestInfo& request, std::string_view group, std::string_view resource) {
  return request.group == group && request.resource == resource;
}

// Without a name: whether there are such records among these.
bool IsServersOwn(const RequestInfo& request) {
  if (request.namespace_ != pki::kTokenNamespace && !request.namespace_.empty()) return false;
  const std::string& name = request.name;
  if (IsOf(request, "", "configmaps")) {
    return name.empty() || std::ranges::find(kConfigMaps, name) != kConfigMaps.end();
  }
  if (IsOf(request, "coordination.k8s.io", "leases")) {
    return name.empty() || name.starts_with(kServerLeasePrefix) ||
           std::ranges::find(kLeases, name) != kLeases.end();
  }
  return false;
}

Status CheckAdministers(const Authorizer& authorizer,
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
  return CheckAdministers(authorizer, identity, request);
}

Status CheckNewServersOwn(const Authorizer& authorizer,
                          const Identity& identity,
                          const meta::Object& object) {
  RequestInfo request;
  request.is_resource = true;
  request.verb = "create";
  request.group = authorizer.scheme().GroupOf(object.kind());
  request.version = object.kind().version;
  request.resource = object.kind().plural;
  request.namespace_ = object.metadata().namespace_;
  request.name = object.metadata().name;
  if (request.name.empty() || !IsServersOwn(request)) return OkStatus();
  return CheckAdministers(authorizer, identity, std::move(request));
}

}  // namespace berth::apiserver
