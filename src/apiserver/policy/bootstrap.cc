// SPDX-License-Identifier: Apache-2.0
#include "apiserver/policy/bootstrap.h"

#include <array>
#include <utility>
#include <vector>

#include "apis/k8s/namespace.h"
#include "apiserver/authz/policy_objects.h"
#include "base/log.h"
#include "pki/token.h"

namespace berth::apiserver {
namespace {

namespace k8s = apis::k8s;

// `default` is where people begin, berth-system holds tokens and leases of our own; pools that
// speak the API keep their leases in the third.
constexpr std::array<std::string_view, 3> kNamespaces = {
    "default", pki::kTokenNamespace, "ironcore-machinepool-lease"};

WriteContext SystemContext() {
  WriteContext context;
  context.identity = {.user = "system:berth", .groups = {"system:masters"}, .uid = {}};
  return context;
}

meta::Object NamespaceObject(std::string_view name) {
  k8s::Namespace object;
  object.metadata.name = name;
  return meta::Object::Of(k8s::kNamespaceKind, std::move(object));
}

std::vector<meta::Object> AllDefaults(const meta::Scheme& scheme) {
  std::vector<meta::Object> objects;
  for (const auto name : kNamespaces) objects.push_back(NamespaceObject(name));
  for (auto& object : DefaultPolicy(scheme)) objects.push_back(std::move(object));
  return objects;
}

}  // namespace

rt::Task<Status> EnsureDefaults(Registry& registry, const meta::Scheme& scheme) {
  std::vector<meta::Object> missing;
  for (auto& wanted : AllDefaults(scheme)) {
    const meta::KindInfo& kind = wanted.kind();
    const ObjectKey key{.namespace_ = {}, .name = wanted.metadata().name};
    const auto stored = co_await registry.Get(kind, key, "0");
    if (!stored.ok()) {
      if (!stored.status().Is(Reason::kNotFound)) co_return stored.status().Wrap("read defaults");
      missing.push_back(std::move(wanted));
      continue;
    }
    if (!IsPolicyKind(kind)) continue;
    // An unchanged object is not written.
    Mutation complete = [&wanted, &scheme](const meta::Object& current) -> Result<meta::Object> {
      return CompletePolicy(scheme, current, wanted).value_or(current);
    };
    CO_TRY_STATUS(co_await registry.Mutate(kind, key, std::move(complete), SystemContext()));
  }
  if (missing.empty()) co_return OkStatus();
  LOG_INFO("making {} default objects", missing.size());
  for (const auto& created : co_await registry.CreateBatch(std::move(missing), SystemContext())) {
    // Another server may have been faster.
    if (created.ok() || created.status().Is(Reason::kAlreadyExists)) continue;
    co_return created.status().Wrap("make defaults");
  }
  co_return OkStatus();
}

}  // namespace berth::apiserver
