// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/binding.h"

#include <algorithm>
#include <set>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/core/reservation.h"
#include "apis/storage/volume.h"
#include "apiserver/cache/keys.h"
#include "apiserver/errors.h"
#include "apiserver/registry/cluster_identity.h"
#include "apiserver/registry/graveyard.h"
#include "apiserver/registry/object_rules.h"
#include "apiserver/registry/placement_rules.h"
#include "base/strings.h"
#include "rt/chaos.h"
#include "rt/join_all.h"

namespace berth::apiserver {

namespace {

// Keys that an item, a pool (guard and, the first time, the pool itself) and the Lease take.
constexpr size_t kKeysPerObject = 2;
constexpr size_t kKeysPerPool = 3;
// Bytes that a binding adds to an object at most, and room for guards in a transaction.
constexpr size_t kGrowth = 2048;
constexpr size_t kTxnBytes = store::kMaxTxnBytes - 256 * 1024;

const meta::KindInfo& VolumeKind() { return apis::storage::kVolumeKind; }

bool IsPlaceableKind(const meta::KindInfo* kind) {
  return kind != nullptr && apis::IsPlaceable(*kind);
}

Status CheckItem(const client::BindItem& item) {
  if (!IsPlaceableKind(item.kind))
    return BadRequest("only machines, volumes, snapshots, buckets and reservations are bound");
  if (!item.reservation.empty() && item.kind != &apis::compute::kMachineKind) {
    return BadRequest("only machines use reservations");
  }
  if (item.pool.empty() || item.pool_uid.empty()) {
    return BadRequest("bind " + std::string(item.kind->singular) + " " + Quote(item.key.name) +
                      ": the pool's name and UID are required");
  }
  return OkStatus();
}

// The volumes that a machine names, ephemeral ones included.
struct VolumeName {
  std::string name;
  bool is_owned = false;
};
std::vector<VolumeName> VolumesOf(const meta::Object& machine) {
  std::vector<VolumeName> names;
  for (const auto& volume : machine.as<apis::compute::Machine>().spec.volumes) {
    if (volume.volume_ref) {
      names.push_back({.name = volume.volume_ref->name, .is_owned = false});
    } else if (volume.ephemeral) {
      names.push_back({.name = machine.metadata().name + "-" + volume.name, .is_owned = true});
    }
  }
  return names;
}

// The pool's host has not said that it is rid of the object, and may be away for longer than the
// object exists.
bool LeavesTombstone(client::UnbindProof proof, const PoolGuard* guard) {
  const bool by_others =
      proof == client::UnbindProof::kFenced || proof == client::UnbindProof::kOperatorFenced;
  return by_others && guard != nullptr && guard->mode == apis::core::kPoolModeSession;
}

bool IsOwnedBy(const meta::Object& object, const std::string& uid) {
  return std::ranges::any_of(object.metadata().owner_references,
                             [&uid](const auto& owner) { return owner.uid == uid; });
}

}  // namespace

rt::Task<StoreBinder::BindVerdicts> StoreBinder::BindBatch(
    std::vector<client::BindRequest> requests) {
  std::vector<Draft> drafts(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    Draft& draft = drafts[i];
    draft.bind = &requests[i];
    if (requests[i].items.empty()) draft.verdict = BadRequest("a binding has no items");
    for (const client::BindItem& item : requests[i].items) {
      if (Status status = CheckItem(item); !status.ok()) draft.verdict = std::move(status);
      draft.pools.insert(item.pool_uid);
      if (!item.reservation.empty()) draft.keys += kKeysPerObject;
    }
    draft.keys += requests[i].items.size() * kKeysPerObject + draft.pools.size() * kKeysPerPool;
  }
  const Status decided = co_await DecideAll(&drafts);
  BindVerdicts verdicts;
  verdicts.reserve(drafts.size());
  for (Draft& draft : drafts) {
    if (!draft.verdict) draft.verdict = decided;
    if (draft.verdict->ok()) {
      verdicts.emplace_back(std::move(draft.objects));
    } else {
      verdicts.emplace_back(*std::move(draft.verdict));
    }
  }
  co_return verdicts;
}

rt::Task<std::vector<Status>> StoreBinder::UnbindBatch(
    std::vector<client::UnbindRequest> requests) {
  std::vector<Draft> drafts(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    Draft& draft = drafts[i];
    draft.unbind = &requests[i];
    draft.keys = kKeysPerObject + kKeysPerPool + 1;
    if (!IsPlaceableKind(requests[i].kind)) {
      draft.verdict =
          BadRequest("only machines, volumes, snapshots, buckets and reservations are unbound");
      continue;
    }
    AddPoolOf(*requests[i].kind, requests[i].key, draft);
  }
  co_return co_await VerdictsOf(&drafts);
}

rt::Task<std::vector<Status>> StoreBinder::AdoptBatch(std::vector<client::Adoption> adoptions) {
  std::vector<Draft> drafts(adoptions.size());
  for (size_t i = 0; i < adoptions.size(); ++i) {
    const client::Adoption& adoption = adoptions[i];
    Draft& draft = drafts[i];
    draft.adopt = &adoption;
    draft.keys = kKeysPerObject + 2 * kKeysPerPool;
    if (!IsPlaceableKind(adoption.kind)) {
      draft.verdict =
          BadRequest("only machines, volumes, snapshots, buckets and reservations are adopted");
      continue;
    }
    draft.pools.insert(adoption.pool_uid);
    AddPoolOf(*adoption.kind, adoption.key, draft);
  }
  co_return co_await VerdictsOf(&drafts);
}

rt::Task<Status> StoreBinder::Settle() { return SettleIncarnation(parts_.loop, parts_.store); }

void StoreBinder::AddPoolOf(const meta::KindInfo& kind,
                            const client::ObjectKey& key,
                            Draft& draft) {
  const StoredObject* stored = parts_.cache.Of(kind).Find(KeySuffix(key));
  if (stored == nullptr) return;
  Result<meta::Object> object = Decode(kind, *stored);
  if (!object.ok()) {
    draft.verdict = object.status();
  } else if (apis::IsBound(*object)) {
    draft.pools.insert(apis::PlacementOf(*object)->pool_uid);
  }
}

rt::Task<std::vector<Status>> StoreBinder::CreateBoundBatch(meta::Object model,
                                                            std::vector<client::BindItem> items,
                                                            std::string holder,
                                                            int64_t term) {
  Creator::Bound bound{.items = &items,
                       .holder = std::move(holder),
                       .term = term,
                       .guards = &guards_,
                       .terms = &term_};
  co_return co_await creator_.CreateBound(std::move(model), std::move(bound));
}

rt::Task<std::vector<Status>> StoreBinder::VerdictsOf(std::vector<Draft>* drafts) {
  const Status decided = co_await DecideAll(drafts);
  std::vector<Status> verdicts;
  verdicts.reserve(drafts->size());
  for (const Draft& draft : *drafts) verdicts.push_back(draft.verdict.value_or(decided));
  co_return verdicts;
}

rt::Task<Status> StoreBinder::DecideAll(std::vector<Draft>* drafts) {
  for (;;) {
    std::vector<Chunk> chunks = Divide(*drafts);
    if (chunks.empty()) co_return OkStatus();
    std::vector<rt::Task<Status>> commits;
    commits.reserve(chunks.size());
    for (const Chunk& chunk : chunks) commits.push_back(TryCommit(chunk));
    const std::vector<Status> ended = co_await rt::JoinAll(std::move(commits));
    for (size_t i = 0; i < chunks.size(); ++i) {
      for (Draft* draft : chunks[i]) {
        if (draft->verdict) continue;
        if (!ended[i].ok()) {
          draft->verdict = ended[i];
        } else if (++draft->attempts >= kCommitAttempts) {
          draft->verdict = Conflict("the objects or the pool of a binding change all the time");
        }
      }
    }
  }
}

// Requests on one pool come together: they share the guard.
std::vector<StoreBinder::Chunk> StoreBinder::Divide(std::vector<Draft>& drafts) {
  Chunk undecided;
  for (Draft& draft : drafts) {
    if (!draft.verdict) undecided.push_back(&draft);
  }
  std::ranges::sort(undecided, {}, [](const Draft* draft) {
    return std::pair(
        draft->pools.empty() ? std::string_view() : std::string_view(*draft->pools.begin()), draft);
  });
  std::vector<Chunk> chunks;
  size_t keys = 0;
  bool is_open = false;
  for (Draft* draft : undecided) {
    const bool joins = is_open && !draft->goes_alone && keys + draft->keys < store::kMaxTxnKeys;
    if (!joins) {
      chunks.emplace_back();
      keys = 1;
    }
    chunks.back().push_back(draft);
    keys += draft->keys;
    is_open = !draft->goes_alone;
  }
  return chunks;
}

rt::Task<Status> StoreBinder::TryCommit(Chunk chunk) {
  PoolTurns::Pools pools;
  for (const Draft* draft : chunk) pools.insert(draft->pools.begin(), draft->pools.end());
  std::optional<PoolGuards::Turn> turn;
  CO_TRY(PoolGuards::Turn entered, co_await guards_.Enter(pools));
  turn.emplace(std::move(entered));
  std::optional<Work> work;
  Chunk staged;
  work.emplace(guards_);
  if (!Stage(chunk, Freshness::kCached, *work, staged)) {
    REACHED("bind.refused_by_cache");
    CO_TRY_STATUS(co_await parts_.cache.CatchUp());
    CO_TRY_STATUS(co_await guards_.Reload(std::move(pools)));
    work.emplace(guards_);
    staged.clear();
    Stage(chunk, Freshness::kFresh, *work, staged);
  }
  if (staged.empty()) co_return OkStatus();
  CO_TRY(store::Txn txn, MakeTxn(*work));
  Result<store::TxnResult> result = co_await parts_.store.Commit(std::move(txn));
  if (!result.ok()) {
    work->guards.Failed();
    for (Draft* draft : staged) draft->verdict = result.status();
    co_return OkStatus();
  }
  if (result->committed) {
    work->guards.Committed(result->revision);
    Settle(staged, result->revision, *work);
  } else {
    OnConflict(staged, *result, *work);
  }
  // The next commit on these pools need not wait until the cache has this one.
  turn.reset();
  const Status seen = co_await parts_.cache.WaitFor(result->revision);
  if (!seen.ok()) {
    for (Draft* draft : staged) draft->verdict = seen;
  }
  co_return OkStatus();
}

bool StoreBinder::Stage(const Chunk& chunk, Freshness freshness, Work& work, Chunk& staged) {
  bool is_full = false;
  for (Draft* draft : chunk) {
    if (draft->verdict || is_full) continue;
    Status why;
    const Fit fit = draft->bind != nullptr     ? StageBind(*draft, work, why)
                    : draft->unbind != nullptr ? StageUnbind(*draft, work, why)
                                               : StageAdopt(*draft, work, why);
    if (fit == Fit::kStaged) {
      staged.push_back(draft);
    } else if (fit == Fit::kNextCommit) {
      is_full = true;
    } else if (freshness == Freshness::kCached) {
      return false;
    } else {
      draft->verdict = std::move(why);
    }
  }
  return true;
}

Result<StoreBinder::Staged*> StoreBinder::Open(Work& work,
                                               const meta::KindInfo& kind,
                                               const client::ObjectKey& key,
                                               const std::string& uid) {
  std::string store_key = StoreKey(kind, key);
  auto found = work.staged.find(store_key);
  if (found == work.staged.end()) {
    const StoredObject* stored = parts_.cache.Of(kind).Find(KeySuffix(key));
    if (stored == nullptr) return KindErrors(parts_.scheme, kind).NotFound(key.name);
    TRY(meta::Object object, Decode(kind, *stored));
    found = work.staged
                .emplace(std::move(store_key),
                         Staged{.object = std::move(object),
                                .revision = stored->revision,
                                .size = stored->at_rest.size()})
                .first;
  }
  if (!uid.empty() && found->second.object.metadata().uid != uid) {
    return KindErrors(parts_.scheme, kind).NotFound(key.name);
  }
  return &found->second;
}

// The store keys of the volumes that the machine is to claim.
Result<std::vector<std::string>> StoreBinder::CheckClaims(const client::BindRequest& request,
                                                          const meta::Object& machine,
                                                          Work& work) {
  std::vector<std::string> claims;
  const meta::ObjectMeta& metadata = machine.metadata();
  for (const VolumeName& volume : VolumesOf(machine)) {
    const client::ObjectKey key{.namespace_ = metadata.namespace_, .name = volume.name};
    const bool is_joint = std::ranges::any_of(request.items, [&key](const client::BindItem& item) {
      return item.kind == &VolumeKind() && item.key == key;
    });
    // A volume that is not there yet is claimed when it is; the host waits for it.
    if (!is_joint && parts_.cache.Of(VolumeKind()).Find(KeySuffix(key)) == nullptr) continue;
    TRY(const Staged* staged, Open(work, VolumeKind(), key, ""));
    if (volume.is_owned && !IsOwnedBy(staged->object, metadata.uid)) continue;
    TRY_STATUS(CheckClaimable(staged->object, machine));
    claims.push_back(StoreKey(VolumeKind(), key));
  }
  return claims;
}

// Notes what becomes of the reservation that the item goes into. Nothing is changed yet: a later
// item may be refused.
Status StoreBinder::UseReservation(Work& work,
                                   const client::BindItem& item,
                                   const meta::Object& machine,
                                   std::vector<Use>& uses) {
  const client::ObjectKey key{.namespace_ = item.key.namespace_, .name = item.reservation};
  TRY(const Staged* staged, Open(work, apis::core::kReservationKind, key, item.reservation_uid));
  Use use{.key = StoreKey(apis::core::kReservationKind, key),
          .pool_uid = item.pool_uid,
          .room = {},
          .after = staged->object};
  // Members of a group may use the same one.
  const auto before = std::ranges::find(uses.rbegin(), uses.rend(), use.key, &Use::key);
  if (before != uses.rend()) use.after = before->after;
  use.room = RoomOfOne(use.after);
  TRY_STATUS(CheckConsumable(use.after, machine, item, use.room));
  Consume(use.after, machine, use.room);
  uses.push_back(std::move(use));
  return OkStatus();
}

StoreBinder::Fit StoreBinder::StageBind(Draft& draft, Work& work, Status& why) {
  const client::BindRequest& request = *draft.bind;
  const auto refuse = [&why](Status status) {
    why = std::move(status);
    return Fit::kRefused;
  };
  Result<store::Condition> term = term_.Check(request.holder, request.term);
  if (!term.ok()) return refuse(term.status());
  std::vector<Staged*> objects;
  std::set<std::string> keys;
  std::map<std::string, apis::Amounts> asked;
  std::vector<Use> uses;
  for (const client::BindItem& item : request.items) {
    Result<Staged*> object = Open(work, *item.kind, item.key, item.uid);
    if (!object.ok()) return refuse(object.status());
    if (Status status = CheckBindable((*object)->object, item); !status.ok()) return refuse(status);
    if (!keys.insert(StoreKey(*item.kind, item.key)).second) {
      return refuse(BadRequest("a binding names " + Quote(item.key.name) + " twice"));
    }
    objects.push_back(*object);
    for (const auto& [name, amount] : item.resources) {
      if (amount < 0) return refuse(BadRequest("resources." + name + " is negative"));
      // Into room that is kept for it goes at most as much as is kept.
      if (item.reservation.empty()) asked[item.pool_uid][name] += amount;
    }
    if (item.reservation.empty()) continue;
    if (Status used = UseReservation(work, item, (*object)->object, uses); !used.ok()) {
      return refuse(used);
    }
    keys.insert(uses.back().key);
  }
  std::vector<std::string> modes;
  std::vector<std::pair<std::string, const meta::Object*>> claims;
  for (size_t i = 0; i < request.items.size(); ++i) {
    const client::BindItem& item = request.items[i];
    Result<const PoolGuard*> guard =
        work.guards.Open(apis::PoolKindOf(*item.kind), item.pool, item.pool_uid);
    if (!guard.ok()) return refuse(guard.status());
    if (Status room = CheckRoom(**guard, asked[item.pool_uid]); !room.ok()) return refuse(room);
    modes.push_back((*guard)->mode);
    if (item.kind != &apis::compute::kMachineKind || modes[i] != apis::core::kPoolModeSession) {
      continue;
    }
    Result<std::vector<std::string>> volumes = CheckClaims(request, objects[i]->object, work);
    if (!volumes.ok()) return refuse(volumes.status());
    for (std::string& key : *volumes) {
      keys.insert(key);
      claims.emplace_back(std::move(key), &objects[i]->object);
    }
  }
  const size_t more = keys.size() * kKeysPerObject + draft.pools.size() * kKeysPerPool;
  size_t bytes = 0;
  for (const std::string& key : keys) bytes += work.staged.at(key).size + kGrowth;
  if (work.keys > 0 && work.bytes + bytes > kTxnBytes) return Fit::kNextCommit;
  if (1 + work.keys + more > store::kMaxTxnKeys) {
    if (work.keys > 0) return Fit::kNextCommit;
    return refuse({Reason::kRequestTooLarge,
                   "a binding of " + std::to_string(request.items.size()) + " objects takes " +
                       std::to_string(more + 1) + " keys, the limit is " +
                       std::to_string(store::kMaxTxnKeys)});
  }
  work.keys += more;
  work.bytes += bytes;
  work.term = *std::move(term);
  const WallTime now = parts_.loop.WallNow();
  for (Use& use : uses) {
    Staged& reservation = work.staged.at(use.key);
    reservation.object = std::move(use.after);
    reservation.is_changed = true;
    work.guards.Shrink(use.pool_uid, use.room);
  }
  for (size_t i = 0; i < objects.size(); ++i) {
    const client::BindItem& item = request.items[i];
    BecomeBound(objects[i]->object, item, modes[i], now);
    objects[i]->is_changed = true;
    work.guards.Take(item.pool_uid, item.resources);
  }
  for (const auto& [key, machine] : claims) {
    Staged& volume = work.staged.at(key);
    if (Claim(volume.object, *machine)) volume.is_changed = true;
  }
  draft.keys_written.assign(keys.begin(), keys.end());
  return Fit::kStaged;
}

StoreBinder::Fit StoreBinder::StageUnbind(Draft& draft, Work& work, Status& why) {
  const client::UnbindRequest& request = *draft.unbind;
  Result<Staged*> found = Open(work, *request.kind, request.key, request.uid);
  if (!found.ok()) {
    why = found.status().Is(Reason::kNotFound) ? OkStatus() : found.status();
    return Fit::kRefused;
  }
  Staged& staged = **found;
  const size_t bytes = staged.size + kGrowth;
  const size_t more = kKeysPerObject + kKeysPerPool + 2;  // and a tombstone
  if (work.keys > 0 && (work.keys + more > store::kMaxTxnKeys || work.bytes + bytes > kTxnBytes)) {
    return Fit::kNextCommit;
  }
  const bool is_bound = apis::IsBound(staged.object);
  std::string pool;
  if (is_bound) pool = apis::PlacementOf(staged.object)->pool_uid;
  if (is_bound && !draft.pools.contains(pool)) {
    // It was bound anew meanwhile: the next try takes that pool's turn.
    draft.pools = {pool};
    return Fit::kNextCommit;
  }
  const PoolGuard* guard = is_bound ? work.guards.Find(pool) : nullptr;
  why = CheckUnbindable(staged.object, request, guard == nullptr ? "" : guard->mode);
  if (!why.ok()) return Fit::kRefused;
  if (is_bound) {
    why = work.guards.Release(pool, apis::ToAmounts(apis::PlacementOf(staged.object)->resources));
    if (!why.ok()) return Fit::kRefused;
    if (LeavesTombstone(request.proof, guard)) {
      work.tombstones.push_back(MakeTombstone(staged.object));
    }
  }
  BecomeUnbound(staged.object, request, parts_.loop.WallNow());
  staged.is_changed = true;
  work.keys += more;
  work.bytes += bytes;
  draft.keys_written = {StoreKey(*request.kind, request.key)};
  return Fit::kStaged;
}

std::optional<apis::Amounts> StoreBinder::UnitOf(const meta::Object& object) const {
  if (&object.kind() != &apis::core::kReservationKind) return std::nullopt;
  const auto& spec = object.as<apis::core::Reservation>().spec;
  if (!spec.class_ref) return apis::ToAmounts(spec.resources);
  const meta::KindInfo& kind = apis::compute::kMachineClassKind;
  const StoredObject* stored =
      parts_.cache.Of(kind).Find(KeySuffix({.namespace_ = "", .name = spec.class_ref->name}));
  if (stored == nullptr) return std::nullopt;
  const Result<meta::Object> size = Decode(kind, *stored);
  if (!size.ok()) return std::nullopt;
  return apis::ToAmounts(size->as<apis::compute::MachineClass>().capabilities);
}

// The volumes that the machine uses come with adoptions of their own; their claims are in the store
// or are made when the machine is bound the next time. A host's word decides, not a scheduler's, so
// there is no term of one: an adoption of a leader that was deposed fails at the fence of its store
// (store/fenced), as everything does that it writes.
StoreBinder::Fit StoreBinder::StageAdopt(Draft& draft, Work& work, Status& why) {
  const client::Adoption& adoption = *draft.adopt;
  const auto refuse = [&why](Status status) {
    why = std::move(status);
    return Fit::kRefused;
  };
  const KindErrors errors(parts_.scheme, *adoption.kind);
  const std::string suffix = KeySuffix(adoption.key);
  // What cannot be read is not gone: its host keeps it until it can be.
  if (parts_.cache.Of(*adoption.kind).FindAside(suffix) != nullptr) {
    return refuse(errors.Unreadable(adoption.key.name, "its header is damaged"));
  }
  Result<Staged*> found = Open(work, *adoption.kind, adoption.key, adoption.uid);
  if (!found.ok()) return refuse(found.status());
  Staged& staged = **found;
  const size_t bytes = staged.size + kGrowth;
  if (work.keys > 0 &&
      (work.keys + draft.keys > store::kMaxTxnKeys || work.bytes + bytes > kTxnBytes)) {
    return Fit::kNextCommit;
  }
  const bool is_bound = apis::IsBound(staged.object);
  const std::string old_pool = is_bound ? apis::PlacementOf(staged.object)->pool_uid : "";
  if (is_bound && !draft.pools.contains(old_pool)) {
    draft.pools = {adoption.pool_uid, old_pool};
    return Fit::kNextCommit;
  }
  if (Status status = CheckAdoptable(staged.object, adoption); !status.ok()) return refuse(status);
  Result<const PoolGuard*> guard =
      work.guards.Open(apis::PoolKindOf(*adoption.kind), adoption.pool, adoption.pool_uid);
  if (!guard.ok()) return refuse(guard.status());
  const std::string mode = (*guard)->mode;
  if (is_bound) {
    const auto amounts = apis::ToAmounts(apis::PlacementOf(staged.object)->resources);
    if (Status given = work.guards.Release(old_pool, amounts); !given.ok()) return refuse(given);
  }
  BecomeRehomed(staged.object, adoption, UnitOf(staged.object), mode, parts_.loop.WallNow());
  staged.is_changed = true;
  work.guards.Take(adoption.pool_uid, apis::ToAmounts(apis::PlacementOf(staged.object)->resources));
  work.keys += draft.keys;
  work.bytes += bytes;
  draft.keys_written = {StoreKey(*adoption.kind, adoption.key)};
  return Fit::kStaged;
}

Result<store::Txn> StoreBinder::MakeTxn(Work& work) {
  store::Txn txn;
  if (work.term) txn.conditions.push_back(*work.term);
  for (auto& [key, staged] : work.staged) {
    if (!staged.is_changed) continue;
    txn.conditions.push_back(store::Condition::Unchanged(key, staged.revision));
    if (staged.object.metadata().deletion_timestamp && !IsKept(staged.object)) {
      txn.ops.push_back(store::Op::Delete(key));
      continue;
    }
    TRY(Bytes at_rest, Encode(parts_.scheme, staged.object));
    txn.ops.push_back(store::Op::Put(key, std::move(at_rest)));
  }
  for (store::Op& tombstone : work.tombstones) txn.ops.push_back(std::move(tombstone));
  work.guards.AddTo(txn);
  return txn;
}

void StoreBinder::OnConflict(const Chunk& staged, const store::TxnResult& result, Work& work) {
  REACHED("bind.retry_after_conflict");
  work.guards.Failed();
  std::set<std::string_view> changed;
  for (const store::KeyValue& conflict : result.conflicts) changed.insert(conflict.key);
  for (Draft* draft : staged) {
    draft->goes_alone = std::ranges::any_of(
        draft->keys_written, [&changed](const std::string& key) { return changed.contains(key); });
  }
}

void StoreBinder::Settle(const Chunk& staged, store::Revision revision, Work& work) {
  const std::string version = FormatResourceVersion(revision);
  for (Draft* draft : staged) {
    draft->verdict = OkStatus();
    if (draft->bind == nullptr) continue;
    for (const client::BindItem& item : draft->bind->items) {
      meta::Object& object = work.staged.at(StoreKey(*item.kind, item.key)).object;
      object.metadata().resource_version = version;
      draft->objects.push_back(std::move(object));
    }
  }
}

}  // namespace berth::apiserver
