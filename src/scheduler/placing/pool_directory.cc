// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/pool_directory.h"

#include <algorithm>
#include <utility>

#include "apis/compute/machine_pool.h"
#include "apis/placement.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume_pool.h"
#include "base/check.h"
#include "base/hash.h"
#include "client/cache/informer.h"

namespace berth::scheduler {
namespace {

TranslatedPool TranslateAny(const meta::Object& object) {
  if (&object.kind() == &apis::compute::kMachinePoolKind) {
    return Translate(object.as<apis::compute::MachinePool>());
  }
  if (&object.kind() == &apis::storage::kVolumePoolKind) {
    return Translate(object.as<apis::storage::VolumePool>());
  }
  CHECK(&object.kind() == &apis::storage::kBucketPoolKind) << object.kind().kind;
  return Translate(object.as<apis::storage::BucketPool>());
}

static_assert(fleet::kShareWhole == kReportedWhole);

Resources FreeOf(const fleet::PoolFacts& facts) {
  Resources free;
  for (const auto& [name, capacity] : facts.capacity) {
    int64_t amount = capacity;
    if (const auto used = facts.allocated.find(name); used != facts.allocated.end()) {
      amount -= used->second;
    }
    if (const auto held = facts.held.find(name); held != facts.held.end()) amount -= held->second;
    free[name == apis::kShare ? std::string(kShareResource) : name] = amount;
  }
  return free;
}

// Whether all is the same that reach is found out from.
bool IsAsNear(const PoolSpec& before, const PoolSpec& now) {
  return before.host == now.host && before.labels == now.labels && before.reach == now.reach;
}

}  // namespace

LedgerVersion VersionOf(const fleet::LedgerVersion& version) {
  // Boots are compared for equality only.
  return {.boot = Fnv1a(version.boot), .counter = version.counter};
}

PoolDirectory::Became PoolDirectory::OnObject(const meta::Object* before, const meta::Object* now) {
  if (now == nullptr) return Remove(*before) ? Became::kNew : Became::kNothing;
  TranslatedPool pool = TranslateAny(*now);
  const PoolEntry* known = FindByUid(pool.spec.uid);
  const bool is_twin = known != nullptr && (known->pool.spec.kind != pool.spec.kind ||
                                            known->pool.spec.name != pool.spec.name);
  if (is_twin || pool.spec.uid.empty()) {
    const std::string uid = pool.spec.uid;
    const std::string first = known == nullptr ? "" : known->pool.spec.name;
    twins_.Put(now->kind(), client::KeyOf(*now), uid, std::move(pool), first);
    return Became::kNothing;
  }
  Became became = Became::kNew;
  if (known != nullptr) {
    became = IsAsNear(known->pool.spec, pool.spec) ? Became::kNothing : Became::kElsewhere;
  }
  Put(std::move(pool));
  return became;
}

void PoolDirectory::Put(TranslatedPool pool) {
  const std::string uid = pool.spec.uid;
  const auto session = sessions_.find(uid);
  if (session != sessions_.end()) {
    pool.spec.state.has_session = true;
    pool.spec.state.is_fence_ready = session->second.fence == fleet::PoolFacts::Fence::kReady;
  }
  const bool is_new = !by_uid_.contains(uid);
  const PoolIndex index = board_.SetPool(pool.spec);
  const auto place =
      by_uid_
          .insert_or_assign(uid,
                            PoolEntry{.index = index, .pool = std::move(pool), .withdrawn = {}})
          .first;
  const auto number = static_cast<size_t>(index);
  if (by_index_.size() <= number) by_index_.resize(number + 1);
  by_index_[number] = &place->second;
  // Counts that change make what was reported in shares of them unknown.
  const bool is_counted = !place->second.pool.spec.class_counts.empty();
  if ((is_new || is_counted) && session != sessions_.end()) ApplySession(place->second);
}

void PoolDirectory::WithdrawClass(PoolIndex index, const std::string& class_name) {
  const PoolEntry* known = Find(index);
  if (known == nullptr) return;
  PoolEntry& entry = by_uid_.find(known->pool.spec.uid)->second;
  if (std::erase(entry.pool.spec.classes, class_name) == 0) return;
  entry.withdrawn.push_back(class_name);
  board_.SetPool(entry.pool.spec);
}

void PoolDirectory::RestoreClasses() {
  for (auto& [uid, entry] : by_uid_) Restore(entry);
}

void PoolDirectory::Restore(PoolEntry& entry) {
  if (entry.withdrawn.empty()) return;
  for (std::string& name : std::exchange(entry.withdrawn, {})) {
    entry.pool.spec.classes.push_back(std::move(name));
  }
  board_.SetPool(entry.pool.spec);
}

bool PoolDirectory::Remove(const meta::Object& pool) {
  if (twins_.Remove(pool.kind(), client::KeyOf(pool))) return false;
  const auto found = by_uid_.find(pool.metadata().uid);
  if (found == by_uid_.end()) return false;
  board_.RemovePool(found->second.index);
  by_index_[static_cast<size_t>(found->second.index)] = nullptr;
  by_uid_.erase(found);
  std::optional<TranslatedPool> twin = twins_.Take(pool.metadata().uid);
  if (!twin) return false;
  Put(*std::move(twin));
  return true;
}

void PoolDirectory::ApplySession(const PoolEntry& entry) {
  const fleet::PoolFacts& facts = sessions_.find(entry.pool.spec.uid)->second;
  board_.Report(entry.index, VersionOf(facts.ledger), FreeOf(facts));
}

void PoolDirectory::OnFleet(const fleet::FleetEvent& event) {
  // It tells no figures; the pool comes last once the store says what it has lost (G2).
  if (event.type == fleet::FleetEvent::Type::kRefused) return;
  const auto found = by_uid_.find(event.pool_uid);
  if (event.type == fleet::FleetEvent::Type::kLeft) {
    sessions_.erase(event.pool_uid);
  } else {
    sessions_.insert_or_assign(event.pool_uid, event.facts);
  }
  if (found == by_uid_.end()) return;
  PoolEntry& entry = found->second;
  if (event.type == fleet::FleetEvent::Type::kJoined) Restore(entry);
  PoolState state = entry.pool.spec.state;
  if (event.type == fleet::FleetEvent::Type::kLeft) {
    state.has_session = entry.pool.mode == PoolMode::kApi;
    board_.ClearReport(entry.index);
  } else {
    state.has_session = true;
    state.is_fence_ready = event.facts.fence == fleet::PoolFacts::Fence::kReady;
    ApplySession(entry);
  }
  if (state == entry.pool.spec.state) return;
  entry.pool.spec.state = state;
  board_.SetPoolState(entry.index, state);
}

void PoolDirectory::Resync(const std::vector<fleet::PoolFacts>& pools) {
  TextMap<fleet::PoolFacts> now;
  for (const fleet::PoolFacts& facts : pools) now.emplace(facts.pool_uid, facts);
  std::vector<std::string> left;
  for (const auto& [uid, facts] : sessions_) {
    if (!now.contains(uid)) left.push_back(uid);
  }
  for (const std::string& uid : left) {
    OnFleet({.type = fleet::FleetEvent::Type::kLeft, .pool_uid = uid, .reason = "", .facts = {}});
  }
  for (const auto& [uid, facts] : now) {
    OnFleet(
        {.type = fleet::FleetEvent::Type::kJoined, .pool_uid = uid, .reason = "", .facts = facts});
  }
}

const PoolEntry* PoolDirectory::Find(PoolIndex index) const {
  const auto number = static_cast<size_t>(index);
  return number < by_index_.size() ? by_index_[number] : nullptr;
}

const PoolEntry* PoolDirectory::FindByUid(std::string_view uid) const {
  const auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? nullptr : &found->second;
}

const PoolEntry* PoolDirectory::FindByName(PoolKind kind, std::string_view name) const {
  const std::optional<PoolIndex> index = board_.FindPool(kind, name);
  return index ? Find(*index) : nullptr;
}

std::vector<const PoolEntry*> PoolDirectory::OfKind(PoolKind kind) const {
  std::vector<const PoolEntry*> pools;
  for (const PoolEntry* pool : by_index_) {
    if (pool != nullptr && pool->pool.spec.kind == kind) pools.push_back(pool);
  }
  std::ranges::sort(
      pools, {}, [](const PoolEntry* pool) -> const std::string& { return pool->pool.spec.name; });
  return pools;
}

}  // namespace berth::scheduler
