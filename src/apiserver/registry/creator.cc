// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/creator.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/k8s/namespace.h"
#include "apis/placement.h"
#include "apiserver/admission/priority.h"
#include "apiserver/cache/keys.h"
#include "apiserver/errors.h"
#include "apiserver/registry/field_ownership.h"
#include "apiserver/registry/object_rules.h"
#include "apiserver/registry/placement_rules.h"
#include "base/strings.h"
#include "base/text_map.h"
#include "base/uid.h"
#include "meta/at_rest.h"
#include "meta/defaults.h"
#include "meta/names.h"
#include "rt/chaos.h"

namespace berth::apiserver {

namespace {

// Kubernetes' own numbers: names of at most 63 characters, five of them random; 14 million endings
// make a second collision a sign of something else.
constexpr size_t kGeneratedNameMax = 63;
constexpr int kSuffixLength = 5;
constexpr int kNamesTried = 8;

// Room in a transaction for keys and the rewritten quotas.
constexpr size_t kTxnBytes = store::kMaxTxnBytes - 128 * 1024;

// A pool's guard, and the pool itself the first time.
constexpr size_t kKeysPerPool = 3;

const meta::KindInfo& NamespaceKind() { return apis::k8s::kNamespaceKind; }

Status RequireName(const meta::Scheme& scheme, const meta::Object& object) {
  meta::FieldErrors errors;
  errors.Required(meta::FieldPath("metadata").Child("name"), "name or generateName is required");
  return KindErrors(scheme, object.kind()).Invalid("", errors);
}

}  // namespace

rt::Task<std::vector<Result<WriteResult>>> Creator::Create(std::vector<meta::Object> objects,
                                                           WriteContext context) {
  std::vector<Draft> drafts(objects.size());
  for (size_t i = 0; i < objects.size(); ++i) {
    Status status = ValidateView(parts_.scheme, objects[i]);
    drafts[i].object = ToStored(std::move(objects[i]));
    if (status.ok()) status = Prepare(drafts[i], context);
    if (!status.ok()) drafts[i].verdict = std::move(status);
  }
  return CommitAll(std::move(drafts), context.dry_run, nullptr);
}

rt::Task<std::vector<Status>> Creator::CreateBound(meta::Object model, Bound bound) {
  const WriteContext context;
  std::vector<Draft> drafts(bound.items->size());
  PrepareCopies(std::move(model), bound, drafts);
  const std::vector<Result<WriteResult>> made =
      co_await CommitAll(std::move(drafts), context.dry_run, &bound);
  std::vector<Status> verdicts;
  verdicts.reserve(made.size());
  for (const Result<WriteResult>& one : made) verdicts.push_back(one.status());
  co_return verdicts;
}

// What copies have in common is completed and checked once. If there is something wrong with it,
// each copy finds that out in its own name.
void Creator::PrepareCopies(meta::Object model, const Bound& bound, std::vector<Draft>& drafts) {
  if (drafts.empty()) return;
  const WriteContext context;
  const Status view = ValidateView(parts_.scheme, model);
  model = ToStored(std::move(model));
  Draft pattern{.object = model};
  pattern.object.metadata().name = bound.items->front().key.name;
  const bool is_whole = Complete(pattern, context).ok();
  CopyEncoder encoder(parts_.scheme, pattern.object, parts_.loop.WallNow());
  TextMap<std::string> modes;
  for (size_t i = 0; i < drafts.size(); ++i) {
    Draft& draft = drafts[i];
    draft.item = &(*bound.items)[i];
    const std::string& name = draft.item->key.name;
    const bool is_like_it = is_whole && meta::NameProblems(model.kind().name_rule, name).empty();
    draft.object = is_like_it ? pattern.object : model;
    draft.object.metadata().name = name;
    Status status = view;
    if (status.ok()) status = FindMode(draft, *bound.guards, modes);
    if (status.ok()) status = is_like_it ? Imprint(draft, encoder) : Prepare(draft, context);
    if (!status.ok()) draft.verdict = std::move(status);
  }
}

Status Creator::Imprint(Draft& draft, CopyEncoder& encoder) {
  draft.object.metadata().uid =
      draft.item->uid.empty() ? NewUid(parts_.loop.random()) : draft.item->uid;
  TRY_STATUS(NameIt(draft));
  TRY(draft.at_rest, encoder.Seal(draft.object, *draft.item, draft.mode));
  return OkStatus();
}

rt::Task<std::vector<Result<WriteResult>>> Creator::CommitAll(std::vector<Draft> drafts,
                                                              DryRun dry_run,
                                                              const Bound* bound) {
  int failures = 0;
  Chunk order = InOrder(drafts);
  for (Chunk chunk = NextChunk(order); !chunk.empty(); chunk = NextChunk(order)) {
    const Status status = co_await TryCommit(chunk, dry_run, bound);
    const bool gives_up = status.ok() && ++failures > kCommitAttempts;
    for (Draft* draft : chunk) {
      if (draft->verdict) {
        failures = 0;
      } else if (!status.ok()) {
        draft->verdict = status;
      } else if (gives_up) {
        const meta::Object& object = draft->object;
        draft->verdict = KindErrors(parts_.scheme, object.kind()).Modified(object.metadata().name);
      }
    }
  }
  std::vector<Result<WriteResult>> results;
  results.reserve(drafts.size());
  for (Draft& draft : drafts) results.push_back(*std::move(draft.verdict));
  co_return results;
}

Status Creator::Prepare(Draft& draft, const WriteContext& context) {
  TRY_STATUS(Complete(draft, context));
  return Seal(draft);
}

Status Creator::Complete(Draft& draft, const WriteContext& context) {
  meta::Object& object = draft.object;
  meta::ObjectMeta& metadata = object.metadata();
  const meta::KindInfo& kind = object.kind();
  if (kind.storage != meta::Storage::kStored) {
    return KindErrors(parts_.scheme, kind).MethodNotSupported("create");
  }
  if (!metadata.resource_version.empty()) {
    return BadRequest("resourceVersion should not be set on objects to be created");
  }
  if (metadata.name.empty()) draft.generate_name = metadata.generate_name;
  if (metadata.name.empty() && draft.generate_name.empty()) {
    return RequireName(parts_.scheme, object);
  }
  const bool has_uid = draft.item != nullptr && !draft.item->uid.empty();
  std::string uid = has_uid ? draft.item->uid : context.adopted_uid;
  if (uid.empty()) uid = NewUid(parts_.loop.random());
  std::vector<meta::ManagedFieldsEntry> sent = std::move(metadata.managed_fields);
  BecomeNew(object, std::move(uid), parts_.loop.WallNow());
  NoteRequestor(context.identity, object);
  TRY_STATUS(NameIt(draft));
  meta::SetDefaults(object);
  if (kind.prepare_create != nullptr) kind.prepare_create(object.data());
  const CacheSource source(parts_.cache);
  TRY_STATUS(apiserver::Complete(parts_.scheme, source, nullptr, object, parts_.loop.WallNow()));
  if (!context.adopted_uid.empty()) BecomeAdopted(object, parts_.cache.revision());
  TRY_STATUS(Validate(parts_.scheme, nullptr, object, Subresource::kNone));
  TRY_STATUS(Check(parts_.scheme, source, nullptr, object));
  if (context.guard) TRY_STATUS(context.guard(nullptr, object));
  ApplyDefaultPriority(source, object);
  if (context.ownership == Ownership::kApplied) metadata.managed_fields = std::move(sent);
  if (context.ownership == Ownership::kUpdated) {
    RecordOwnership(parts_.scheme, nullptr, {}, context, parts_.loop.WallNow(), object);
  }
  return OkStatus();
}

Status Creator::Seal(Draft& draft) {
  if (draft.item != nullptr) {
    BecomeBound(draft.object, *draft.item, draft.mode, parts_.loop.WallNow());
    draft.object.metadata().generation = 1;
  }
  TRY(draft.at_rest, Encode(parts_.scheme, draft.object));
  return OkStatus();
}

Status Creator::NameIt(Draft& draft) {
  meta::ObjectMeta& metadata = draft.object.metadata();
  if (!draft.generate_name.empty()) {
    metadata.name = draft.generate_name.substr(0, kGeneratedNameMax - kSuffixLength) +
                    parts_.loop.random().NameSuffix(kSuffixLength);
    ++draft.names_tried;
  }
  draft.key =
      StoreKey(draft.object.kind(), {.namespace_ = metadata.namespace_, .name = metadata.name});
  if (draft.key.size() > store::kMaxKeyBytes) {
    return BadRequest("the name is too long: with its namespace and kind it has " +
                      std::to_string(draft.key.size()) + " characters, the limit is " +
                      std::to_string(store::kMaxKeyBytes));
  }
  return OkStatus();
}

Status Creator::FindMode(Draft& draft, PoolGuards& guards, TextMap<std::string>& modes) const {
  if (draft.item == nullptr) return OkStatus();
  const meta::KindInfo& kind = draft.object.kind();
  if (!apis::IsPlaceable(kind))
    return BadRequest("only machines, volumes, snapshots and buckets are bound");
  if (apis::PoolRefOf(draft.object)) {
    return BadRequest("spec." + std::string(apis::PoolRefField(kind)) + " is set by the binding");
  }
  if (&kind == &apis::compute::kMachineKind &&
      !draft.object.as<apis::compute::Machine>().spec.volumes.empty()) {
    return BadRequest("spec.volumes: a machine that claims volumes cannot be created bound");
  }
  if (!draft.item->reservation.empty()) {
    return BadRequest("a machine that uses a reservation cannot be created bound");
  }
  const auto [known, is_new] = modes.try_emplace(draft.item->pool_uid);
  if (is_new) {
    known->second = guards.ModeOf(apis::PoolKindOf(kind), draft.item->pool, draft.item->pool_uid);
  }
  draft.mode = known->second;
  return OkStatus();
}

PoolTurns::Pools Creator::PoolsOf(const Chunk& chunk) {
  PoolTurns::Pools pools;
  for (const Draft* draft : chunk) {
    if (draft->item != nullptr && !draft->verdict) pools.insert(draft->item->pool_uid);
  }
  return pools;
}

bool Creator::Place(const Chunk& chunk, const Bound& bound, Freshness freshness, Places& places) {
  const Result<store::Condition> term = bound.terms->Check(bound.holder, bound.term);
  if (term.ok()) places.term = *term;
  for (Draft* draft : chunk) {
    if (draft->verdict) continue;
    const client::BindItem& item = *draft->item;
    const meta::KindInfo& pool_kind = apis::PoolKindOf(draft->object.kind());
    const Result<const PoolGuard*> guard = places.changes.Open(pool_kind, item.pool, item.pool_uid);
    Status status = term.ok() ? guard.status() : term.status();
    if (status.ok()) status = CheckRoom(**guard, item.resources);
    if (status.ok() && (*guard)->mode != draft->mode) {
      status = Conflict("pool " + Quote(item.pool) + " changed its mode to " + (*guard)->mode);
    }
    if (status.ok()) {
      places.changes.Take(item.pool_uid, item.resources);
    } else if (freshness == Freshness::kCached) {
      return false;
    } else {
      draft->verdict = std::move(status);
      places.has_refused = true;
    }
  }
  return true;
}

// REQUIRES: the turn of `pools` is held.
rt::Task<Result<std::unique_ptr<Creator::Places>>> Creator::PlaceAll(Chunk chunk,
                                                                     const Bound* bound,
                                                                     PoolTurns::Pools pools) {
  auto places = std::make_unique<Places>(*bound->guards);
  if (Place(chunk, *bound, Freshness::kCached, *places)) co_return places;
  CO_TRY_STATUS(co_await parts_.cache.CatchUp());
  CO_TRY_STATUS(co_await bound->guards->Reload(std::move(pools)));
  places = std::make_unique<Places>(*bound->guards);
  Place(chunk, *bound, Freshness::kFresh, *places);
  co_return places;
}

Creator::Chunk Creator::InOrder(std::vector<Draft>& drafts) {
  Chunk order;
  order.reserve(drafts.size());
  for (Draft& draft : drafts) order.push_back(&draft);
  std::ranges::sort(order, {}, [](const Draft* draft) {
    return std::pair(
        draft->item == nullptr ? std::string_view() : std::string_view(draft->item->pool_uid),
        draft);
  });
  return order;
}

Creator::Chunk Creator::NextChunk(Chunk& order) const {
  std::erase_if(order, [](const Draft* draft) { return draft->verdict.has_value(); });
  Chunk chunk;
  size_t keys = 0;
  size_t bytes = 0;
  std::unordered_set<std::string_view> seen;
  std::set<std::string_view> namespaces;
  std::string_view pool;  // those of one pool follow each other
  for (Draft* at : order) {
    Draft& draft = *at;
    // The second of two objects of one name waits for the next commit, and loses there.
    if (seen.contains(draft.key)) continue;
    const std::string& namespace_ = draft.object.metadata().namespace_;
    size_t more_keys = 2;
    if (!namespaces.contains(namespace_)) more_keys += 2 + quota_.KeysFor(namespace_);
    if (draft.item != nullptr && draft.item->pool_uid != pool) {
      more_keys += kKeysPerPool + (pool.empty() ? 1 : 0);
    }
    if (!chunk.empty() &&
        (keys + more_keys > store::kMaxTxnKeys || bytes + draft.at_rest.size() > kTxnBytes)) {
      break;
    }
    keys += more_keys;
    bytes += draft.at_rest.size();
    seen.insert(draft.key);
    namespaces.insert(namespace_);
    if (draft.item != nullptr) pool = draft.item->pool_uid;
    chunk.push_back(&draft);
  }
  return chunk;
}

rt::Task<Status> Creator::TryCommit(Chunk chunk, DryRun dry_run, const Bound* bound) {
  std::set<std::string> namespaces;
  std::set<std::string> counted;  // where quotas have a say
  for (const Draft* draft : chunk) {
    const std::string& namespace_ = draft->object.metadata().namespace_;
    namespaces.insert(namespace_);
    if (QuotaLedger::IsCounted(draft->object.kind())) counted.insert(namespace_);
  }
  CO_TRY(const QuotaLedger::Permits permits, co_await quota_.Enter(counted));
  const bool knows_all = std::ranges::all_of(namespaces, [this](const std::string& namespace_) {
    return namespace_.empty() || parts_.cache.Of(NamespaceKind()).Find(namespace_) != nullptr;
  });
  // Another server may just have made it.
  if (!knows_all) CO_TRY_STATUS(co_await parts_.cache.CatchUp());

  store::Txn txn;
  CheckNamespaces(chunk, txn);
  QuotaCharges charges = quota_.Begin(counted);
  for (Draft* draft : chunk) {
    if (draft->verdict) continue;
    Status status = charges.Charge(nullptr, draft->object);
    if (!status.ok()) draft->verdict = std::move(status);
  }
  if (dry_run == DryRun::kYes) {
    CheckDryRun(chunk);
    co_return OkStatus();
  }
  std::optional<PoolGuards::Turn> turn;
  std::unique_ptr<Places> places;
  if (bound != nullptr) {
    const PoolTurns::Pools pools = PoolsOf(chunk);
    CO_TRY(PoolGuards::Turn entered, co_await bound->guards->Enter(pools));
    turn.emplace(std::move(entered));
    CO_TRY(places, co_await PlaceAll(chunk, bound, pools));
    // Quotas were charged for all of them: the others are tried again without the refused ones.
    if (places->has_refused) co_return OkStatus();
  }
  store::LeaseId lease;
  FreshWrites::Offer offer(parts_.cache.fresh_writes());
  for (Draft* draft : chunk) {
    if (draft->verdict) continue;
    offer.Add(draft->key, draft->at_rest, draft->object);
    CO_TRY(lease, co_await parts_.leases.For(draft->object.kind()));
    txn.conditions.push_back(store::Condition::Absent(draft->key));
    txn.ops.push_back(store::Op::Put(draft->key, draft->at_rest, lease));
  }
  if (txn.ops.empty()) co_return OkStatus();
  CO_TRY_STATUS(charges.AddTo(txn));
  if (places != nullptr) {
    places->changes.AddTo(txn);
    txn.conditions.push_back(*places->term);
  }
  Result<store::TxnResult> result = co_await parts_.store.Commit(std::move(txn));
  if (places != nullptr) {
    if (result.ok() && result->committed) {
      places->changes.Committed(result->revision);
    } else {
      places->changes.Failed();
    }
  }
  if (result.status().Is(Reason::kNotFound)) {
    parts_.leases.Forget(lease);
    co_return OkStatus();
  }
  CO_TRY_STATUS(result);
  if (!result->committed) {
    offer.Withdraw();
    OnConflict(chunk, *result);
  }
  CO_TRY_STATUS(co_await parts_.cache.WaitFor(result->revision));
  if (!result->committed) co_return OkStatus();
  for (Draft* draft : chunk) {
    if (draft->verdict) continue;
    draft->verdict = WriteResult{
        .object = {.at_rest = draft->at_rest, .revision = result->revision}, .created = true};
  }
  co_return OkStatus();
}

void Creator::CheckNamespaces(const Chunk& chunk, store::Txn& txn) {
  std::set<std::string_view> bound;
  std::set<std::string_view> touched;
  for (Draft* draft : chunk) {
    const meta::ObjectMeta& metadata = draft->object.metadata();
    const std::string& namespace_ = metadata.namespace_;
    if (namespace_.empty()) continue;
    const StoredObject* stored = parts_.cache.Of(NamespaceKind()).Find(namespace_);
    if (stored == nullptr) {
      draft->verdict = KindErrors(parts_.scheme, NamespaceKind()).NotFound(namespace_);
      continue;
    }
    const Result<meta::AtRestView> view = meta::AtRestView::Parse(stored->at_rest.view());
    if (view.ok() && view->is_deleting()) {
      draft->verdict = KindErrors(parts_.scheme, draft->object.kind())
                           .NamespaceTerminating(metadata.name, namespace_);
      continue;
    }
    // The commit fails if the namespace changes before it: nothing is created in one that goes, and
    // a new quota misses nothing.
    const std::string key = StoreKey(NamespaceKind(), {.namespace_ = "", .name = namespace_});
    if (bound.insert(namespace_).second) {
      txn.conditions.push_back(store::Condition::Unchanged(key, stored->revision));
    }
    if (QuotaLedger::IsQuota(draft->object.kind()) && touched.insert(namespace_).second) {
      txn.ops.push_back(store::Op::Put(key, stored->at_rest));
    }
  }
}

void Creator::CheckDryRun(const Chunk& chunk) {
  for (Draft* draft : chunk) {
    if (draft->verdict) continue;
    const meta::ObjectMeta& metadata = draft->object.metadata();
    const ObjectKey key{.namespace_ = metadata.namespace_, .name = metadata.name};
    if (parts_.cache.Of(draft->object.kind()).Find(KeySuffix(key)) != nullptr) {
      draft->verdict = KindErrors(parts_.scheme, draft->object.kind()).AlreadyExists(metadata.name);
    } else {
      draft->verdict =
          WriteResult{.object = {.at_rest = draft->at_rest, .revision = {}}, .created = true};
    }
  }
}

void Creator::OnConflict(const Chunk& chunk, const store::TxnResult& result) {
  std::map<std::string_view, Draft*> by_key;
  for (Draft* draft : chunk) {
    if (!draft->verdict) by_key[draft->key] = draft;
  }
  for (const store::KeyValue& conflict : result.conflicts) {
    const auto found = by_key.find(conflict.key);
    if (found == by_key.end()) {
      REACHED("create.retry_changed_surroundings");
      continue;
    }
    Draft& draft = *found->second;
    const KindErrors errors(parts_.scheme, draft.object.kind());
    if (draft.generate_name.empty() || draft.names_tried >= kNamesTried) {
      draft.verdict = errors.AlreadyExists(draft.object.metadata().name);
      continue;
    }
    REACHED("create.generated_name_taken");
    by_key.erase(found);
    Status status = NameIt(draft);
    if (status.ok()) {
      Result<Bytes> bytes = Encode(parts_.scheme, draft.object);
      if (bytes.ok()) draft.at_rest = *std::move(bytes);
      status = bytes.status();
    }
    if (!status.ok()) draft.verdict = std::move(status);
  }
}

}  // namespace berth::apiserver
