// SPDX-License-Identifier: Apache-2.0
#include "scheduler/translate/translate.h"

#include <algorithm>
#include <utility>

#include "apis/compute/host_tie.h"
#include "apis/core/placement.h"
#include "apis/core/pool_parts.h"
#include "apis/placement.h"

namespace berth::scheduler {
namespace {

constexpr std::string_view kMachinePrefix = "class/machine.";
constexpr std::string_view kVolumePrefix = "class/volume.";
constexpr int64_t kDisksMax = int64_t{1} << 60;  // bytes: 1 EiB
constexpr int32_t kWeightMax = 100;              // of a wish, as validated

TaintEffect EffectOf(std::string_view effect) {
  if (effect == apis::core::kPreferNoSchedule) return TaintEffect::kPreferNoSchedule;
  if (effect == apis::core::kNoExecute) return TaintEffect::kNoExecute;
  return TaintEffect::kNoSchedule;
}

std::vector<Taint> TaintsOf(const std::vector<apis::core::Taint>& taints) {
  std::vector<Taint> out;
  for (const auto& taint : taints) {
    out.push_back({.key = taint.key,
                   .value = taint.value,
                   .effect = EffectOf(taint.effect),
                   .is_restricted = apis::core::IsRestrictedTaint(taint.key)});
  }
  return out;
}

std::vector<Toleration> TolerationsOf(const std::vector<apis::core::Toleration>& tolerations) {
  std::vector<Toleration> out;
  for (const auto& toleration : tolerations) {
    Toleration& added = out.emplace_back();
    added.key = toleration.key;
    added.op = toleration.operator_ == apis::core::kTolerateExists ? Toleration::Op::kExists
                                                                   : Toleration::Op::kEqual;
    added.value = toleration.value;
    if (!toleration.effect.empty()) added.effect = EffectOf(toleration.effect);
  }
  return out;
}

SelectorTerm::Op OpOf(meta::Selector::Operator op) {
  switch (op) {
    case meta::Selector::Operator::kIn: return SelectorTerm::Op::kIn;
    case meta::Selector::Operator::kNotIn: return SelectorTerm::Op::kNotIn;
    case meta::Selector::Operator::kExists: return SelectorTerm::Op::kExists;
    case meta::Selector::Operator::kDoesNotExist: return SelectorTerm::Op::kDoesNotExist;
    case meta::Selector::Operator::kGreaterThan: return SelectorTerm::Op::kGreater;
    case meta::Selector::Operator::kLessThan: return SelectorTerm::Op::kLess;
  }
  return SelectorTerm::Op::kIn;
}

// Selectors of stored objects were validated; one that is wrong all the same selects nothing.
Selector SelectorOf(const meta::LabelSelector& selector) {
  Selector out;
  const Result<meta::Selector> parsed = meta::Selector::From(selector);
  if (!parsed.ok()) {
    out.terms.push_back({.key = "", .op = SelectorTerm::Op::kIn, .values = {}});
    return out;
  }
  for (const auto& requirement : parsed->requirements()) {
    out.terms.push_back(
        {.key = requirement.key, .op = OpOf(requirement.op), .values = requirement.values});
  }
  return out;
}

Company CompanyOf(const apis::core::AffinityTerm& term) {
  return {.selector = SelectorOf(term.label_selector),
          .namespaces = {},
          .topology_key = term.topology_key};
}

void AddCompany(const std::optional<apis::core::Affinity>& affinity,
                int32_t sign,
                std::vector<Company>& required,
                std::vector<PreferredCompany>& preferred) {
  if (!affinity) return;
  for (const auto& term : affinity->required) required.push_back(CompanyOf(term));
  for (const auto& wish : affinity->preferred) {
    const int32_t weight = std::clamp(wish.weight, 0, kWeightMax);
    preferred.push_back({.company = CompanyOf(wish.term), .weight = sign * weight});
  }
}

SpreadRule SpreadOf(const apis::core::SpreadConstraint& constraint, const Labels& labels) {
  SpreadRule rule;
  rule.company.selector =
      constraint.label_selector ? SelectorOf(*constraint.label_selector) : Selector::Equals(labels);
  rule.company.topology_key = constraint.topology_key;
  rule.max_skew = constraint.max_skew;
  rule.otherwise = constraint.when_unsatisfiable == apis::core::kScheduleAnyway
                       ? SpreadRule::Otherwise::kScheduleAnyway
                       : SpreadRule::Otherwise::kDoNotSchedule;
  return rule;
}

Policy PolicyOf(std::string_view policy) {
  if (policy == apis::core::kPolicySpread) return Policy::kSpread;
  if (policy == apis::core::kPolicyBalanced) return Policy::kBalanced;
  if (policy == apis::core::kPolicyBinpack) return Policy::kBinpack;
  return kDefaultPolicy;
}

void AddPlacement(const apis::core::Placement& placement, Requirements& out) {
  AddCompany(placement.affinity, 1, out.affinity, out.preferred_company);
  AddCompany(placement.anti_affinity, -1, out.anti_affinity, out.preferred_company);
  for (const auto& constraint : placement.spread) {
    out.spread.push_back(SpreadOf(constraint, out.labels));
  }
  out.policy = PolicyOf(placement.policy);
}

template <class Conditions>
bool IsTrue(const Conditions& conditions, std::string_view type) {
  return std::any_of(conditions.begin(), conditions.end(), [type](const auto& condition) {
    return condition.type == type && condition.status == "True";
  });
}

template <class Conditions>
bool IsSaid(const Conditions& conditions, std::string_view type) {
  return std::any_of(conditions.begin(), conditions.end(), [type](const auto& condition) {
    return condition.type == type;
  });
}

PoolMode ModeOf(const std::optional<apis::core::PoolAgent>& agent, std::string_view state) {
  if (agent && agent->mode == apis::core::kPoolModeSession) return PoolMode::kSession;
  if (agent && agent->mode == apis::core::kPoolModeApi) return PoolMode::kApi;
  // Poollets written for IronCore know nothing of modes: they report a state.
  return state.empty() ? PoolMode::kUnknown : PoolMode::kApi;
}

// What the three kinds of pools have in common.
template <class Pool>
TranslatedPool TranslateCommon(PoolKind kind, const Pool& pool) {
  TranslatedPool out;
  out.spec.kind = kind;
  out.spec.name = pool.metadata.name;
  out.spec.uid = pool.metadata.uid;
  if (pool.spec.host_ref) out.spec.host = pool.spec.host_ref->name;
  out.spec.labels = Labels(pool.metadata.labels.begin(), pool.metadata.labels.end());
  out.spec.taints = TaintsOf(pool.spec.taints);
  out.mode = ModeOf(pool.status.agent, pool.status.state);
  PoolState& state = out.spec.state;
  state.is_ready = IsSaid(pool.status.conditions, apis::core::kPoolReady)
                       ? IsTrue(pool.status.conditions, apis::core::kPoolReady)
                       : pool.status.state == "Ready" || pool.status.state == "Available";
  state.has_session = out.mode == PoolMode::kApi;
  state.is_cordoned = pool.spec.unschedulable;
  state.is_deleting = pool.metadata.deletion_timestamp.has_value();
  state.is_fence_ready = IsTrue(pool.status.conditions, apis::core::kPoolFenceReady);
  return out;
}

// The vector part of a capacity. A pool that only counts per class has none, and a table of those
// counts instead. Defect 1: allocatable already has placements subtracted, so capacity is what
// counts.
template <class Pool>
void TranslateCapacity(const Pool& pool, std::string_view class_prefix, TranslatedPool& out) {
  for (const auto& [name, amount] : apis::Allocatable(pool.status.capacity, pool.spec.limits)) {
    if (name != apis::kShare) out.spec.capacity[name] = amount;
  }
  if (!out.spec.capacity.empty()) return;
  for (const auto& [name, quantity] : pool.status.capacity) {
    if (!name.starts_with(class_prefix)) continue;
    out.class_capacity[name.substr(class_prefix.size())] = quantity.Value();
  }
}

// Nobody takes less than nothing: what was written past the validation gives no room to others.
Resources ToResources(const apis::Amounts& amounts) {
  Resources resources;
  for (const auto& [name, amount] : amounts) resources[name] = std::max<int64_t>(amount, 0);
  return resources;
}

// The same, and no more than that of all together, which is more than any pool has.
void AddDisk(const meta::Quantity& limit, int64_t& storage) {
  const int64_t disk = std::clamp<int64_t>(limit.Value(), 0, kDisksMax);
  storage = std::min(std::min(storage, kDisksMax) + disk, kDisksMax);
}

template <class References>
std::vector<std::string> NamesOf(const References& references) {
  std::vector<std::string> names;
  for (const auto& reference : references) names.push_back(reference.name);
  return names;
}

}  // namespace

Resources TakenOf(const TranslatedPool& pool,
                  std::string_view class_name,
                  const Resources& resources) {
  if (pool.class_capacity.empty()) return resources;
  const auto held = pool.class_capacity.find(class_name);
  const auto size = resources.find(std::string(apis::core::kStorage));
  const bool is_volume = pool.spec.kind == PoolKind::kVolume && size != resources.end();
  return {{std::string(apis::kShare),
           apis::ShareOf(is_volume ? size->second : 1,
                         held == pool.class_capacity.end() ? 0 : held->second)}};
}

TranslatedPool Translate(const apis::compute::MachinePool& pool) {
  TranslatedPool out = TranslateCommon(PoolKind::kMachine, pool);
  TranslateCapacity(pool, kMachinePrefix, out);
  out.spec.classes = NamesOf(pool.status.available_machine_classes);
  // Defect 2: classes share the host, so they are fractions of one pool.
  out.spec.class_counts = {out.class_capacity.begin(), out.class_capacity.end()};
  return out;
}

TranslatedPool Translate(const apis::storage::VolumePool& pool) {
  TranslatedPool out = TranslateCommon(PoolKind::kVolume, pool);
  TranslateCapacity(pool, kVolumePrefix, out);
  out.spec.classes = NamesOf(pool.status.available_volume_classes);
  const std::string_view reach = apis::storage::ReachOf(pool.spec);
  out.spec.reach = reach == apis::storage::kReachHost     ? Reach::kHost
                   : reach == apis::storage::kReachZone   ? Reach::kZone
                   : reach == apis::storage::kReachRegion ? Reach::kRegion
                                                          : Reach::kAny;
  // Providers that count per class say the same bytes once for each class.
  for (const auto& [name, bytes] : out.class_capacity) {
    int64_t& storage = out.spec.capacity[std::string(apis::core::kStorage)];
    storage = std::max(storage, bytes);
  }
  return out;
}

TranslatedPool Translate(const apis::storage::BucketPool& pool) {
  TranslatedPool out = TranslateCommon(PoolKind::kBucket, pool);
  out.spec.classes = NamesOf(pool.status.available_bucket_classes);
  return out;
}

Requirements Translate(const apis::compute::Machine& machine,
                       const apis::compute::MachineClass& size) {
  Requirements out;
  out.kind = PoolKind::kMachine;
  out.class_name = machine.spec.machine_class_ref.name;
  out.resources = ToResources(apis::ToAmounts(size.capabilities));
  for (const auto& volume : machine.spec.volumes) {
    const auto& limit = volume.local_disk   ? volume.local_disk->size_limit
                        : volume.empty_disk ? volume.empty_disk->size_limit
                                            : std::optional<meta::Quantity>();
    if (limit) AddDisk(*limit, out.resources[std::string(apis::core::kStorage)]);
  }
  out.pools = Selector::Equals(machine.spec.machine_pool_selector);
  out.tolerations = TolerationsOf(machine.spec.tolerations);
  out.namespace_name = machine.metadata.namespace_;
  out.labels = Labels(machine.metadata.labels.begin(), machine.metadata.labels.end());
  if (machine.spec.placement) AddPlacement(*machine.spec.placement, out);
  out.needs_fence = apis::compute::DiesWithContact(machine);
  return out;
}

Requirements Translate(const apis::core::Reservation& reservation,
                       const apis::compute::MachineClass* size) {
  Requirements out;
  out.kind = PoolKind::kMachine;
  if (size != nullptr) {
    out.class_name = size->metadata.name;
    out.resources = ToResources(apis::ToAmounts(size->capabilities));
  } else {
    out.resources = ToResources(apis::ToAmounts(reservation.spec.resources));
  }
  out.pools = Selector::Equals(reservation.spec.selector);
  out.namespace_name = reservation.metadata.namespace_;
  return out;
}

Requirements Times(Requirements one, int64_t count) {
  for (auto& [name, amount] : one.resources) {
    if (__builtin_mul_overflow(amount, count, &amount)) amount = INT64_MAX;  // fits nowhere
  }
  return one;
}

Requirements Translate(const apis::storage::Volume& volume) {
  Requirements out;
  out.kind = PoolKind::kVolume;
  if (volume.spec.volume_class_ref) out.class_name = volume.spec.volume_class_ref->name;
  const meta::Quantity* size =
      apis::core::FindResource(volume.spec.resources, apis::core::kStorage);
  if (size != nullptr) AddDisk(*size, out.resources[std::string(apis::core::kStorage)]);
  out.pools = Selector::Equals(volume.spec.volume_pool_selector);
  out.tolerations = TolerationsOf(volume.spec.tolerations);
  out.namespace_name = volume.metadata.namespace_;
  return out;
}

Requirements Translate(const apis::storage::Bucket& bucket) {
  Requirements out;
  out.kind = PoolKind::kBucket;
  if (bucket.spec.bucket_class_ref) out.class_name = bucket.spec.bucket_class_ref->name;
  out.pools = Selector::Equals(bucket.spec.bucket_pool_selector);
  out.tolerations = TolerationsOf(bucket.spec.tolerations);
  out.namespace_name = bucket.metadata.namespace_;
  return out;
}

bool HasLocalState(const apis::compute::Machine& machine) {
  return std::any_of(
      machine.spec.volumes.begin(), machine.spec.volumes.end(), [](const auto& volume) {
        return volume.local_disk.has_value() || volume.empty_disk.has_value();
      });
}

std::vector<std::string> VolumeNamesOf(const apis::compute::Machine& machine) {
  std::vector<std::string> names;
  for (const auto& volume : machine.spec.volumes) {
    if (volume.volume_ref) names.push_back(volume.volume_ref->name);
    if (volume.ephemeral) names.push_back(machine.metadata.name + '-' + volume.name);
  }
  return names;
}

}  // namespace berth::scheduler
