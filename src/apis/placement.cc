// SPDX-License-Identifier: Apache-2.0
#include "apis/placement.h"

#include <algorithm>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/reservation.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_pool.h"
#include "apis/storage/volume_snapshot.h"
#include "base/check.h"

namespace berth::apis {

namespace {

using compute::kMachineKind;
using compute::kMachinePoolKind;
using core::kReservationKind;
using storage::kBucketKind;
using storage::kBucketPoolKind;
using storage::kVolumeKind;
using storage::kVolumePoolKind;
using storage::kVolumeSnapshotKind;

constexpr std::string_view kClassPrefix = "class/";

template <class Conditions>
void SetConditionIn(Conditions& conditions,
                    std::string_view type,
                    std::string_view status,
                    std::string_view reason,
                    std::string_view message,
                    WallTime now) {
  auto found =
      std::ranges::find_if(conditions, [type](const auto& item) { return item.type == type; });
  if (found == conditions.end()) {
    found = conditions.emplace(conditions.end());
    found->type = type;
  }
  if (found->status != status) found->last_transition_time = WallTime::FromSeconds(now.seconds());
  found->status = status;
  found->reason = reason;
  found->message = message;
}

void SetCondition(meta::Object& object,
                  std::string_view type,
                  std::string_view status,
                  std::string_view reason,
                  std::string_view message,
                  WallTime now) {
  if (&object.kind() == &kMachineKind) {
    SetConditionIn(
        object.as<compute::Machine>().status.conditions, type, status, reason, message, now);
  } else if (&object.kind() == &kReservationKind) {
    SetConditionIn(
        object.as<core::Reservation>().status.conditions, type, status, reason, message, now);
  } else if (&object.kind() == &kVolumeKind) {
    SetConditionIn(
        object.as<storage::Volume>().status.conditions, type, status, reason, message, now);
  } else if (&object.kind() == &kVolumeSnapshotKind) {
    SetConditionIn(
        object.as<storage::VolumeSnapshot>().status.conditions, type, status, reason, message, now);
  } else {
    SetConditionIn(
        object.as<storage::Bucket>().status.conditions, type, status, reason, message, now);
  }
}

template <class Pool>
PoolTerms TermsOf(const Pool& pool, Amounts allocatable) {
  std::string mode = pool.status.agent ? pool.status.agent->mode : std::string();
  // Poollets written for IronCore know nothing of modes: they report a state.
  if (mode.empty() && !pool.status.state.empty()) mode = core::kPoolModeApi;
  return {.mode = std::move(mode),
          .is_cordoned = pool.spec.unschedulable,
          .allocatable = std::move(allocatable)};
}

int64_t AmountOf(std::string_view name, const meta::Quantity& quantity) {
  return name == core::kCpu ? quantity.MilliValue() : quantity.Value();
}

}  // namespace

bool IsPlaceable(const meta::KindInfo& kind) {
  return &kind == &kMachineKind || &kind == &kVolumeKind || &kind == &kBucketKind ||
         &kind == &kReservationKind || &kind == &kVolumeSnapshotKind;
}

bool IsPool(const meta::KindInfo& kind) {
  return &kind == &kMachinePoolKind || &kind == &kVolumePoolKind || &kind == &kBucketPoolKind;
}

std::vector<core::Taint>& TaintsOf(meta::Object& pool) {
  if (&pool.kind() == &kMachinePoolKind) return pool.as<compute::MachinePool>().spec.taints;
  if (&pool.kind() == &kVolumePoolKind) return pool.as<storage::VolumePool>().spec.taints;
  return pool.as<storage::BucketPool>().spec.taints;
}

const std::vector<core::Taint>& TaintsOf(const meta::Object& pool) {
  if (&pool.kind() == &kMachinePoolKind) return pool.as<compute::MachinePool>().spec.taints;
  if (&pool.kind() == &kVolumePoolKind) return pool.as<storage::VolumePool>().spec.taints;
  return pool.as<storage::BucketPool>().spec.taints;
}

const meta::KindInfo& PoolKindOf(const meta::KindInfo& kind) {
  CHECK(IsPlaceable(kind)) << kind.kind;
  if (&kind == &kMachineKind || &kind == &kReservationKind) return kMachinePoolKind;
  if (&kind == &kVolumeKind || &kind == &kVolumeSnapshotKind) return kVolumePoolKind;
  return kBucketPoolKind;
}

std::string_view PoolRefField(const meta::KindInfo& kind) {
  if (&kind == &kMachineKind || &kind == &kReservationKind) return "machinePoolRef";
  if (&kind == &kVolumeKind || &kind == &kVolumeSnapshotKind) return "volumePoolRef";
  return "bucketPoolRef";
}

std::optional<core::LocalObjectReference>& PoolRefOf(meta::Object& object) {
  if (&object.kind() == &kMachineKind) return object.as<compute::Machine>().spec.machine_pool_ref;
  if (&object.kind() == &kReservationKind) {
    return object.as<core::Reservation>().spec.machine_pool_ref;
  }
  if (&object.kind() == &kVolumeKind) return object.as<storage::Volume>().spec.volume_pool_ref;
  if (&object.kind() == &kVolumeSnapshotKind) {
    return object.as<storage::VolumeSnapshot>().spec.volume_pool_ref;
  }
  return object.as<storage::Bucket>().spec.bucket_pool_ref;
}

const std::optional<core::LocalObjectReference>& PoolRefOf(const meta::Object& object) {
  if (&object.kind() == &kMachineKind) return object.as<compute::Machine>().spec.machine_pool_ref;
  if (&object.kind() == &kReservationKind) {
    return object.as<core::Reservation>().spec.machine_pool_ref;
  }
  if (&object.kind() == &kVolumeKind) return object.as<storage::Volume>().spec.volume_pool_ref;
  if (&object.kind() == &kVolumeSnapshotKind) {
    return object.as<storage::VolumeSnapshot>().spec.volume_pool_ref;
  }
  return object.as<storage::Bucket>().spec.bucket_pool_ref;
}

std::optional<core::PlacementStatus>& PlacementOf(meta::Object& object) {
  if (&object.kind() == &kMachineKind) return object.as<compute::Machine>().status.placement;
  if (&object.kind() == &kReservationKind) return object.as<core::Reservation>().status.placement;
  if (&object.kind() == &kVolumeKind) return object.as<storage::Volume>().status.placement;
  if (&object.kind() == &kVolumeSnapshotKind) {
    return object.as<storage::VolumeSnapshot>().status.placement;
  }
  return object.as<storage::Bucket>().status.placement;
}

const std::optional<core::PlacementStatus>& PlacementOf(const meta::Object& object) {
  if (&object.kind() == &kMachineKind) return object.as<compute::Machine>().status.placement;
  if (&object.kind() == &kReservationKind) return object.as<core::Reservation>().status.placement;
  if (&object.kind() == &kVolumeKind) return object.as<storage::Volume>().status.placement;
  if (&object.kind() == &kVolumeSnapshotKind) {
    return object.as<storage::VolumeSnapshot>().status.placement;
  }
  return object.as<storage::Bucket>().status.placement;
}

bool IsBound(const meta::Object& object) {
  const std::optional<core::PlacementStatus>& placement = PlacementOf(object);
  return placement && !placement->pool_uid.empty();
}

int64_t EpochOf(const meta::Object& object) {
  const std::optional<core::PlacementStatus>& placement = PlacementOf(object);
  return placement ? placement->epoch : 0;
}

void SetScheduled(meta::Object& object,
                  std::string_view status,
                  std::string_view reason,
                  std::string_view message,
                  WallTime now) {
  SetCondition(object, core::kScheduledCondition, status, reason, message, now);
}

void SetReleased(meta::Object& object,
                 std::string_view status,
                 std::string_view reason,
                 std::string_view message,
                 WallTime now) {
  SetCondition(object, core::kReleasedCondition, status, reason, message, now);
}

void ClearReleased(meta::Object& object) {
  const auto clear = [](auto& conditions) {
    std::erase_if(conditions,
                  [](const auto& item) { return item.type == core::kReleasedCondition; });
  };
  if (&object.kind() == &kMachineKind) {
    clear(object.as<compute::Machine>().status.conditions);
  } else if (&object.kind() == &kReservationKind) {
    clear(object.as<core::Reservation>().status.conditions);
  } else if (&object.kind() == &kVolumeKind) {
    clear(object.as<storage::Volume>().status.conditions);
  } else if (&object.kind() == &kVolumeSnapshotKind) {
    clear(object.as<storage::VolumeSnapshot>().status.conditions);
  } else {
    clear(object.as<storage::Bucket>().status.conditions);
  }
}

PoolTerms PoolTermsOf(const meta::Object& pool) {
  if (&pool.kind() == &kMachinePoolKind) {
    const auto& it = pool.as<compute::MachinePool>();
    return TermsOf(it, Allocatable(it.status.capacity, it.spec.limits));
  }
  if (&pool.kind() == &kVolumePoolKind) {
    const auto& it = pool.as<storage::VolumePool>();
    return TermsOf(it, Allocatable(it.status.capacity, it.spec.limits));
  }
  // Buckets take nothing that is counted.
  return TermsOf(pool.as<storage::BucketPool>(), {});
}

Amounts Allocatable(const core::ResourceList& capacity, const core::ResourceList& limits) {
  Amounts amounts;
  for (const auto& [name, quantity] : capacity) {
    if (name.starts_with(kClassPrefix)) continue;
    int64_t amount = AmountOf(name, quantity);
    if (const auto limit = limits.find(name); limit != limits.end()) {
      amount = std::min(amount, AmountOf(name, limit->second));
    }
    amounts.emplace(name, std::max<int64_t>(amount, 0));
  }
  if (amounts.empty() && !capacity.empty()) amounts.emplace(kShare, kShareWhole);
  return amounts;
}

int64_t ShareOf(int64_t amount, int64_t capacity) {
  if (capacity <= 0 || amount > capacity) return kShareWhole + 1;
  __extension__ using Wide = __int128;
  const auto parts = static_cast<int64_t>(Wide{amount} * kShareWhole / capacity);
  return std::max<int64_t>(parts, 1);
}

Amounts ToAmounts(const core::ResourceList& resources) {
  Amounts amounts;
  for (const auto& [name, quantity] : resources) amounts.emplace(name, AmountOf(name, quantity));
  return amounts;
}

core::ResourceList ToResources(const Amounts& amounts) {
  core::ResourceList resources;
  for (const auto& [name, amount] : amounts) {
    const bool is_bytes = name == core::kMemory || name == core::kStorage;
    resources.emplace(name,
                      name == core::kCpu
                          ? meta::Quantity::Milli(amount)
                          : meta::Quantity(amount,
                                           is_bytes ? meta::Quantity::Format::kBinarySi
                                                    : meta::Quantity::Format::kDecimalSi));
  }
  return resources;
}

}  // namespace berth::apis
