// SPDX-License-Identifier: Apache-2.0
#include "gateway/pool_feed.h"

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
      if (face.kind == &kind_) unseen_.insert(uid);
    }
  }
  void OnListed(meta::Object object) override {
    unseen_.erase(object.metadata().uid);
    feed_.Put(object);
  }
  void OnListEnd() override {
    for (const std::string& uid : unseen_) feed_.Remove(uid);
    unseen_.clear();
  }
  void OnEvent(client::WatchEvent event) override {
    using Type = client::WatchEvent::Type;
    if (event.type == Type::kBookmark) return;
    if (event.type == Type::kDeleted) return feed_.Remove(event.object.metadata().uid);
    feed_.Put(event.object);
  }

  PoolFeed& feed_;
  const meta::KindInfo& kind_;
  std::set<std::string> unseen_;
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
  const auto found = pools_.find(now.uid);
  if (found == pools_.end()) {
    const auto placed = pools_.emplace(now.uid, std::move(now)).first;
    return on_change_(nullptr, &placed->second);
  }
  const PoolFace before = std::exchange(found->second, std::move(now));
  on_change_(&before, &found->second);
}

void PoolFeed::Remove(const std::string& uid) {
  auto node = pools_.extract(uid);
  if (!node.empty()) on_change_(&node.mapped(), nullptr);
}

}  // namespace berth::gateway
