// SPDX-License-Identifier: Apache-2.0
#include "gateway/desired_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "apis/adoption.h"
#include "apis/compute/host_tie.h"
#include "apis/compute/machine.h"
#include "apis/core/reservation.h"
#include "apis/core/well_known.h"
#include "apis/k8s/secret.h"
#include "apis/networking/network.h"
#include "apis/networking/network_interface.h"
#include "apis/object_references.h"
#include "apis/placement.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_snapshot.h"
#include "base/hash.h"

namespace berth::gateway {
namespace {

std::string ReferenceOf(std::string_view kind, const client::ObjectKey& key) {
  return std::string(kind) + "/" + key.namespace_ + "/" + key.name;
}

client::ObjectKey KeyOf(const meta::Object& object) {
  return {.namespace_ = object.metadata().namespace_, .name = object.metadata().name};
}

// A status report does not change a body, so it must not change this.
uint64_t FingerprintOf(const meta::Object& object) {
  Fingerprint print;
  print.Add(object.metadata().generation);
  for (const auto& [key, value] : object.metadata().labels) {
    print.Add(key);
    print.Add(value);
  }
  for (const auto& [key, value] : object.metadata().annotations) {
    print.Add(key);
    print.Add(value);
  }
  // What ties a machine to its host is found out after it was placed.
  if (&object.kind() == &apis::compute::kMachineKind) {
    print.Add(int64_t{apis::compute::DiesWithContact(object.as<apis::compute::Machine>())});
  }
  // What a reservation still keeps changes with its status: machines use it up.
  if (&object.kind() == &apis::core::kReservationKind) {
    for (const auto& consumer : object.as<apis::core::Reservation>().status.consumers) {
      print.Add(consumer.uid);
    }
  }
  return print.value();
}

DesiredEntry EntryOf(const meta::Object& object) {
  DesiredEntry entry;
  entry.kind = &object.kind();
  entry.key = KeyOf(object);
  entry.uid = object.metadata().uid;
  if (const auto& placement = apis::PlacementOf(object)) {
    entry.pool_uid = placement->pool_uid;
    entry.placement = static_cast<uint64_t>(placement->epoch);
    if (!placement->pool_uid.empty()) entry.release = placement->release;
  }
  // What a machine still uses stays where it is: R4_6.
  entry.is_deleting =
      object.metadata().deletion_timestamp.has_value() && !apis::IsKeptForUser(object.metadata());
  entry.is_managed_elsewhere =
      object.metadata().annotations.contains(std::string(apis::core::kManagedByAnnotation));
  entry.fingerprint = FingerprintOf(object);
  return entry;
}

}  // namespace

// Brings the objects of one placeable kind.
class DesiredIndex::Placed final : public client::Sink {
 public:
  Placed(DesiredIndex& index, rt::Loop& loop, client::Client& client, const meta::KindInfo& kind)
      : index_(index), kind_(kind), reflector_(loop, client, kind, *this, {}) {}

  client::Reflector& reflector() { return reflector_; }

 private:
  void OnListBegin() override {
    unseen_.clear();
    for (const auto& [uid, entry] : index_.entries_) {
      if (entry.kind == &kind_) unseen_.emplace(entry.key, uid);
    }
    index_.twins_.ForEachOf(kind_, [this](const client::ObjectKey& key, const std::string& uid) {
      unseen_.emplace(key, uid);
    });
  }
  void OnListed(meta::Object object) override {
    unseen_.erase({KeyOf(object), object.metadata().uid});
    index_.Put(object);
  }
  void OnListEnd() override {
    for (const auto& [key, uid] : std::exchange(unseen_, {})) index_.Remove(kind_, key, uid);
    index_.TouchAll(kind_.plural);
  }
  void OnEvent(client::WatchEvent event) override {
    using Type = client::WatchEvent::Type;
    if (event.type == Type::kBookmark) return;
    const client::ObjectKey key = KeyOf(event.object);
    if (event.type == Type::kDeleted) {
      index_.Remove(kind_, key, event.object.metadata().uid);
    } else {
      index_.Put(event.object);
    }
    index_.Touch(kind_.plural, key);
  }

