// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/unreadable_removal.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "apiserver/cache/keys.h"
#include "apiserver/errors.h"
#include "base/log.h"
#include "base/strings.h"
#include "meta/at_rest.h"
#include "rt/chaos.h"
#include "rt/sleep.h"

namespace berth::apiserver {

namespace {

constexpr std::string_view kPoolUidField = "status.placement.poolUID";

// Of one commit: 16 pools * 4 keys, and the object itself, are well within store::kMaxTxnKeys. An
// object is bound to one; more are wrong only if something went wrong before.
constexpr size_t kPoolsMax = 16;

// Pools that wait at once while they are looked into: 10,000 pools take 40 looks over all headers.
constexpr size_t kWave = 256;

// Decoded objects per turn of the loop: 64 * 30 us = 2 ms.
constexpr size_t kPerTurn = 64;

size_t PoolUidIndex(const meta::KindInfo& kind) {
  const auto found = std::ranges::find(kind.field_selectors, kPoolUidField);
  return static_cast<size_t>(found - kind.field_selectors.begin());
}

struct Bound {
  const meta::KindInfo* kind = nullptr;
  std::string pool_uid;
  StoredObject stored;
};

// Headers are short and all are looked at in one turn, or what is moved meanwhile would be counted
// twice: 100,000 * 100 ns = 10 ms.
void CollectBound(const KindCache& cache,
                  const meta::KindInfo& kind,
                  const PoolTurns::Pools& pools,
                  std::string_view except,
                  std::vector<Bound>& out) {
  const size_t index = PoolUidIndex(kind);
  for (const auto& [suffix, stored] : cache.objects()) {
    const Result<meta::AtRestView> view = meta::AtRestView::Parse(stored.at_rest.view());
    if (!view.ok() || suffix == except) continue;
    std::string pool_uid(view->FieldValue(index));
    if (pools.contains(pool_uid)) out.push_back({&kind, std::move(pool_uid), stored});
  }
}

}  // namespace

rt::Task<Result<UnreadableRemoval::Removed>> UnreadableRemoval::Remove(const meta::KindInfo& kind,
                                                                       ObjectKey key,
                                                                       StoredObject stored) {
  const std::string store_key = StoreKey(kind, key);
  const Victim victim{.kind = &kind, .suffix = KeySuffix(key), .stored = std::move(stored)};
  CO_TRY(const PoolTurns::Pools pools, co_await PoolsOf(victim));
  for (int attempt = 0; attempt < kCommitAttempts; ++attempt) {
    store::Txn txn;
    txn.conditions.push_back(store::Condition::Unchanged(store_key, victim.stored.revision));
    txn.ops.push_back(store::Op::Delete(store_key));
    CO_TRY(const PoolGuards::Turn turn, co_await guards_.Enter(pools));
    GuardChanges guards(guards_);
    if (!pools.empty()) {
      CO_TRY_STATUS(co_await Refresh(pools));
      CO_TRY(const Counts counts, co_await Count(victim, pools));
      for (const auto& [pool, promises] : counts) {
        CO_TRY_STATUS(guards.Recount(pool, promises.allocated, promises.count));
      }
      guards.AddTo(txn);
    }
    const Result<store::TxnResult> result = co_await parts_.store.Commit(std::move(txn));
    if (result.ok() && result->committed) {
      Removed removed{.revision = result->revision, .pools = guards.Committed(result->revision)};
      CO_TRY_STATUS(co_await parts_.cache.WaitFor(removed.revision));
      co_return removed;
    }
    guards.Failed();
    CO_TRY_STATUS(result);
    if (std::ranges::find(result->conflicts, store_key, &store::KeyValue::key) !=
        result->conflicts.end())
      break;
    REACHED("delete.unreadable_again");
  }
  co_return KindErrors(parts_.scheme, kind).Modified(key.name);
}

rt::Task<Result<PoolTurns::Pools>> UnreadableRemoval::PoolsOf(Victim victim) {
  PoolTurns::Pools pools;
  if (!apis::IsPlaceable(*victim.kind)) co_return pools;
  const Result<meta::AtRestView> view = meta::AtRestView::Parse(victim.stored.at_rest.view());
  if (view.ok()) {
    std::string pool_uid(view->FieldValue(PoolUidIndex(*victim.kind)));
    if (!pool_uid.empty()) pools.insert(std::move(pool_uid));
  } else if (CanCount(victim)) {
    CO_TRY(pools, co_await FindPromising(victim));
  }
  if (!CanCount(victim)) {
    LOG_WARNING(
        "what {} {} took of its pool stays promised until the others that cannot be read are "
        "removed",
        victim.kind->plural,
        Quote(victim.suffix));
    pools.clear();
  }
  co_return pools;
}

rt::Task<Result<PoolTurns::Pools>> UnreadableRemoval::FindPromising(Victim victim) {
  std::vector<std::string> all;
  const KindCache& cache = parts_.cache.Of(apis::PoolKindOf(*victim.kind));
  for (const auto& [suffix, stored] : cache.objects()) {
    const Result<meta::AtRestView> view = meta::AtRestView::Parse(stored.at_rest.view());
    if (view.ok()) all.emplace_back(view->uid());
  }
  PoolTurns::Pools promising;
  for (size_t begin = 0; begin < all.size(); begin += kWave) {
    const size_t end = std::min(all.size(), begin + kWave);
    const PoolTurns::Pools wave(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                all.begin() + static_cast<std::ptrdiff_t>(end));
    CO_TRY(const PoolGuards::Turn turn, co_await guards_.Enter(wave));
    CO_TRY_STATUS(co_await Refresh(wave));
    CO_TRY(const Counts counts, co_await Count(victim, wave));
    for (const auto& [pool, promises] : counts) {
      const std::optional<PoolGuard>& guard = guards_.Of(pool).guard;
      if (!guard) continue;
      const bool is_sum = guard->count == promises.count &&
                          std::ranges::equal(guard->allocated, promises.allocated);
      if (!is_sum) promising.insert(pool);
      if (promising.size() == kPoolsMax) co_return promising;
    }
  }
  co_return promising;
}

rt::Task<Result<UnreadableRemoval::Counts>> UnreadableRemoval::Count(Victim victim,
                                                                     PoolTurns::Pools pools) {
  Counts counts;
  if (!CanCount(victim)) co_return counts;
  std::vector<Bound> bound;
  for (const meta::KindInfo* kind : KindsBeside(*victim.kind)) {
    const std::string_view except = kind == victim.kind ? victim.suffix : std::string_view();
    CollectBound(parts_.cache.Of(*kind), *kind, pools, except, bound);
  }
  for (const std::string& pool : pools) counts[pool];
  for (size_t i = 0; i < bound.size(); ++i) {
    if (i % kPerTurn == kPerTurn - 1) CO_TRY_STATUS(co_await rt::Yield());
    const auto found = counts.find(bound[i].pool_uid);
    if (found == counts.end()) continue;
    const Result<meta::Object> object = Decode(*bound[i].kind, bound[i].stored);
    if (!object.ok()) {
      LOG_WARNING(
          "what is promised on pool {} is not counted: something else that is bound to it cannot "
          "be read",
          bound[i].pool_uid);
      counts.erase(found);
      continue;
    }
    if (!apis::IsBound(*object)) continue;
    ++found->second.count;
    for (const auto& [name, amount] : apis::ToAmounts(apis::PlacementOf(*object)->resources)) {
      if (amount <= 0) continue;
      int64_t& sum = found->second.allocated[name];
      if (__builtin_add_overflow(sum, amount, &sum)) sum = INT64_MAX;  // written by hand
    }
  }
  co_return counts;
}

bool UnreadableRemoval::CanCount(const Victim& victim) const {
  return std::ranges::all_of(KindsBeside(*victim.kind), [&](const meta::KindInfo* kind) {
    const KindCache::Asides& asides = parts_.cache.Of(*kind).aside();
    const bool is_among = kind == victim.kind && asides.contains(victim.suffix);
    return asides.size() == (is_among ? 1U : 0U);
  });
}

rt::Task<Status> UnreadableRemoval::Refresh(PoolTurns::Pools pools) {
  CO_TRY_STATUS(co_await guards_.Reload(std::move(pools)));
  co_return co_await parts_.cache.CatchUp();
}

std::vector<const meta::KindInfo*> UnreadableRemoval::KindsBeside(
    const meta::KindInfo& kind) const {
  std::vector<const meta::KindInfo*> kinds;
  for (const meta::KindInfo* other : parts_.scheme.kinds()) {
    const bool is_beside = apis::IsPlaceable(*other) && other->view == nullptr &&
                           &apis::PoolKindOf(*other) == &apis::PoolKindOf(kind);
    if (is_beside) kinds.push_back(other);
  }
  return kinds;
}

}  // namespace berth::apiserver
