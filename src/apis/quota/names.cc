// SPDX-License-Identifier: Apache-2.0
#include "apis/quota/names.h"

#include <algorithm>

#include "apis/compute/machine.h"
#include "apis/core/reservation.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"

namespace berth::apis::quota {

namespace {

constexpr std::string_view kCountPrefix = "count/";

struct Count {
  const meta::KindInfo* kind;
  std::string_view name;
};
constexpr Count kCounts[] = {
    {.kind = &compute::kMachineKind, .name = core::kCountMachines},
    {.kind = &storage::kVolumeKind, .name = core::kCountVolumes},
    {.kind = &storage::kBucketKind, .name = core::kCountBuckets},
    {.kind = &core::kReservationKind, .name = core::kCountReservations},
};

}  // namespace

std::string CanonicalName(const meta::Scheme& scheme, std::string_view name) {
  if (!name.starts_with(kCountPrefix)) return std::string(name);
  const std::string_view resource = name.substr(kCountPrefix.size());
  const size_t dot = resource.find('.');
  if (dot == std::string_view::npos) return std::string(name);
  const std::string_view plural = resource.substr(0, dot);
  const std::string group = scheme.CanonicalGroup(resource.substr(dot + 1));
  for (const Count& count : kCounts) {
    if (count.kind->plural == plural && scheme.GroupOf(*count.kind) == group) {
      return std::string(count.name);
    }
  }
  return std::string(name);
}

core::ResourceList Canonical(const meta::Scheme& scheme, const core::ResourceList& list) {
  core::ResourceList canonical;
  for (const auto& [name, amount] : list) {
    const auto [at, is_new] = canonical.emplace(CanonicalName(scheme, name), amount);
    if (!is_new) at->second = std::min(at->second, amount);
  }
  return canonical;
}

}  // namespace berth::apis::quota
