// SPDX-License-Identifier: Apache-2.0
#include "apis/core/resource_quota.h"

#include <algorithm>

#include "apis/core/rules.h"
#include "base/strings.h"

namespace berth::apis::core {
namespace {

constexpr std::string_view kQuotaNames[] = {
    kCountMachines,
    kRequestsCpu,
    kRequestsMemory,
    kCountVolumes,
    kRequestsStorage,
    kCountBuckets,
    kCountReservations,
    kRequestsTps,
    kRequestsIops,
};

void CheckRequirement(const ResourceScopeSelectorRequirement& requirement,
                      const meta::FieldPath& path,
                      meta::FieldErrors& errors) {
  const bool is_list = requirement.operator_ == kScopeIn || requirement.operator_ == kScopeNotIn;
  if (is_list && requirement.values.empty()) {
    errors.Required(path.Child("values"), "must be given when `operator` is 'In' or 'NotIn'");
  }
  if (!is_list && !requirement.values.empty()) {
    errors.Forbidden(path.Child("values"),
                     "must not be given when `operator` is 'Exists' or 'DoesNotExist'");
  }
}

void Validate(const ResourceQuota& object, meta::FieldErrors& errors) {
  const meta::FieldPath hard = SpecPath().Child("hard");
  for (const auto& [name, value] : object.spec.hard) {
    if (std::ranges::find(kQuotaNames, name) == std::end(kQuotaNames)) {
      errors.NotSupported(hard.Key(name), name, {std::begin(kQuotaNames), std::end(kQuotaNames)});
    }
    CheckNotNegative(value, hard.Key(name), errors);
  }
  if (!object.spec.scope_selector) return;
  const auto& requirements = object.spec.scope_selector->match_expressions;
  const meta::FieldPath path = SpecPath().Child("scopeSelector").Child("matchExpressions");
  for (size_t i = 0; i < requirements.size(); ++i) {
    CheckRequirement(requirements[i], path.Index(i), errors);
  }
}

void ValidateStatusUpdate(const ResourceQuota& now,
                          const ResourceQuota& /*before*/,
                          meta::FieldErrors& errors) {
  CheckNotNegative(now.status.hard, StatusPath().Child("hard"), errors);
  CheckNotNegative(now.status.used, StatusPath().Child("used"), errors);
}

std::string RequestCell(const ResourceQuota& object) {
  std::vector<std::string> parts;
  for (const auto& [name, limit] : object.status.hard) {
    const meta::Quantity* used = FindResource(object.status.used, name);
    parts.push_back(name + ": " + (used == nullptr ? "0" : used->ToString()) + "/" +
                    limit.ToString());
  }
  return Join(parts, ", ");
}

constexpr meta::Column kColumns[] = {
    {.name = "Request", .doc = "Used and allowed, by name.", .cell = meta::Hook<&RequestCell>},
};

}  // namespace

constinit const meta::KindInfo kResourceQuotaKind = {
    .group = "core",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "ResourceQuota",
    .plural = "resourcequotas",
    .singular = "resourcequota",
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<ResourceQuota>(),
    .has_status = true,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::core
