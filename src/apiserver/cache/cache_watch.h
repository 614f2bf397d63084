// SPDX-License-Identifier: Apache-2.0
// A CacheWatch is one client's watch. It goes through up to three sources, in this order, without
// gap or duplicate: the present state (if asked for), the store's history (if the start is older
// than the ring, or in a gap of it), the ring.
#pragma once

#include <memory>
#include <vector>

#include "apiserver/cache/kind_cache.h"
#include "apiserver/cache/matcher.h"
#include "apiserver/registry.h"
#include "rt/leaf.h"
#include "store/store.h"

namespace berth::apiserver {

class WatchCache;

class CacheWatch final : public RegistryWatch {
 public:
  CacheWatch(WatchCache& cache, KindCache& kind, const meta::KindInfo& asked, WatchStart start);
  ~CacheWatch() override;

  // The start is "", not "0": the state must be as new as the store.
  bool wants_newest() const { return wants_newest_; }
  void BeginWithState();
  // From now on, without the state.
  void BeginNow();
  rt::Task<Status> BeginAfter(store::Revision after);

  rt::Task<Result<std::vector<RegistryEvent>>> Next() override;

 private:
  void ReadState(std::vector<RegistryEvent>& out);
  rt::Task<Result<std::vector<RegistryEvent>>> ReadHistory();
  Status TranslateHistory(const store::Event& event, std::vector<RegistryEvent>& out);
  void JoinRing(store::Revision after);

  WatchCache& cache_;
  KindCache& kind_;
  const Matcher matcher_;
  const bool bookmarks_;
  const bool wants_newest_;
  bool owes_end_;                    // of the state
  std::vector<StoredObject> state_;  // still to be delivered from `state_next_` on
  size_t state_next_ = 0;
  store::Revision state_revision_;
  std::unique_ptr<store::Watch> history_;
  std::unique_ptr<KindCache::Reader> reader_;  // once the ring is reached
  bool bookmark_due_ = false;
  rt::Leaf<Status>* waiting_ = nullptr;
  Status ended_;
};

}  // namespace berth::apiserver
