// SPDX-License-Identifier: Apache-2.0
#include "gateway/pool_feed.h"

#include <optional>
#include <set>
#include <utility>

#include "apis/compute/machine_pool.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume_pool.h"

namespace berth::gateway {

class PoolFeed::Kind final : public client::Sink {
 public:
  Kind(PoolFeed& feed, rt::Loop& loop, client::Client& client, const meta::KindInfo& kind)
      : feed_(feed), kind_(kind), reflector_(loop, client, kind, *this, {}) {}
  client::Reflector& reflector() { return reflector_; }

 private:
  void OnListBegin() override {
    unseen_.clear();
    for (const auto& [uid, face] : feed_.pools_) {
      if (face.kind == &kind_) unseen_.emplace(face.name, uid);
    }
    feed_.twins_.ForEachOf(kind_, [this](const client::ObjectKey& key, const std::string& uid) {
      unseen_.emplace(key.name, uid);
    });
  }
  void OnListed(meta::Object object) override {
    unseen_.erase({object.metadata().name, object.metadata().uid});
    feed_.Put(object);
  }
  void OnListEnd() override {
    for (const auto& [name, uid] : std::exchange(unseen_, {})) feed_.Remove(kind_, name, uid);
  }
  void OnEvent(client::WatchEvent event) override {
    using Type = client::WatchEvent::Type;
    if (event.type == Type::kBookmark) return;
    if (event.type != Type::kDeleted) return feed_.Put(event.object);
    const meta::ObjectMeta& gone = event.object.metadata();
    feed_.Remove(kind_, gone.name, gone.uid);
  }

  PoolFeed& feed_;
  const meta::KindInfo& kind_;
  std::set<std::pair<std::string, std::string>> unseen_;  // name and UID
  client::Reflector reflector_;
};

PoolFeed::PoolFeed(rt::Loop& loop, client::Client& client, OnChange on_change)
    : on_change_(std::move(on_change)) {
  const meta::KindInfo* kinds[] = {&apis::compute::kMachinePoolKind,
                                   &apis::storage::kVolumePoolKind,
                                   &apis::storage::kBucketPoolKind};
  for (const meta::KindInfo* kind : kinds) {
    kinds_.push_back(std::make_unique<Kind>(*this, loop, client, *kind));
  }
}
PoolFeed::~PoolFeed() = default;

void PoolFeed::Start(rt::TaskScope& scope) {
  for (const auto& kind : kinds_) scope.Spawn("gateway.pools", kind->reflector().Run());
}

bool PoolFeed::synced() const {
  for (const auto& kind : kinds_) {
    if (!kind->reflector().synced()) return false;
  }
  return true;
}

void PoolFeed::Report(std::string_view name, client::HealthReport& report) const {
  for (const auto& kind : kinds_) report.Add(name, kind->reflector());
}

const PoolFace* PoolFeed::Find(std::string_view uid) const {
  const auto found = pools_.find(uid);
  return found == pools_.end() ? nullptr : &found->second;
}

void PoolFeed::Put(const meta::Object& object) {
  PoolFace now = FaceOf(object);
  const client::ObjectKey key{.namespace_ = "", .name = now.name};
  const auto found = pools_.find(now.uid);
  const bool is_twin =
      found != pools_.end() && (found->second.kind != now.kind || found->second.name != now.name);
  // What is placed by that UID is of the pool that had it first: with both, two hosts would get it.
  if (is_twin || now.uid.empty()) {
    const std::string uid = now.uid;
    const std::string first = is_twin ? found->second.name : "";
    return twins_.Put(object.kind(), key, uid, std::move(now), first);
  }
  twins_.Remove(object.kind(), key);  // it has a UID of its own by now
  if (found == pools_.end()) {
    const auto placed = pools_.emplace(now.uid, std::move(now)).first;
    return on_change_(nullptr, &placed->second);
  }
  const PoolFace before = std::exchange(found->second, std::move(now));
  on_change_(&before, &found->second);
}

void PoolFeed::Remove(const meta::KindInfo& kind, const std::string& name, const std::string& uid) {
  if (twins_.Remove(kind, {.namespace_ = "", .name = name})) return;
  const auto found = pools_.find(uid);
  if (found == pools_.end()) return;
  // A copy that has gone, or got a UID of its own, unseen.
  if (found->second.kind != &kind || found->second.name != name) return;
  const auto node = pools_.extract(found);
  on_change_(&node.mapped(), nullptr);
  std::optional<PoolFace> twin = twins_.Take(uid);
  if (!twin) return;
  const auto placed = pools_.emplace(uid, *std::move(twin)).first;
  on_change_(nullptr, &placed->second);
}

}  // namespace berth::gateway
