// SPDX-License-Identifier: Apache-2.0
#include "apis/quota.h"

#include <algorithm>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_class.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_class.h"
#include "base/strings.h"

namespace berth::apis {
namespace {

using core::ResourceList;

constexpr std::string_view kCountPrefix = "count/";

struct Counted {
  const meta::KindInfo* kind;
  const meta::KindInfo* class_kind;
  std::string_view count;
  std::string_view scope;
  // Capabilities of the class that count, and as what.
  std::pair<std::string_view, std::string_view> of_class[2];
};

constexpr Counted kCounted[] = {
    {.kind = &compute::kMachineKind,
     .class_kind = &compute::kMachineClassKind,
     .count = core::kCountMachines,
     .scope = core::kScopeMachineClass,
     .of_class = {{core::kCpu, core::kRequestsCpu}, {core::kMemory, core::kRequestsMemory}}},
    {.kind = &storage::kVolumeKind,
     .class_kind = &storage::kVolumeClassKind,
     .count = core::kCountVolumes,
     .scope = core::kScopeVolumeClass,
     .of_class = {}},
    {.kind = &storage::kBucketKind,
     .class_kind = &storage::kBucketClassKind,
     .count = core::kCountBuckets,
     .scope = core::kScopeBucketClass,
     .of_class = {{core::kTps, core::kRequestsTps}, {core::kIops, core::kRequestsIops}}},
};

const Counted* FindCounted(const meta::KindInfo& kind) {
  const auto found = std::ranges::find(kCounted, &kind, &Counted::kind);
  return found == std::end(kCounted) ? nullptr : found;
}

std::string ClassNameOf(const meta::Object& object) {
  const auto name = [](const std::optional<core::LocalObjectReference>& reference) {
    return reference ? reference->name : std::string();
  };
  if (&object.kind() == &compute::kMachineKind) {
    return object.as<compute::Machine>().spec.machine_class_ref.name;
  }
  if (&object.kind() == &storage::kVolumeKind) {
    return name(object.as<storage::Volume>().spec.volume_class_ref);
  }
  return name(object.as<storage::Bucket>().spec.bucket_class_ref);
}

bool Matches(const core::ResourceScopeSelectorRequirement& requirement,
             std::string_view scope,
             const std::string& class_name) {
  if (requirement.scope_name != scope) return false;
  const bool has_class = !class_name.empty();
  const auto& values = requirement.values;
  const bool is_listed = has_class && std::ranges::find(values, class_name) != values.end();
  if (requirement.operator_ == core::kScopeExists) return has_class;
  if (requirement.operator_ == core::kScopeDoesNotExist) return !has_class;
  if (requirement.operator_ == core::kScopeIn) return is_listed;
  if (requirement.operator_ == core::kScopeNotIn) return !is_listed;
  return false;
}

std::string Listed(const ResourceList& list) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : list) parts.push_back(name + "=" + value.ToString());
  return Join(parts, ",");
}

}  // namespace

bool CountsAgainstQuota(const meta::KindInfo& kind) { return FindCounted(kind) != nullptr; }

std::optional<ClassReference> ClassOf(const meta::Object& object) {
  const Counted* counted = FindCounted(object.kind());
  if (counted == nullptr) return std::nullopt;
  return ClassReference{.kind = counted->class_kind, .name = ClassNameOf(object)};
}

const ResourceList& CapabilitiesOf(const meta::Object& class_object) {
  if (&class_object.kind() == &compute::kMachineClassKind) {
    return class_object.as<compute::MachineClass>().capabilities;
  }
  if (&class_object.kind() == &storage::kVolumeClassKind) {
    return class_object.as<storage::VolumeClass>().capabilities;
  }
  return class_object.as<storage::BucketClass>().capabilities;
}

