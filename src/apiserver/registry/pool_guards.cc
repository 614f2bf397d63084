// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/pool_guards.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "apis/core/pool_parts.h"
#include "apiserver/cache/keys.h"
#include "apiserver/errors.h"
#include "apiserver/registry/object_rules.h"
#include "apiserver/registry/write_parts.h"
#include "base/check.h"
#include "base/log.h"
#include "base/strings.h"
#include "meta/at_rest.h"
#include "meta/json.h"
#include "rt/join_all.h"

namespace berth::apiserver {

namespace {

// Pools of one wave of copies: 1,024 * 500 bytes.
constexpr size_t kMadeMax = 1'024;

Status Refused(const PoolGuard& guard, std::string field, std::string why) {
  return {Reason::kForbidden,
          "pool " + Quote(guard.pool) + " " + why,
          {{.kind = CauseKind::kForbidden, .field = std::move(field), .message = why}}};
}

// False if less was taken than is given back.
bool GiveBack(PoolGuard& guard, const apis::Amounts& amounts) {
  bool is_right = guard.count > 0;
  for (const auto& [name, amount] : amounts) {
    if (amount <= 0) continue;
    const auto found = guard.allocated.find(name);
    is_right = is_right && found != guard.allocated.end() && found->second >= amount;
    if (found == guard.allocated.end()) continue;
    found->second -= std::min(amount, found->second);
    if (found->second == 0) guard.allocated.erase(found);
  }
  guard.count = std::max<int64_t>(guard.count - 1, 0);
  return is_right;
}

rt::Task<Result<PoolGuards::Entry>> Read(store::Store* store, std::string pool_uid) {
  store::RangeRequest request;
  request.start = GuardKey(pool_uid);
  CO_TRY(const store::RangeResult found, co_await store->Range(std::move(request)));
  PoolGuards::Entry entry;
  if (!found.items.empty()) {
    CO_TRY(entry.guard, meta::DecodeJsonAs<PoolGuard>(found.items[0].value.view()));
    entry.revision = found.items[0].mod_revision;
  }
  co_return entry;
}

}  // namespace

std::string GuardKey(std::string_view pool_uid) {
  return std::string(kGuardPrefix) + std::string(pool_uid);
}

PoolGuard GuardOf(const meta::Object& pool) {
  PoolGuard guard;
  guard.kind = pool.kind().kind;
  guard.pool = pool.metadata().name;
  UpdateTerms(guard, pool);
  return guard;
}

void UpdateTerms(PoolGuard& guard, const meta::Object& pool) {
  apis::PoolTerms terms = apis::PoolTermsOf(pool);
  guard.mode = std::move(terms.mode);
  guard.cordoned = terms.is_cordoned;
  guard.deleting = pool.metadata().deletion_timestamp.has_value();
  guard.allocatable = {terms.allocatable.begin(), terms.allocatable.end()};
}

Status CheckRoom(const PoolGuard& guard, const apis::Amounts& amounts) {
  if (guard.deleting) return Refused(guard, "deleting", "is being deleted");
  if (guard.cordoned) return Refused(guard, "cordoned", "is cordoned");
  if (guard.mode.empty()) return Refused(guard, "mode", "was never announced by a poollet");
  for (const auto& [name, amount] : amounts) {
    if (amount < 0) return BadRequest("resources." + name + " is negative");
    if (amount == 0) continue;
    const auto allocatable = guard.allocatable.find(name);
    const auto allocated = guard.allocated.find(name);
    const int64_t limit = allocatable == guard.allocatable.end() ? 0 : allocatable->second;
    const int64_t used = allocated == guard.allocated.end() ? 0 : allocated->second;
    if (amount > limit - used) {
      return Refused(guard,
                     name,
                     "has not enough " + name + ": " + std::to_string(amount) + " asked, " +
                         std::to_string(limit - used) + " of " + std::to_string(limit) + " free");
    }
  }
  return OkStatus();
}

PoolGuards::Turn::~Turn() {
  if (guards_ == nullptr) return;
  for (const std::string& pool : pools_) {
    const auto known = guards_->entries_.find(pool);
    if (known != guards_->entries_.end() && !known->second.guard) guards_->entries_.erase(known);
  }
}

rt::Task<Result<PoolGuards::Turn>> PoolGuards::Enter(PoolTurns::Pools pools) {
  CO_TRY(PoolTurns::Permit permit, co_await turns_.Enter(pools));
  CO_TRY_STATUS(co_await Load(pools));
  co_return Turn(*this, std::move(pools), std::move(permit));
}

rt::Task<Status> PoolGuards::Reload(PoolTurns::Pools pools) {
  for (const std::string& pool : pools) entries_.erase(pool);
  co_return co_await Load(std::move(pools));
}

rt::Task<Status> PoolGuards::Load(PoolTurns::Pools pools) {
  std::vector<std::string> missing;
  for (const std::string& pool : pools) {
    if (!entries_.contains(pool)) missing.push_back(pool);
  }
  if (missing.empty()) co_return OkStatus();
  std::vector<rt::Task<Result<Entry>>> reads;
  reads.reserve(missing.size());
  for (const std::string& pool : missing) reads.push_back(Read(&store_, pool));
  std::vector<Result<Entry>> found = co_await rt::JoinAll(std::move(reads));
  for (size_t i = 0; i < missing.size(); ++i) {
    CO_TRY_STATUS(found[i].status().Wrap("read the guard of pool " + missing[i]));
    entries_[missing[i]] = *std::move(found[i]);
  }
  co_return OkStatus();
}

const PoolGuards::Entry& PoolGuards::Of(const std::string& pool_uid) const {
  const auto found = entries_.find(pool_uid);
  CHECK(found != entries_.end()) << "the guard of pool " << pool_uid << " is not loaded";
  return found->second;
}

Result<PoolGuards::Made> PoolGuards::Make(const meta::KindInfo& kind,
                                          const std::string& name,
                                          const std::string& uid) {
  const StoredObject* stored = FindPool(kind, name);
  if (const auto found = made_.find(uid); found != made_.end()) {
    Made made = std::move(found->second);
    made_.erase(found);
    if (stored != nullptr && made.revision == stored->revision) return made;
  }
  if (stored == nullptr) return KindErrors(scheme_, kind).NotFound(name);
  TRY(const meta::Object pool, Decode(kind, *stored));
  if (pool.metadata().uid != uid) return KindErrors(scheme_, kind).NotFound(name);
  return Made{.guard = GuardOf(pool), .revision = stored->revision};
}

std::string PoolGuards::ModeOf(const meta::KindInfo& kind,
                               const std::string& name,
                               const std::string& uid) {
  const auto known = entries_.find(uid);
  if (known != entries_.end() && known->second.guard && known->second.guard->pool == name) {
    return known->second.guard->mode;
  }
  Result<Made> made = Make(kind, name, uid);
  if (!made.ok()) return "";
  std::string mode = made->guard.mode;
  if (made_.size() >= kMadeMax) made_.clear();
  made_.emplace(uid, *std::move(made));
  return mode;
}

const StoredObject* PoolGuards::FindPool(const meta::KindInfo& kind,
                                         const std::string& name) const {
  return cache_.Of(kind).Find(KeySuffix({.namespace_ = "", .name = name}));
}

const meta::KindInfo* PoolGuards::PoolKindNamed(std::string_view kind) const {
  for (const meta::KindInfo* candidate : scheme_.kinds()) {
    if (apis::IsPool(*candidate) && candidate->kind == kind) return candidate;
  }
  return nullptr;
}

const PoolGuard* GuardChanges::Find(const std::string& pool_uid) const {
  if (const auto changed = changes_.find(pool_uid); changed != changes_.end()) {
    return changed->second.guard ? &*changed->second.guard : nullptr;
  }
  const PoolGuards::Entry& entry = guards_.Of(pool_uid);
  return entry.guard ? &*entry.guard : nullptr;
}

GuardChanges::Change& GuardChanges::Edit(const std::string& pool_uid) {
  const auto [at, inserted] = changes_.try_emplace(pool_uid);
  if (inserted) at->second.guard = guards_.Of(pool_uid).guard;
  return at->second;
}

Result<const PoolGuard*> GuardChanges::Open(const meta::KindInfo& pool_kind,
                                            const std::string& pool,
                                            const std::string& pool_uid) {
  if (const PoolGuard* known = Find(pool_uid)) {
    if (known->kind == pool_kind.kind && known->pool == pool) return known;
    return KindErrors(guards_.scheme(), pool_kind).NotFound(pool);
  }
  TRY(PoolGuards::Made made, guards_.Make(pool_kind, pool, pool_uid));
  Change& change = Edit(pool_uid);
  change.guard = std::move(made.guard);
  change.pool_key = StoreKey(pool_kind, {.namespace_ = "", .name = pool});
  change.pool_revision = made.revision;
  return &*change.guard;
}

void GuardChanges::Take(const std::string& pool_uid, const apis::Amounts& amounts) {
  Change& change = Edit(pool_uid);
  change.is_used = true;
  for (const auto& [name, amount] : amounts) {
    if (amount <= 0) continue;
    // What hosts say that they have is not checked against anything (StageAdopt).
    int64_t& sum = change.guard->allocated[name];
    sum += std::min(amount, std::numeric_limits<int64_t>::max() - sum);
  }
  ++change.guard->count;
}

Status GuardChanges::Release(const std::string& pool_uid, const apis::Amounts& amounts) {
  // The pool was removed from under the object.
  if (Find(pool_uid) == nullptr) return OkStatus();
  Change& change = Edit(pool_uid);
  change.is_used = true;
  // Most likely the guard is older than the object, and the commit fails.
  if (!GiveBack(*change.guard, amounts)) change.is_short = true;
  if (change.guard->deleting && change.guard->count == 0) return ReleasePool(pool_uid, change);
  return OkStatus();
}

void GuardChanges::Shrink(const std::string& pool_uid, const apis::Amounts& amounts) {
  if (Find(pool_uid) == nullptr) return;
  Change& change = Edit(pool_uid);
  change.is_used = true;
  ++change.guard->count;  // the object itself stays
  if (!GiveBack(*change.guard, amounts)) change.is_short = true;
}

Status GuardChanges::Recount(const std::string& pool_uid,
                             const apis::Amounts& amounts,
                             int64_t count) {
  if (Find(pool_uid) == nullptr) return OkStatus();
  Change& change = Edit(pool_uid);
  change.is_used = true;
  change.guard->allocated = {amounts.begin(), amounts.end()};
  change.guard->count = count;
  if (change.guard->deleting && count == 0) return ReleasePool(pool_uid, change);
  return OkStatus();
}

Status GuardChanges::ReleasePool(const std::string& pool_uid, Change& change) {
  const meta::KindInfo* kind = guards_.PoolKindNamed(change.guard->kind);
  const StoredObject* stored =
      kind == nullptr ? nullptr : guards_.FindPool(*kind, change.guard->pool);
  if (stored == nullptr) return OkStatus();
  TRY(meta::Object pool, Decode(*kind, *stored));
  std::vector<std::string>& finalizers = pool.metadata().finalizers;
  if (pool.metadata().uid != pool_uid ||
      std::erase(finalizers, apis::core::kPoolInUseFinalizer) == 0) {
    return OkStatus();
  }
  change.pool_key = StoreKey(*kind, {.namespace_ = "", .name = change.guard->pool});
  change.pool_revision = stored->revision;
  if (IsKept(pool)) {
    TRY(change.pool_at_rest, Encode(guards_.scheme(), pool));
  } else {
    change.pool_at_rest = Bytes();
    change.guard.reset();
  }
  return OkStatus();
}

void GuardChanges::PoolChanged(const meta::Object& before, const meta::Object* after) {
  // The condition on the guard alone keeps one from being made of the pool's old state.
  Change& change = Edit(before.metadata().uid);
  change.is_used = true;
  if (after == nullptr) {
    change.guard.reset();
  } else if (change.guard) {
    UpdateTerms(*change.guard, *after);
  }
}

size_t GuardChanges::keys() const {
  size_t keys = 0;
  for (const auto& [pool, change] : changes_) {
    if (!change.is_used) continue;
    keys += 2;
    if (!change.pool_key.empty()) keys += change.pool_at_rest ? 2 : 1;
  }
  return keys;
}

void GuardChanges::AddTo(store::Txn& txn) const {
  for (const auto& [pool_uid, change] : changes_) {
    if (!change.is_used) continue;
    const PoolGuards::Entry& entry = guards_.Of(pool_uid);
    std::string key = GuardKey(pool_uid);
    txn.conditions.push_back({.key = key, .mod_revision = entry.revision});
    if (change.guard) {
      if (change.guard != entry.guard) {
        txn.ops.push_back(store::Op::Put(key, Bytes(meta::EncodeJsonOf(*change.guard))));
      }
    } else if (entry.guard) {
      txn.ops.push_back(store::Op::Delete(key));
    }
    if (change.pool_key.empty()) continue;
    txn.conditions.push_back(store::Condition::Unchanged(change.pool_key, change.pool_revision));
    if (!change.pool_at_rest) continue;
    txn.ops.push_back(change.pool_at_rest->empty()
                          ? store::Op::Delete(change.pool_key)
                          : store::Op::Put(change.pool_key, *change.pool_at_rest));
  }
}

std::vector<std::string> GuardChanges::Committed(store::Revision revision) {
  std::vector<std::string> removed;
  for (auto& [pool_uid, change] : changes_) {
    if (!change.is_used) continue;
    const PoolGuards::Entry& entry = guards_.Of(pool_uid);
    const store::Revision now = change.guard == entry.guard ? entry.revision : revision;
    if (entry.guard && !change.guard) removed.push_back(pool_uid);
    if (change.is_short) LOG_ERROR("pool {}: more was given back than was taken", pool_uid);
    guards_.Set(pool_uid, {.guard = std::move(change.guard), .revision = now});
  }
  return removed;
}

void GuardChanges::Failed() {
  for (const auto& [pool_uid, change] : changes_) guards_.Forget(pool_uid);
}

}  // namespace berth::apiserver
