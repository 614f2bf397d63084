// SPDX-License-Identifier: Apache-2.0
// What objects count against ResourceQuotas. Machines count themselves and the cpu and memory of
// their class; volumes themselves and their storage; buckets themselves and the tps and iops of
// their class.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apis/core/resource_quota.h"
#include "apis/core/resources.h"
#include "base/result.h"
#include "meta/object.h"
#include "meta/scheme.h"

namespace berth::apis {

bool CountsAgainstQuota(const meta::KindInfo& kind);

// The class of a Machine, Volume or Bucket; no name for one without class.
struct ClassReference {
  const meta::KindInfo* kind = nullptr;
  std::string name;
  bool operator==(const ClassReference&) const = default;
};
// nullopt for kinds that have no classes.
std::optional<ClassReference> ClassOf(const meta::Object& object);
// The capabilities of a class object. REQUIRES: a MachineClass, VolumeClass or BucketClass.
const core::ResourceList& CapabilitiesOf(const meta::Object& class_object);

// What the object counts; nothing for kinds that do not count. `capabilities` are those of its
// class, null if that does not exist: BadRequest where they are needed.
Result<core::ResourceList> UsageOf(const meta::Object& object,
                                   const core::ResourceList* capabilities);

// Whether the quota's scopes take in the object. A scope about another kind of class never does.
bool MatchesScopes(const core::ResourceQuotaSpec& spec, const meta::Object& object);

// The entries of `list` that `limits` names.
core::ResourceList OnlyLimited(const core::ResourceList& list, const core::ResourceList& limits);
// Entry by entry; what is absent is zero.
core::ResourceList Sum(const core::ResourceList& a, const core::ResourceList& b);
core::ResourceList Difference(const core::ResourceList& a, const core::ResourceList& b);

// Forbidden if status.used with `change` added were more than spec.hard in anything that grows, or
// if it is not known yet what is used. What shrinks or stays is always allowed.
Status CheckQuota(const core::ResourceQuota& quota, const core::ResourceList& change);

// Quotas may name groups through any served domain: "count/machines.compute.OpenKCM.dev" becomes
// "count/machines.compute.ironcore.dev". Other names stay as they are.
std::string CanonicalQuotaName(std::string_view name, const meta::Scheme& scheme);
// The same for every name in the quota; to be done before it is validated.
void CanonicaliseQuota(core::ResourceQuota& quota, const meta::Scheme& scheme);

}  // namespace berth::apis
