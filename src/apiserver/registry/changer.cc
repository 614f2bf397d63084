// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/changer.h"

#include <algorithm>
#include <utility>

#include "apis/placement.h"
#include "apiserver/cache/keys.h"
#include "apiserver/errors.h"
#include "apiserver/registry/field_ownership.h"
#include "apiserver/registry/in_use.h"
#include "apiserver/registry/object_rules.h"
#include "apiserver/registry/placement_rules.h"
#include "apiserver/registry/unreadable_removal.h"
#include "base/log.h"
#include "base/strings.h"
#include "meta/at_rest.h"
#include "meta/defaults.h"
#include "rt/chaos.h"

namespace berth::apiserver {

namespace {

bool IsMarkedInUse(const meta::Object& pool) {
  const auto& finalizers = pool.metadata().finalizers;
  return std::ranges::find(finalizers, apis::core::kPoolInUseFinalizer) != finalizers.end();
}

void MarkInUse(meta::Object& pool, bool in_use) {
  std::vector<std::string>& finalizers = pool.metadata().finalizers;
  std::erase(finalizers, apis::core::kPoolInUseFinalizer);
  if (in_use) finalizers.emplace_back(apis::core::kPoolInUseFinalizer);
}

// Of what cannot be read, as much as the rights to remove it depend on: it may be bound, to the
// pool that its header names or, if that cannot be read either, to any.
meta::Object StandInFor(const meta::KindInfo& kind,
                        const ObjectKey& key,
                        const StoredObject& stored) {
  meta::Object object(StoredKind(kind));
  object.metadata().namespace_ = key.namespace_;
  object.metadata().name = key.name;
  if (!apis::IsPlaceable(object.kind())) return object;
  auto& placement = apis::PlacementOf(object).emplace();
  placement.pool_uid = "unknown";
  const Result<meta::AtRestView> view = meta::AtRestView::Parse(stored.at_rest.view());
  const auto& selectors = object.kind().field_selectors;
  for (size_t i = 0; view.ok() && i < selectors.size(); ++i) {
    if (selectors[i].ends_with("PoolRef.name")) placement.pool = view->FieldValue(i);
  }
  return object;
}

}  // namespace

rt::Task<Result<Changer::Current>> Changer::Load(const meta::KindInfo& kind, ObjectKey key) {
  const std::string suffix = KeySuffix(key);
  const KindCache& cache = parts_.cache.Of(kind);
  if (cache.Find(suffix) == nullptr) CO_TRY_STATUS(co_await parts_.cache.CatchUp());
  const KindErrors errors(parts_.scheme, kind);
  if (const StoredObject* aside = cache.FindAside(suffix)) {
    const Status why = CheckReadable(cache.kind(), suffix, *aside);
    co_return errors.Unreadable(key.name, why.message());
  }
  const StoredObject* stored = cache.Find(suffix);
  if (stored == nullptr) co_return errors.NotFound(key.name);
  Current current{.stored = *stored, .object = {}};
  Result<meta::Object> object = Decode(StoredKind(kind), current.stored);
  if (!object.ok()) co_return errors.Unreadable(key.name, object.status().message());
  current.object = *std::move(object);
  co_return current;
}

const StoredObject* Changer::FindUnreadable(const meta::KindInfo& kind,
                                            const ObjectKey& key) const {
  const KindCache& cache = parts_.cache.Of(kind);
  const std::string suffix = KeySuffix(key);
  if (const StoredObject* aside = cache.FindAside(suffix)) return aside;
  const StoredObject* stored = cache.Find(suffix);
  return stored == nullptr || Decode(StoredKind(kind), *stored).ok() ? nullptr : stored;
}

rt::Task<Result<WriteResult>> Changer::Mutate(const meta::KindInfo& kind,
                                              ObjectKey key,
                                              Mutation mutation,
                                              WriteContext context) {
  bool caught_up = false;
  for (int attempt = 0; attempt < kCommitAttempts; ++attempt) {
    CO_TRY(Current current, co_await Load(kind, key));
    CO_TRY(meta::Object wanted, mutation(FromStored(kind, current.object)));
    meta::Object next = ToStored(std::move(wanted));
    const Status basis = CheckBasis(kind, current, next);
    if (!basis.ok()) {
      // The writer may know more than the cache does yet.
      if (caught_up || !basis.Is(Reason::kConflict)) co_return basis;
      caught_up = true;
      CO_TRY_STATUS(co_await parts_.cache.CatchUp());
      continue;
    }
    CO_TRY(Plan plan, PlanUpdate(current, std::move(next), context));
    if (plan.outcome == Plan::Outcome::kNothing) {
      co_return WriteResult{.object = current.stored, .created = false};
    }
    if (context.dry_run == DryRun::kYes) {
      CO_TRY_STATUS(quota_.Preview(current.object, plan.object));
      co_return WriteResult{.object = {plan.at_rest, current.stored.revision}, .created = false};
    }
    CO_TRY(std::optional<StoredObject> written,
           co_await Commit(key, std::move(current), std::move(plan)));
    if (written) co_return WriteResult{.object = *std::move(written), .created = false};
    REACHED("update.retry_after_conflict");
  }
  co_return KindErrors(parts_.scheme, kind).Modified(key.name);
}

Status Changer::CheckBasis(const meta::KindInfo& kind,
                           const Current& current,
                           const meta::Object& next) {
  const meta::ObjectMeta& wanted = next.metadata();
  const meta::ObjectMeta& present = current.object.metadata();
  const KindErrors errors(parts_.scheme, kind);
  if (!wanted.name.empty() && wanted.name != present.name) {
    return BadRequest("the name of the object (" + wanted.name +
                      ") does not match the name on the URL (" + present.name + ")");
  }
  if (!wanted.namespace_.empty() && wanted.namespace_ != present.namespace_) {
    return BadRequest("the namespace of the object (" + wanted.namespace_ +
                      ") does not match the namespace on the URL (" + present.namespace_ + ")");
  }
  if (!wanted.resource_version.empty() && wanted.resource_version != present.resource_version) {
    return errors.Modified(present.name);
  }
  if (!wanted.uid.empty() && wanted.uid != present.uid) {
    return errors.Conflict(present.name,
                           "Precondition failed: UID in precondition: " + wanted.uid +
                               ", UID in object meta: " + present.uid);
  }
  return OkStatus();
}

Result<Changer::Plan> Changer::PlanUpdate(const Current& current,
                                          meta::Object next,
                                          const WriteContext& context) {
  const meta::KindInfo& kind = next.kind();
  const std::vector<meta::ManagedFieldsEntry> sent = std::move(next.metadata().managed_fields);
  KeepWhatIsFixed(next, current.object, context.subresource);
  meta::SetDefaults(next);
  if (context.subresource == Subresource::kNone) {
    if (kind.prepare_update != nullptr) kind.prepare_update(next.data(), current.object.data());
    TRY_STATUS(Complete(
        parts_.scheme, CacheSource(parts_.cache), &current.object, next, parts_.loop.WallNow()));
  }
  UpdateGeneration(next, current.object);
  TRY_STATUS(Validate(parts_.scheme, &current.object, next, context.subresource));
  TRY_STATUS(Check(parts_.scheme, CacheSource(parts_.cache), &current.object, next));
  if (context.guard) TRY_STATUS(context.guard(&current.object, next));
  quota_.ForgetStaleUse(current.object, next);
  if (context.ownership == Ownership::kApplied) next.metadata().managed_fields = sent;
  if (context.ownership == Ownership::kUpdated) {
    RecordOwnership(parts_.scheme, &current.object, sent, context, parts_.loop.WallNow(), next);
  }
  Plan plan;
  TRY(plan.at_rest, Encode(parts_.scheme, next));
  if (next.metadata().deletion_timestamp && !IsKept(next)) {
    plan.outcome = Plan::Outcome::kDelete;
  } else if (plan.at_rest != current.stored.at_rest) {
    plan.outcome = Plan::Outcome::kPut;
  }
  plan.object = std::move(next);
  return plan;
}

rt::Task<Result<std::optional<StoredObject>>> Changer::Commit(ObjectKey key,
                                                              Current current,
                                                              Plan plan) {
  const meta::KindInfo& kind = current.object.kind();
  std::string store_key = StoreKey(kind, key);
  const bool grows =
      plan.outcome == Plan::Outcome::kPut && quota_.Concerns(current.object, plan.object);
  std::set<std::string> namespaces;
  if (grows) namespaces.insert(key.namespace_);
  CO_TRY(const QuotaLedger::Permits permits, co_await quota_.Enter(namespaces));
  QuotaCharges charges = quota_.Begin(namespaces);
  if (grows) CO_TRY_STATUS(charges.Charge(&current.object, plan.object));

  store::Txn txn;
  txn.conditions.push_back(store::Condition::Unchanged(store_key, current.stored.revision));
  store::LeaseId lease;
  if (plan.outcome == Plan::Outcome::kDelete) {
    txn.ops.push_back(store::Op::Delete(store_key));
  } else {
    CO_TRY(lease, co_await parts_.leases.For(kind));
    txn.ops.push_back(store::Op::Put(store_key, plan.at_rest, lease));
  }
  CO_TRY_STATUS(charges.AddTo(txn));
  std::optional<PoolGuards::Turn> turn;
  GuardChanges guards(guards_);
  if (PoolTurns::Pools pools = PoolsOf(current.object, plan); !pools.empty()) {
    CO_TRY(PoolGuards::Turn entered, co_await guards_.Enter(std::move(pools)));
    turn.emplace(std::move(entered));
    CO_TRY(const bool is_current, ChangeGuards(current.object, plan, guards, txn));
    if (!is_current) co_return std::optional<StoredObject>();
  }
  FreshWrites::Offer offer(parts_.cache.fresh_writes());
  if (plan.outcome == Plan::Outcome::kPut) offer.Add(store_key, plan.at_rest, plan.object);
  Result<store::TxnResult> result = co_await parts_.store.Commit(std::move(txn));
  std::vector<std::string> removed_pools;
  if (result.ok() && result->committed) {
    removed_pools = guards.Committed(result->revision);
  } else {
    guards.Failed();
  }
  if (result.status().Is(Reason::kNotFound)) {
    parts_.leases.Forget(lease);
    co_return std::optional<StoredObject>();
  }
  CO_TRY_STATUS(result);
  CO_TRY_STATUS(co_await parts_.cache.WaitFor(result->revision));
  if (!result->committed) co_return std::optional<StoredObject>();
  if (!removed_pools.empty()) CO_TRY_STATUS(co_await ClearGraves(std::move(removed_pools)));
  co_return StoredObject{.at_rest = plan.at_rest, .revision = result->revision};
}

PoolTurns::Pools Changer::PoolsOf(const meta::Object& before, const Plan& plan) {
  const meta::KindInfo& kind = before.kind();
  const bool leaves = plan.outcome == Plan::Outcome::kDelete;
  if (apis::IsPlaceable(kind) && leaves && apis::IsBound(before)) {
    return {apis::PlacementOf(before)->pool_uid};
  }
  if (!apis::IsPool(kind)) return {};
  const bool changes = leaves ||
                       before.metadata().deletion_timestamp.has_value() !=
                           plan.object.metadata().deletion_timestamp.has_value() ||
                       apis::PoolTermsOf(before) != apis::PoolTermsOf(plan.object);
  if (!changes) return {};
  return {before.metadata().uid};
}

Result<bool> Changer::ChangeGuards(const meta::Object& before,
                                   const Plan& plan,
                                   GuardChanges& guards,
                                   store::Txn& txn) {
  const bool leaves = plan.outcome == Plan::Outcome::kDelete;
  if (apis::IsPool(before.kind())) {
    const PoolGuard* guard = guards.Find(before.metadata().uid);
    const bool in_use = guard != nullptr && guard->count > 0;
    const bool is_deleting = plan.object.metadata().deletion_timestamp.has_value();
    if ((leaves && in_use) || (!leaves && is_deleting && in_use != IsMarkedInUse(plan.object))) {
      return false;
    }
    guards.PoolChanged(before, leaves ? nullptr : &plan.object);
  } else {
    const auto& placement = *apis::PlacementOf(before);
    const PoolGuard* guard = guards.Find(placement.pool_uid);
    // Nobody has proved that the host is rid of it: that is what an unbinding does.
    if (guard != nullptr && guard->mode == apis::core::kPoolModeSession) {
      txn.ops.push_back(MakeTombstone(before));
    }
    TRY_STATUS(guards.Release(placement.pool_uid, apis::ToAmounts(placement.resources)));
  }
  guards.AddTo(txn);
  return true;
}

rt::Task<Status> Changer::ClearGraves(std::vector<std::string> pools) {
  for (std::string& pool : pools) {
    const Status cleared = co_await graveyard_.ClearAll(std::move(pool));
    // What stays names a pool that never returns.
    if (!cleared.ok()) LOG_WARNING("tombstones of a removed pool: {}", cleared.ToString());
  }
  co_return OkStatus();
}

rt::Task<Result<Changer::InUse>> Changer::LookUpUse(const meta::KindInfo& kind, std::string uid) {
  if (!apis::IsPool(kind)) co_return InUse::kNo;
  const PoolTurns::Pools pools = {uid};
  CO_TRY(const PoolGuards::Turn turn, co_await guards_.Enter(pools));
  const PoolGuards::Entry& entry = guards_.Of(uid);
  co_return entry.guard&& entry.guard->count > 0 ? InUse::kYes : InUse::kNo;
}

// Its finalizers are as unknown as the rest.
rt::Task<Result<DeleteResult>> Changer::DeleteUnreadable(const meta::KindInfo& kind,
                                                         ObjectKey key,
                                                         DeleteRequest request,
                                                         WriteContext context) {
  const KindErrors errors(parts_.scheme, kind);
  const StoredObject* found = FindUnreadable(kind, key);
  if (found == nullptr) co_return errors.Modified(key.name);
  const StoredObject stored = *found;
  const bool is_other = !request.resource_version.empty() &&
                        request.resource_version != FormatResourceVersion(stored.revision);
  if (is_other || !request.uid.empty()) {
    co_return errors.Conflict(key.name, "it cannot be read, and so not be compared");
  }
  if (context.force_guard) CO_TRY_STATUS(context.force_guard(StandInFor(kind, key, stored)));
  if (context.dry_run == DryRun::kYes) co_return DeleteResult{.object = stored, .gone = true};
  REACHED("delete.unreadable");
  UnreadableRemoval removal(parts_, guards_);
  CO_TRY(UnreadableRemoval::Removed removed, co_await removal.Remove(kind, std::move(key), stored));
  if (!removed.pools.empty()) CO_TRY_STATUS(co_await ClearGraves(std::move(removed.pools)));
  co_return DeleteResult{.object = stored, .gone = true};
}

rt::Task<Result<DeleteResult>> Changer::Delete(const meta::KindInfo& kind,
                                               ObjectKey key,
                                               DeleteRequest request,
                                               WriteContext context) {
  bool caught_up = false;
  for (int attempt = 0; attempt < kCommitAttempts; ++attempt) {
    Result<Current> loaded = co_await Load(kind, key);
    if (!loaded.ok() && request.force == client::Force::kYes &&
        FindUnreadable(kind, key) != nullptr) {
      co_return co_await DeleteUnreadable(
          kind, std::move(key), std::move(request), std::move(context));
    }
    CO_TRY(Current current, std::move(loaded));
    const Status precondition = CheckPreconditions(current, request);
    if (!precondition.ok()) {
      if (caught_up) co_return precondition;
      caught_up = true;
      CO_TRY_STATUS(co_await parts_.cache.CatchUp());
      continue;
    }
    CO_TRY(const InUse in_use, co_await LookUpUse(kind, current.object.metadata().uid));
    CO_TRY(Plan plan, PlanDelete(current, request, context, in_use));
    const bool gone = plan.outcome == Plan::Outcome::kDelete;
    if (plan.outcome == Plan::Outcome::kNothing) {
      co_return DeleteResult{.object = current.stored, .gone = false};
    }
    if (context.dry_run == DryRun::kYes) {
      co_return DeleteResult{.object = {plan.at_rest, current.stored.revision}, .gone = gone};
    }
    CO_TRY(std::optional<StoredObject> written,
           co_await Commit(key, std::move(current), std::move(plan)));
    if (written) co_return DeleteResult{.object = *std::move(written), .gone = gone};
    REACHED("delete.retry_after_conflict");
  }
  co_return KindErrors(parts_.scheme, kind).Modified(key.name);
}

Status Changer::CheckPreconditions(const Current& current, const DeleteRequest& request) {
  const meta::ObjectMeta& present = current.object.metadata();
  const KindErrors errors(parts_.scheme, current.object.kind());
  if (!request.uid.empty() && request.uid != present.uid) {
    return errors.Conflict(present.name,
                           "the UID in the precondition (" + request.uid +
                               ") does not match the UID in record (" + present.uid +
                               "). The object might have been deleted and then recreated");
  }
  if (!request.resource_version.empty() && request.resource_version != present.resource_version) {
    return errors.Conflict(present.name,
                           "the ResourceVersion in the precondition (" + request.resource_version +
                               ") does not match the ResourceVersion in record (" +
                               present.resource_version + "). The object might have been modified");
  }
  return OkStatus();
}

Result<Changer::Plan> Changer::PlanDelete(const Current& current,
                                          const DeleteRequest& request,
                                          const WriteContext& context,
                                          InUse in_use) {
  const meta::KindInfo& kind = current.object.kind();
  Plan plan{.outcome = Plan::Outcome::kDelete, .object = current.object, .at_rest = {}};
  if (kind.refuse_delete != nullptr) {
    const std::string why = kind.refuse_delete(current.object.data());
    if (!why.empty()) {
      return KindErrors(parts_.scheme, kind).Forbidden(current.object.metadata().name, why);
    }
  }
  SetPropagation(plan.object, request.propagation);
  if (apis::IsPool(kind)) MarkInUse(plan.object, in_use == InUse::kYes);
  const bool is_forced = request.force == client::Force::kYes && apis::IsPlaceable(kind);
  if (IsKeptWhileUsed(kind)) {
    MarkUsed(plan.object, is_forced ? "" : UserOf(parts_.cache, plan.object));
  }
  if (is_forced) {
    if (context.force_guard) TRY_STATUS(context.force_guard(current.object));
    RemovePoolletFinalizers(plan.object);
  }
  if (!IsKept(plan.object)) {
    plan.at_rest = current.stored.at_rest;
    return plan;
  }
  MarkDeleted(plan.object, parts_.loop.WallNow());
  TRY(plan.at_rest, Encode(parts_.scheme, plan.object));
  plan.outcome =
      plan.at_rest == current.stored.at_rest ? Plan::Outcome::kNothing : Plan::Outcome::kPut;
  return plan;
}

}  // namespace berth::apiserver
