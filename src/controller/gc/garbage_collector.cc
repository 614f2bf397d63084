// SPDX-License-Identifier: Apache-2.0
#include "controller/gc/garbage_collector.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "controller/finalizers.h"
#include "rt/chaos.h"
#include "rt/join_all.h"
#include "rt/sleep.h"

namespace berth::controller {

namespace {

constexpr size_t kWorkers = 8;
constexpr Duration kSyncPoll = Duration::Millis(20);
// The domain under which Berth's own parts name the owners of what they make, whether or not it is
// one of those that are served.
constexpr std::string_view kHomeDomain = ".ironcore.dev";

// Null if no kind of ours is named.
const meta::KindInfo* KindOfOwner(const meta::Scheme& scheme, const meta::OwnerReference& owner) {
  const meta::GroupVersion version = meta::SplitApiVersion(owner.api_version);
  const meta::KindInfo* kind = scheme.FindKind(version.group, version.version, owner.kind);
  if (kind != nullptr || !version.group.ends_with(kHomeDomain)) return kind;
  const std::string group =
      std::string(version.group.substr(0, version.group.size() - kHomeDomain.size() + 1)) +
      scheme.domains()[0];
  return scheme.FindKind(group, version.version, owner.kind);
}

}  // namespace

// Follows one kind into the graph.
class GarbageCollector::KindSink final : public client::Sink {
 public:
  KindSink(GarbageCollector& collector, const meta::KindInfo& kind)
      : collector_(collector),
        kind_(kind),
        reflector_(collector.loop_,
                   collector.client_,
                   kind,
                   *this,
                   {.namespace_ = "",
                    .label_selector = "",
                    .field_selector = "",
                    .detail = client::Detail::kMetadata}) {}

  client::Reflector& reflector() { return reflector_; }

  void OnListBegin() override {
    // Ends may have gone unseen.
    collector_.found_.clear();
    ++collector_.endings_;
    collector_.graph_.BeginList(kind_);
  }
  void OnListed(meta::Object object) override { collector_.Touch(collector_.graph_.Put(object)); }
  void OnListEnd() override {
    collector_.Touch(collector_.graph_.EndList(kind_));
    // Owners that went unseen while there was no watch are not in the graph: look at everything.
    collector_.Touch(collector_.graph_.Owned());
  }
  void OnEvent(client::WatchEvent event) override {
    if (event.type == client::WatchEvent::Type::kDeleted) {
      collector_.OnLeaving(event.object.metadata().uid);
      collector_.Touch(collector_.graph_.Remove(event.object.metadata().uid));
    } else {
      collector_.OnObject(event.object);
    }
  }