  DesiredIndex& index_;
  const meta::KindInfo& kind_;
  std::set<std::pair<client::ObjectKey, std::string>> unseen_;  // with their UIDs
  client::Reflector reflector_;
};

// Notices changes of what others refer to; keeps nothing of it.
class DesiredIndex::Referenced final : public client::Sink {
 public:
  Referenced(DesiredIndex& index,
             rt::Loop& loop,
             client::Client& client,
             const meta::KindInfo& kind)
      : index_(index),
        kind_(kind),
        reflector_(loop,
                   client,
                   kind,
                   *this,
                   client::ReflectorOptions{.namespace_ = "",
                                            .label_selector = "",
                                            .field_selector = "",
                                            .detail = client::Detail::kMetadata}) {}

  client::Reflector& reflector() { return reflector_; }

 private:
  void OnListBegin() override {}
  void OnListed(meta::Object) override {}
  // What changed while nobody watched is not known: everything is looked at again.
  void OnListEnd() override { index_.TouchAll(kind_.plural); }
  void OnEvent(client::WatchEvent event) override {
    if (event.type == client::WatchEvent::Type::kBookmark) return;
    index_.Touch(kind_.plural, KeyOf(event.object));
  }

  DesiredIndex& index_;
  const meta::KindInfo& kind_;
  client::Reflector reflector_;
};

DesiredIndex::DesiredIndex(rt::Loop& loop, client::Client& client, DesiredListener& listener)
    : listener_(listener) {
  const meta::KindInfo* placed[] = {&apis::compute::kMachineKind,
                                    &apis::storage::kVolumeKind,
                                    &apis::storage::kVolumeSnapshotKind,
                                    &apis::storage::kBucketKind,
                                    &apis::core::kReservationKind};
  for (const meta::KindInfo* kind : placed) {
    placed_.push_back(std::make_unique<Placed>(*this, loop, client, *kind));
  }
  const meta::KindInfo* referenced[] = {&apis::k8s::kSecretKind,
                                        &apis::networking::kNetworkInterfaceKind,
                                        &apis::networking::kNetworkKind};
  for (const meta::KindInfo* kind : referenced) {
    referenced_.push_back(std::make_unique<Referenced>(*this, loop, client, *kind));
  }
}
DesiredIndex::~DesiredIndex() = default;

void DesiredIndex::Start(rt::TaskScope& scope) {
  for (const auto& placed : placed_) scope.Spawn("gateway.placed", placed->reflector().Run());
  for (const auto& referenced : referenced_) {
    scope.Spawn("gateway.referenced", referenced->reflector().Run());
  }
}

bool DesiredIndex::synced() const {
  for (const auto& placed : placed_) {
    if (!placed->reflector().synced()) return false;
  }
  for (const auto& referenced : referenced_) {
    if (!referenced->reflector().synced()) return false;
  }
  return true;
}

void DesiredIndex::Report(std::string_view name, client::HealthReport& report) const {
  for (const auto& placed : placed_) report.Add(name, placed->reflector());
  for (const auto& referenced : referenced_) report.Add(name, referenced->reflector());
}

const DesiredEntry* DesiredIndex::Find(std::string_view uid) const {
  const auto found = entries_.find(uid);
  return found == entries_.end() ? nullptr : &found->second;
}

const std::set<std::string>& DesiredIndex::OfPool(const std::string& pool_uid) const {
  static const std::set<std::string> kNone;
  const auto found = of_pool_.find(pool_uid);
  return found == of_pool_.end() ? kNone : found->second;
}

void DesiredIndex::Put(const meta::Object& object) {
  // Until it is bound its host is told nothing of it, and so goes on leaving it alone.
  if (apis::IsBeingAdopted(object)) return;
  DesiredEntry fresh = EntryOf(object);
  const auto found = entries_.find(fresh.uid);
  const bool is_twin = found != entries_.end() &&
                       (found->second.kind != fresh.kind || found->second.key != fresh.key);
  if (is_twin || fresh.uid.empty()) {
    const client::ObjectKey key = fresh.key;
    const std::string uid = fresh.uid;
    const std::string first = is_twin ? found->second.key.name : "";
    return twins_.Put(object.kind(), key, uid, std::move(fresh), first);
  }
  twins_.Remove(object.kind(), fresh.key);  // it has a UID of its own by now
  if (found == entries_.end()) return Add(std::move(fresh), &object);
  DesiredEntry& entry = found->second;
  const bool is_same = entry.pool_uid == fresh.pool_uid && entry.placement == fresh.placement &&
                       entry.is_deleting == fresh.is_deleting && entry.release == fresh.release &&
                       entry.fingerprint == fresh.fingerprint;
  if (is_same) return;
  DesiredEntry before = entry;
  if (entry.pool_uid != fresh.pool_uid) {
    if (!entry.pool_uid.empty()) Unlink(entry);
    if (!fresh.pool_uid.empty()) of_pool_[fresh.pool_uid].insert(fresh.uid);
  }
  fresh.references = std::move(entry.references);
  fresh.touches = entry.touches + 1;
  entry = std::move(fresh);
  listener_.OnEntry(&before, &entry, &object);
}

void DesiredIndex::Add(DesiredEntry fresh, const meta::Object* object) {
  // What was never placed concerns no host.
  if (fresh.placement == 0) return;
  if (!fresh.pool_uid.empty()) of_pool_[fresh.pool_uid].insert(fresh.uid);
  const auto placed = entries_.emplace(fresh.uid, std::move(fresh)).first;
  listener_.OnEntry(nullptr, &placed->second, object);
}

void DesiredIndex::Unlink(DesiredEntry& entry) {
  const auto pool = of_pool_.find(entry.pool_uid);
  if (pool == of_pool_.end()) return;
  pool->second.erase(entry.uid);
  if (pool->second.empty()) of_pool_.erase(pool);
}

void DesiredIndex::Remove(const meta::KindInfo& kind,
                          const client::ObjectKey& key,
                          const std::string& uid) {
  if (twins_.Remove(kind, key)) return;
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return;
  // A copy that was never placed has come and gone unseen.
  if (found->second.kind != &kind || found->second.key != key) return;
  Unlink(found->second);
  for (const std::string& reference : found->second.references) {
    const auto users = users_.find(reference);
    if (users == users_.end()) continue;
    users->second.erase(uid);
    if (users->second.empty()) users_.erase(users);
  }
  const DesiredEntry before = std::move(found->second);
  entries_.erase(found);
  listener_.OnEntry(&before, nullptr, nullptr);
  // One that was never placed is nobody.
  while (std::optional<DesiredEntry> twin = twins_.Take(uid)) {
    Add(*std::move(twin), nullptr);
    if (entries_.contains(uid)) break;
  }
}

void DesiredIndex::Touch(std::string_view kind, const client::ObjectKey& key) {
  // Most changes are of kinds that nobody refers to.
  const auto first = users_.lower_bound(std::string(kind));
  if (first == users_.end() || !first->first.starts_with(kind)) return;
  const auto found = users_.find(ReferenceOf(kind, key));
  if (found == users_.end()) return;
  for (const std::string& uid : found->second) {
    const auto entry = entries_.find(uid);
    if (entry == entries_.end()) continue;
    entry->second.hash.clear();
    ++entry->second.touches;
    listener_.OnReferenced(entry->second);
  }
}

void DesiredIndex::TouchAll(std::string_view kind) {
  const std::string prefix = std::string(kind) + "/";
  for (auto at = users_.lower_bound(prefix); at != users_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    for (const std::string& uid : at->second) {
      const auto entry = entries_.find(uid);
      if (entry == entries_.end()) continue;
      entry->second.hash.clear();
      ++entry->second.touches;
      listener_.OnReferenced(entry->second);
    }
  }
}

void DesiredIndex::SetReferences(const std::string& uid,
                                 const client::ObjectKey& key,
                                 const Parts& parts) {
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return;
  std::set<std::string> references;
  const auto add = [&](const meta::KindInfo& kind, const auto& named) {
    for (const auto& [name, value] : named) {
      references.insert(ReferenceOf(kind.plural, {.namespace_ = key.namespace_, .name = name}));
    }
  };
  add(apis::storage::kVolumeKind, parts.volumes);
  add(apis::networking::kNetworkInterfaceKind, parts.interfaces);
  add(apis::networking::kNetworkKind, parts.networks);
  add(apis::k8s::kSecretKind, parts.secrets);
  add(apis::storage::kVolumeSnapshotKind, parts.snapshots);
  for (const std::string& old : found->second.references) {
    if (references.contains(old)) continue;
    const auto users = users_.find(old);
    users->second.erase(uid);
    if (users->second.empty()) users_.erase(users);
  }
  for (const std::string& reference : references) users_[reference].insert(uid);
  found->second.references = std::move(references);
}

void DesiredIndex::SetHash(const std::string& uid, uint64_t touches, const std::string& hash) {
  const auto found = entries_.find(uid);
  if (found != entries_.end() && found->second.touches == touches) found->second.hash = hash;
}

}  // namespace berth::gateway