Result<ResourceList> UsageOf(const meta::Object& object, const ResourceList* capabilities) {
  ResourceList usage;
  const Counted* counted = FindCounted(object.kind());
  if (counted == nullptr) return usage;
  usage[std::string(counted->count)] = meta::Quantity(1);
  if (&object.kind() == &storage::kVolumeKind) {
    const auto& resources = object.as<storage::Volume>().spec.resources;
    const meta::Quantity* size = core::FindResource(resources, core::kStorage);
    if (size != nullptr) usage[std::string(core::kRequestsStorage)] = *size;
    return usage;
  }
  const std::string class_name = ClassNameOf(object);
  if (class_name.empty()) return usage;
  if (capabilities == nullptr) {
    return BadRequest(std::string(counted->class_kind->singular) + " " + Quote(class_name) +
                      " of " + std::string(counted->kind->singular) + " " +
                      Quote(object.metadata().name) +
                      " does not exist, so its usage cannot be counted");
  }
  for (const auto& [capability, name] : counted->of_class) {
    const meta::Quantity* amount = core::FindResource(*capabilities, capability);
    if (amount != nullptr) usage[std::string(name)] = *amount;
  }
  return usage;
}

bool MatchesScopes(const core::ResourceQuotaSpec& spec, const meta::Object& object) {
  const Counted* counted = FindCounted(object.kind());
  if (counted == nullptr) return false;
  if (!spec.scope_selector) return true;
  const std::string class_name = ClassNameOf(object);
  return std::ranges::all_of(spec.scope_selector->match_expressions, [&](const auto& requirement) {
    return Matches(requirement, counted->scope, class_name);
  });
}

ResourceList OnlyLimited(const ResourceList& list, const ResourceList& limits) {
  ResourceList result;
  for (const auto& [name, value] : list) {
    if (limits.contains(name)) result[name] = value;
  }
  return result;
}

ResourceList Sum(const ResourceList& a, const ResourceList& b) {
  ResourceList result = a;
  for (const auto& [name, value] : b) result[name] += value;
  return result;
}

ResourceList Difference(const ResourceList& a, const ResourceList& b) {
  ResourceList result = a;
  for (const auto& [name, value] : b) result[name] -= value;
  return result;
}

Status CheckQuota(const core::ResourceQuota& quota, const ResourceList& change) {
  std::vector<std::string> unknown;
  ResourceList requested;
  ResourceList used;
  ResourceList limited;
  for (const auto& [name, limit] : quota.spec.hard) {
    const meta::Quantity* growth = core::FindResource(change, name);
    if (growth == nullptr || growth->Sign() <= 0) continue;
    const meta::Quantity* current = core::FindResource(quota.status.used, name);
    if (current == nullptr) {
      unknown.push_back(name);
    } else if (*current + *growth > limit) {
      requested[name] = *growth;
      used[name] = *current;
      limited[name] = limit;
    }
  }
  if (!unknown.empty()) {
    return Forbidden("status unknown for quota: " + quota.metadata.name +
                     ", resources: " + Join(unknown, ","));
  }
  if (requested.empty()) return OkStatus();
  return Forbidden("exceeded quota: " + quota.metadata.name + ", requested: " + Listed(requested) +
                   ", used: " + Listed(used) + ", limited: " + Listed(limited));
}

std::string CanonicalQuotaName(std::string_view name, const meta::Scheme& scheme) {
  if (!name.starts_with(kCountPrefix)) return std::string(name);
  const std::string_view resource = name.substr(kCountPrefix.size());
  const size_t dot = resource.find('.');
  if (dot == std::string_view::npos) return std::string(name);
  const std::string_view plural = resource.substr(0, dot);
  const std::string_view group = resource.substr(dot + 1);
  for (const Counted& counted : kCounted) {
    if (scheme.FindResource(group, counted.kind->version, plural) == counted.kind) {
      return std::string(counted.count);
    }
  }
  return std::string(name);
}

void CanonicaliseQuota(core::ResourceQuota& quota, const meta::Scheme& scheme) {
  for (ResourceList* list : {&quota.spec.hard, &quota.status.hard, &quota.status.used}) {
    ResourceList canonical;
    // Under two names of one thing the smaller limit holds.
    for (const auto& [name, value] : *list) {
      const auto [at, is_new] = canonical.emplace(CanonicalQuotaName(name, scheme), value);
      if (!is_new) at->second = std::min(at->second, value);
    }
    *list = std::move(canonical);
  }
}

}  // namespace berth::apis
