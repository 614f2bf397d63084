// SPDX-License-Identifier: Apache-2.0
#include "apis/core/placement.h"

#include <utility>

#include "apis/core/rules.h"

namespace berth::apis::core {
namespace {

constexpr int32_t kWeightMax = 100;
constexpr size_t kTermsMax = 32;
constexpr size_t kSpreadMax = 8;

void CheckTopologyKey(const std::string& key,
                      const meta::FieldPath& path,
                      meta::FieldErrors& errors) {
  if (!key.empty()) CheckLabelKey(key, path.Child("topologyKey"), errors);
}

void CheckTerm(const AffinityTerm& term, const meta::FieldPath& path, meta::FieldErrors& errors) {
  CheckSelector(term.label_selector, path.Child("labelSelector"), errors);
  CheckTopologyKey(term.topology_key, path, errors);
}

void CheckAffinity(const std::optional<Affinity>& affinity,
                   const meta::FieldPath& path,
                   meta::FieldErrors& errors) {
  if (!affinity) return;
  if (affinity->required.size() + affinity->preferred.size() > kTermsMax) {
    errors.TooMany(path, affinity->required.size() + affinity->preferred.size(), kTermsMax);
  }
  for (size_t i = 0; i < affinity->required.size(); ++i) {
    CheckTerm(affinity->required[i], path.Child("required").Index(i), errors);
  }
  for (size_t i = 0; i < affinity->preferred.size(); ++i) {
    const WeightedAffinityTerm& wish = affinity->preferred[i];
    const meta::FieldPath at = path.Child("preferred").Index(i);
    if (wish.weight < 0 || wish.weight > kWeightMax) {
      errors.Invalid(at.Child("weight"), wish.weight, "must be between 1 and 100, inclusive");
    }
    CheckTerm(wish.term, at.Child("term"), errors);
  }
}

void CheckSpread(const std::vector<SpreadConstraint>& spread,
                 const meta::FieldPath& path,
                 meta::FieldErrors& errors) {
  if (spread.size() > kSpreadMax) {
    errors.TooMany(path, spread.size(), kSpreadMax);
  }
  UniqueNames unique;
  for (size_t i = 0; i < spread.size(); ++i) {
    const SpreadConstraint& item = spread[i];
    const meta::FieldPath at = path.Index(i);
    CheckTopologyKey(item.topology_key, at, errors);
    if (item.max_skew < 0) {
      errors.Invalid(at.Child("maxSkew"), item.max_skew, "must be at least 1");
    }
    CheckSelector(item.label_selector, at.Child("labelSelector"), errors);
    unique.Check(item.topology_key + ":" + item.when_unsatisfiable, at, errors);
  }
}

}  // namespace

void CheckPlacement(const std::optional<Placement>& placement,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors) {
  if (!placement) return;
  if (!placement->priority_class_name.empty()) {
    CheckSubdomainName(placement->priority_class_name, path.Child("priorityClassName"), errors);
  }
  CheckAffinity(placement->affinity, path.Child("affinity"), errors);
  CheckAffinity(placement->anti_affinity, path.Child("antiAffinity"), errors);
  CheckSpread(placement->spread, path.Child("spread"), errors);
  CheckReference(placement->group_ref, path.Child("groupRef"), errors);
  CheckReference(placement->reservation_ref, path.Child("reservationRef"), errors);
}

void CheckPlacementUpdate(const std::optional<Placement>& now,
                          const std::optional<Placement>& before,
                          const meta::FieldPath& path,
                          meta::FieldErrors& errors) {
  const Placement a = now.value_or(Placement{});
  const Placement b = before.value_or(Placement{});
  CheckImmutable(
      a.priority_class_name, b.priority_class_name, path.Child("priorityClassName"), errors);
  CheckImmutable(a.priority, b.priority, path.Child("priority"), errors);
  CheckImmutable(a.group_ref, b.group_ref, path.Child("groupRef"), errors);
}

void KeepPlacementStatus(std::optional<PlacementStatus>& now,
                         const std::optional<PlacementStatus>& before) {
  if (!now) {
    now = before;
    return;
  }
  PlacementStatus kept = before.value_or(PlacementStatus{});
  kept.attempt = now->attempt;
  kept.reason = std::move(now->reason);
  if (!kept.pool_uid.empty()) kept.release = std::move(now->release);
  if (kept.pool_uid.empty()) kept.nominated = std::move(now->nominated);
  if (kept == PlacementStatus{}) {
    now.reset();
  } else {
    now = std::move(kept);
  }
}

}  // namespace berth::apis::core
