// SPDX-License-Identifier: Apache-2.0
#include "apis/quota/usage.h"

#include <algorithm>
#include <array>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/core/reservation.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_class.h"
#include "apis/storage/volume.h"
#include "base/strings.h"

namespace berth::apis::quota {

namespace {

using core::ResourceList;

// The class that an object names, by the scope that selects it; "" if it has none.
struct ClassOf {
  std::string_view scope;
  std::string_view name;
};

ClassOf FindClass(const meta::Object& object) {
  if (&object.kind() == &core::kReservationKind) {
    const auto& ref = object.as<core::Reservation>().spec.class_ref;
    return {core::kScopeMachineClass, ref ? std::string_view(ref->name) : ""};
  }
  if (&object.kind() == &compute::kMachineKind) {
    return {core::kScopeMachineClass, object.as<compute::Machine>().spec.machine_class_ref.name};
  }
  if (&object.kind() == &storage::kVolumeKind) {
    const auto& ref = object.as<storage::Volume>().spec.volume_class_ref;
    return {core::kScopeVolumeClass, ref ? std::string_view(ref->name) : ""};
  }
  const auto& ref = object.as<storage::Bucket>().spec.bucket_class_ref;
  return {core::kScopeBucketClass, ref ? std::string_view(ref->name) : ""};
}

void AddRequest(ResourceList& usage,
                std::string_view name,
                const ResourceList& from,
                std::string_view resource) {
  const meta::Quantity* amount = core::FindResource(from, resource);
  if (amount != nullptr) usage[std::string(name)] += *amount;
}

Status UnknownClass(std::string_view what, std::string_view name) {
  return BadRequest(std::string(what) + " " + Quote(name) +
                    " does not exist, so what the object uses of its quota is not known");
}

// What it still keeps counts like the machines that it is for; those that have used it count for
// themselves. One for all pools keeps nothing itself: there is one for each of them.
Result<ResourceList> UsageOfReservation(const core::Reservation& reservation,
                                        const ClassFinder& classes) {
  ResourceList usage;
  usage[std::string(core::kCountReservations)] = meta::Quantity(1);
  const bool is_over =
      reservation.status.state == core::kReservationExpired &&
      (!reservation.status.placement || reservation.status.placement->pool.empty());
  if (core::IsForAll(reservation.spec) || is_over) return usage;
  ResourceList room = reservation.spec.resources;
  if (reservation.spec.class_ref) {
    const auto found = classes(compute::kMachineClassKind, reservation.spec.class_ref->name);
    if (!found) return UnknownClass("machine class", reservation.spec.class_ref->name);
    room = found->as<compute::MachineClass>().capabilities;
  }
  for (int32_t i = 0; i < core::LeftOf(reservation); ++i) {
    AddRequest(usage, core::kRequestsCpu, room, core::kCpu);
    AddRequest(usage, core::kRequestsMemory, room, core::kMemory);
  }
  return usage;
}

// A machine that goes into a reservation counts from its binding on: until then its room is counted
// there, and afterwards no more.
bool WaitsForReservation(const compute::Machine& machine) {
  return machine.spec.placement && machine.spec.placement->reservation_ref &&
         (!machine.status.placement || machine.status.placement->epoch == 0);
}

bool Matches(const core::ResourceScopeSelectorRequirement& requirement, const ClassOf& of) {
  // A scope of another kind of class says nothing about this object.
  if (requirement.scope_name != of.scope) return false;
  const bool listed = std::ranges::find(requirement.values, of.name) != requirement.values.end();
  if (requirement.operator_ == core::kScopeIn) return !of.name.empty() && listed;
  if (requirement.operator_ == core::kScopeNotIn) return !listed;
  if (requirement.operator_ == core::kScopeExists) return !of.name.empty();
  return requirement.operator_ == core::kScopeDoesNotExist && of.name.empty();
}

}  // namespace

const std::vector<const meta::KindInfo*>& CountedKinds() {
  static const std::vector<const meta::KindInfo*> kinds = {&compute::kMachineKind,
                                                           &storage::kVolumeKind,
                                                           &storage::kBucketKind,
                                                           &core::kReservationKind};
  return kinds;
}

bool IsCounted(const meta::KindInfo& kind) {
  return std::ranges::find(CountedKinds(), &kind) != CountedKinds().end();
}

Result<ResourceList> UsageOf(const meta::Object& object, const ClassFinder& classes) {
  const meta::Quantity one(1);
  ResourceList usage;
  const ClassOf of = FindClass(object);
  if (&object.kind() == &compute::kMachineKind) {
    usage[std::string(core::kCountMachines)] = one;
    if (WaitsForReservation(object.as<compute::Machine>())) return usage;
    const auto found = classes(compute::kMachineClassKind, of.name);
    if (!found) return UnknownClass("machine class", of.name);
    const ResourceList& capabilities = found->as<compute::MachineClass>().capabilities;
    AddRequest(usage, core::kRequestsCpu, capabilities, core::kCpu);
    AddRequest(usage, core::kRequestsMemory, capabilities, core::kMemory);
  } else if (&object.kind() == &core::kReservationKind) {
    return UsageOfReservation(object.as<core::Reservation>(), classes);
  } else if (&object.kind() == &storage::kVolumeKind) {
    usage[std::string(core::kCountVolumes)] = one;
    AddRequest(
        usage, core::kRequestsStorage, object.as<storage::Volume>().spec.resources, core::kStorage);
  } else if (&object.kind() == &storage::kBucketKind) {
    usage[std::string(core::kCountBuckets)] = one;
    if (of.name.empty()) return usage;
    const auto found = classes(storage::kBucketClassKind, of.name);
    if (!found) return UnknownClass("bucket class", of.name);
    const ResourceList& capabilities = found->as<storage::BucketClass>().capabilities;
    AddRequest(usage, core::kRequestsTps, capabilities, core::kTps);
    AddRequest(usage, core::kRequestsIops, capabilities, core::kIops);
  }
  return usage;
}

bool InScope(const core::ResourceQuota& quota, const meta::Object& object) {
  if (!quota.spec.scope_selector) return true;
  const ClassOf of = FindClass(object);
  return std::ranges::all_of(
      quota.spec.scope_selector->match_expressions,
      [&of](const core::ResourceScopeSelectorRequirement& r) { return Matches(r, of); });
}

void AddLimited(ResourceList& used, const ResourceList& more, const ResourceList& limits) {
  for (const auto& [name, amount] : more) {
    if (limits.contains(name)) used[name] += amount;
  }
}

std::string Describe(const ResourceList& amounts, const ResourceList& which) {
  std::string text;
  for (const auto& [name, ignored] : which) {
    const auto found = amounts.find(name);
    if (!text.empty()) text += ',';
    text += name + '=' + (found == amounts.end() ? "0" : found->second.ToString());
  }
  return text;
}

}  // namespace berth::apis::quota