 private:
  GarbageCollector& collector_;
  const meta::KindInfo& kind_;
  client::Reflector reflector_;
};

GarbageCollector::GarbageCollector(rt::Loop& loop,
                                   client::Client& client,
                                   const meta::Scheme& scheme)
    : loop_(loop),
      client_(client),
      scheme_(scheme),
      runner_(loop, "garbage collector", *this, kWorkers) {
  for (const meta::KindInfo* kind : scheme.kinds()) {
    // Events are many, own nothing, and go by themselves.
    if (kind->storage != meta::Storage::kStored || kind->view != nullptr) continue;
    if (kind->kind == "Event") continue;
    sinks_.push_back(std::make_unique<KindSink>(*this, *kind));
  }
}

GarbageCollector::~GarbageCollector() = default;

bool GarbageCollector::idle() const { return runner_.queue().idle(); }

void GarbageCollector::Report(client::HealthReport& report) const {
  runner_.Report(report);
  for (const auto& sink : sinks_) report.Add(runner_.name(), sink->reflector());
}

void GarbageCollector::OnObject(const meta::Object& object) {
  const meta::ObjectMeta& metadata = object.metadata();
  std::vector<std::string> touched = graph_.Put(object);
  if (metadata.deletion_timestamp) {
    OnLeaving(metadata.uid);
  } else if (IsOwnedForSure(metadata)) {
    std::erase(touched, metadata.uid);
  }
  Touch(touched);
}

void GarbageCollector::OnLeaving(const std::string& uid) {
  found_.erase(uid);
  ++endings_;
}

bool GarbageCollector::IsOwnedForSure(const meta::ObjectMeta& metadata) const {
  if (metadata.owner_references.empty()) return false;
  return std::ranges::all_of(metadata.owner_references, [&](const meta::OwnerReference& owner) {
    const auto found = found_.find(owner.uid);
    if (found == found_.end()) return false;
    const FoundOwner& known = found->second;
    return known.name == owner.name && known.kind == owner.kind &&
           known.api_version == owner.api_version && known.namespace_ == metadata.namespace_;
  });
}

void GarbageCollector::Touch(const std::vector<std::string>& uids) {
  for (const std::string& uid : uids) {
    if (graph_.Find(uid) != nullptr) runner_.queue().Add(uid);
  }
}

rt::Task<Status> GarbageCollector::Run() {
  std::vector<rt::Task<Status>> tasks;
  for (const auto& sink : sinks_) tasks.push_back(sink->reflector().Run());
  tasks.push_back(WaitForSync());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

// "Nobody depends on it" is only known once everybody was seen.
rt::Task<Status> GarbageCollector::WaitForSync() {
  while (
      !std::ranges::all_of(sinks_, [](const auto& sink) { return sink->reflector().synced(); })) {
    CO_TRY_STATUS(co_await rt::Sleep(kSyncPoll));
  }
  co_return co_await runner_.Run();
}

rt::Task<Result<std::optional<Duration>>> GarbageCollector::Reconcile(std::string uid) {
  const OwnershipGraph::Node* found = graph_.Find(uid);
  if (found == nullptr) co_return std::optional<Duration>();
  const OwnershipGraph::Node node = *found;
  if (node.orphans_dependents) CO_TRY_STATUS(co_await FinishOrphaning(node, uid));
  if (node.waits_for_dependents) CO_TRY_STATUS(co_await FinishForeground(node, uid));
  if (!node.owners.empty() && !node.is_deleting) {
    CO_TRY_STATUS(co_await CollectIfUnowned(node, uid));
  }
  co_return std::optional<Duration>();
}

rt::Task<Status> GarbageCollector::CollectIfUnowned(OwnershipGraph::Node node, std::string uid) {
  Result<meta::Object> object = co_await client_.Get(*node.kind, node.key);
  if (object.status().Is(Reason::kNotFound)) co_return OkStatus();
  CO_TRY_STATUS(object);
  if (object->metadata().uid != uid || object->metadata().deletion_timestamp) co_return OkStatus();
  if (object->metadata().owner_references.empty()) co_return OkStatus();
  CO_TRY(Owners owners, co_await ClassifyOwners(*object));
  if (!owners.solid.empty()) {
    std::vector<std::string> drop = std::move(owners.gone);
    std::ranges::move(owners.waiting, std::back_inserter(drop));
    if (drop.empty()) co_return OkStatus();
    REACHED("gc.drop_owner");
    co_return co_await DropOwners(std::move(node), std::move(uid), std::move(drop));
  }
  if (owners.waiting.empty()) {
    co_return co_await Delete(std::move(node), *std::move(object), OwnersState::kGone);
  }
  CO_TRY_STATUS(co_await BreakCircle(node, uid));
  co_return co_await Delete(std::move(node), *std::move(object), OwnersState::kWaiting);
}

// Two objects that own each other, both deleted in the foreground, would wait for each other for
// ever: the one that is deleted second stops blocking.
rt::Task<Status> GarbageCollector::BreakCircle(OwnershipGraph::Node node, std::string uid) {
  const std::vector<std::string> dependents = graph_.DependentsOf(uid);
  const bool is_circle = std::ranges::any_of(dependents, [this](const std::string& dependent) {
    const OwnershipGraph::Node* found = graph_.Find(dependent);
    return found != nullptr && found->waits_for_dependents;
  });
  if (!is_circle) co_return OkStatus();
  REACHED("gc.circle");
  std::function<bool(meta::ObjectMeta&)> change = [](meta::ObjectMeta& metadata) {
    bool changed = false;
    for (meta::OwnerReference& owner : metadata.owner_references) {
      changed = changed || owner.block_owner_deletion.value_or(false);
      owner.block_owner_deletion = false;
    }
    return changed;
  };
  co_return co_await EditMetadata(
      client_, *node.kind, std::move(node.key), std::move(uid), std::move(change));
}

rt::Task<Result<GarbageCollector::Owners>> GarbageCollector::ClassifyOwners(meta::Object object) {
  Owners owners;
  for (const meta::OwnerReference& owner : object.metadata().owner_references) {
    CO_TRY(const Presence presence, co_await Look(owner, object));
    auto& list = presence == Presence::kSolid     ? owners.solid
                 : presence == Presence::kWaiting ? owners.waiting
                                                  : owners.gone;
    list.push_back(owner.uid);
  }
  co_return owners;
}

rt::Task<Result<GarbageCollector::Presence>> GarbageCollector::Look(meta::OwnerReference owner,
                                                                    meta::Object dependent) {
  const meta::KindInfo* kind = KindOfOwner(scheme_, owner);
  if (kind == nullptr || kind->storage != meta::Storage::kStored) co_return Presence::kSolid;
  client::ObjectKey key{.namespace_ = "", .name = owner.name};
  if (kind->scope == meta::Scope::kNamespaced) {
    if (dependent.metadata().namespace_.empty()) co_return Presence::kSolid;
    key.namespace_ = dependent.metadata().namespace_;
  }
  const uint64_t endings = endings_;
  const Result<meta::Object> found = co_await client_.Get(*kind, std::move(key));
  if (found.status().Is(Reason::kNotFound)) co_return Presence::kGone;
  CO_TRY_STATUS(found);
  const meta::ObjectMeta& metadata = found->metadata();
  if (metadata.uid != owner.uid) co_return Presence::kGone;
  const bool waits = metadata.deletion_timestamp && HasFinalizer(metadata, kForegroundFinalizer);
  // Only what is followed is heard of when it ends, and only if its end was not heard of before.
  if (!metadata.deletion_timestamp && kind->view == nullptr && endings == endings_) {
    found_.insert_or_assign(owner.uid,
                            FoundOwner{.api_version = owner.api_version,
                                       .kind = owner.kind,
                                       .namespace_ = dependent.metadata().namespace_,
                                       .name = owner.name});
  }
  co_return waits ? Presence::kWaiting : Presence::kSolid;
}

rt::Task<Status> GarbageCollector::DropOwners(OwnershipGraph::Node node,
                                              std::string uid,
                                              std::vector<std::string> owners) {
  std::function<bool(meta::ObjectMeta&)> change = [owners](meta::ObjectMeta& metadata) {
    return std::erase_if(metadata.owner_references, [&owners](const meta::OwnerReference& owner) {
             return std::ranges::find(owners, owner.uid) != owners.end();
           }) > 0;
  };
  co_return co_await EditMetadata(
      client_, *node.kind, std::move(node.key), std::move(uid), std::move(change));
}

rt::Task<Status> GarbageCollector::Delete(OwnershipGraph::Node node,
                                          meta::Object object,
                                          OwnersState owners) {
  const meta::ObjectMeta& metadata = object.metadata();
  client::DeleteOptions options;
  options.uid = metadata.uid;
  // An owner that waits for this one waits for all that depends on it, too.
  const bool in_foreground =
      owners == OwnersState::kWaiting && !graph_.DependentsOf(metadata.uid).empty();
  if (in_foreground || HasFinalizer(metadata, kForegroundFinalizer)) {
    options.propagation = client::Propagation::kForeground;
  } else if (HasFinalizer(metadata, kOrphanFinalizer)) {
    options.propagation = client::Propagation::kOrphan;
  }
  const Status status =
      co_await client_.Delete(*node.kind, std::move(node.key), std::move(options));
  co_return status.Is(Reason::kNotFound) ? OkStatus() : status;
}

rt::Task<Status> GarbageCollector::FinishForeground(OwnershipGraph::Node node, std::string uid) {
  // Dependents were queued when the deletion was seen; the last one to go queues this again.
  if (graph_.HasBlockingDependents(uid)) co_return OkStatus();
  co_return co_await RemoveFinalizer(
      client_, *node.kind, std::move(node.key), std::move(uid), std::string(kForegroundFinalizer));
}

rt::Task<Status> GarbageCollector::FinishOrphaning(OwnershipGraph::Node node, std::string uid) {
  for (const std::string& dependent : graph_.DependentsOf(uid)) {
    const OwnershipGraph::Node* found = graph_.Find(dependent);
    if (found == nullptr) continue;
    std::vector<std::string> owner = {uid};
    CO_TRY_STATUS(co_await DropOwners(*found, dependent, std::move(owner)));
  }
  co_return co_await RemoveFinalizer(
      client_, *node.kind, std::move(node.key), std::move(uid), std::string(kOrphanFinalizer));
}

}  // namespace berth::controller
