// SPDX-License-Identifier: Apache-2.0
// Machines, volumes, snapshots, buckets and reservations as things that are placed, and their pools
// as places: one view of all of them. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/core/placement.h"
#include "apis/core/pool_parts.h"
#include "apis/core/references.h"
#include "apis/core/resources.h"
#include "apis/core/taints.h"
#include "base/time.h"
#include "meta/kind.h"
#include "meta/object.h"

namespace berth::apis {

// Amounts by name: "cpu" in thousandths, everything else in units.
using Amounts = std::map<std::string, int64_t, std::less<>>;

// The one dimension of a pool that only counts per class, and how many parts it has.
inline constexpr std::string_view kShare = "share";
inline constexpr int64_t kShareWhole = 1'000'000'000'000;

// Keeps an object that is bound to a session pool until its host says that it is gone. API-mode
// poollets set their own.
inline constexpr std::string_view kPlacementFinalizer = "berth.dev/placement";

bool IsPlaceable(
    const meta::KindInfo& kind);          // Machine, Volume, VolumeSnapshot, Bucket, Reservation
bool IsPool(const meta::KindInfo& kind);  // their pools
// REQUIRES: IsPool(pool.kind()).
std::vector<core::Taint>& TaintsOf(meta::Object& pool);
const std::vector<core::Taint>& TaintsOf(const meta::Object& pool);
// REQUIRES: IsPlaceable(kind).
const meta::KindInfo& PoolKindOf(const meta::KindInfo& kind);
std::string_view PoolRefField(const meta::KindInfo& kind);  // "machinePoolRef"

// REQUIRES, for all of these: IsPlaceable(object.kind()).
std::optional<core::LocalObjectReference>& PoolRefOf(meta::Object& object);
const std::optional<core::LocalObjectReference>& PoolRefOf(const meta::Object& object);
std::optional<core::PlacementStatus>& PlacementOf(meta::Object& object);
const std::optional<core::PlacementStatus>& PlacementOf(const meta::Object& object);
// Whether the object takes room of a pool.
bool IsBound(const meta::Object& object);
int64_t EpochOf(const meta::Object& object);
// Condition Scheduled; its time changes only with its status.
void SetScheduled(meta::Object& object,
                  std::string_view status,
                  std::string_view reason,
                  std::string_view message,
                  WallTime now);
// Condition Released; the same.
void SetReleased(meta::Object& object,
                 std::string_view status,
                 std::string_view reason,
                 std::string_view message,
                 WallTime now);
void ClearReleased(meta::Object& object);

// What of a pool decides about a binding.
struct PoolTerms {
  std::string mode;  // "" before the first announcement; a state without an agent means API
  bool is_cordoned = false;
  Amounts allocatable;
  bool operator==(const PoolTerms&) const = default;
};
// REQUIRES: IsPool(pool.kind()).
PoolTerms PoolTermsOf(const meta::Object& pool);
// Capacity as far as the limits allow. A pool that reports nothing but classes has kShareWhole of
// "share".
Amounts Allocatable(const core::ResourceList& capacity, const core::ResourceList& limits);
// What `amount` takes of a pool that holds `capacity` of its class: at least one part; kShareWhole
// + 1, which never fits, if the pool holds none of it.
int64_t ShareOf(int64_t amount, int64_t capacity);

Amounts ToAmounts(const core::ResourceList& resources);
core::ResourceList ToResources(const Amounts& amounts);

}  // namespace berth::apis
