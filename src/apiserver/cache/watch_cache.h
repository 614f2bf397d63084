// SPDX-License-Identifier: Apache-2.0
// The WatchCache is a copy of the store's present state, kept current by one watch of the store. It
// holds the stored bytes themselves, never decoded objects. Reads, lists and all watches of clients
// are served from it.
//
// Invariants: (1) revision() only grows, and the cache shows exactly the state at revision().
// (2) A watch delivers every change after its start once, in order; what it cannot deliver ends it
// with Expired. (3) When the store's watch is lost for good (Expired), the state is read again and
// compared: watchers see the differences as events and miss only states that were overwritten. The
// ring has a gap there (KindCache::NoteGap): whoever asks for a revision in it, which clients have
// from other servers of the same store, is answered from the store's history.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/cache/fresh_writes.h"
#include "apiserver/cache/kind_cache.h"
#include "apiserver/registry.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "meta/kind.h"
#include "rt/leaf.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "store/store.h"

namespace berth::apiserver {

struct WatchCacheOptions {
  RingLimits ring;
  // How long a request waits for a revision that the cache does not have yet.
  Duration fresh_wait = Duration::Seconds(3);
  Duration bookmark_interval = Duration::Minutes(1);
  metrics::Gauge* unreadable = nullptr;  // how many objects are set aside; may be null
};

class WatchCache {
 public:
  // Loads the state of all kinds (views share the cache of what they show) and follows the store
  // until Close. `store` and `kinds` outlive the cache.
  static rt::Task<Result<std::unique_ptr<WatchCache>>> Start(
      rt::Loop& loop,
      store::Store& store,
      std::vector<const meta::KindInfo*> kinds,
      WatchCacheOptions options);
  WatchCache(const WatchCache&) = delete;
  WatchCache& operator=(const WatchCache&) = delete;
  ~WatchCache();

  // Stops following; waiting reads and watches end with Unavailable. Watches are destroyed before
  // the cache.
  rt::Task<Status> Close();

  // REQUIRES: the kind is stored (or a view of one that is).
  const KindCache& Of(const meta::KindInfo& kind) const { return MutableOf(kind); }
  store::Revision revision() const { return revision_; }
  // Writers offer here what they commit.
  FreshWrites& fresh_writes() { return fresh_writes_; }

  // Ok once the cache has this revision.
  rt::Task<Status> WaitFor(store::Revision revision);
  // The same, but Timeout when it takes longer than a client should wait: "Too large resource
  // version".
  rt::Task<Status> WaitForAtMost(store::Revision revision);
  // Ok once the cache has everything that was committed before the call.
  rt::Task<Status> CatchUp();

  rt::Task<Result<std::unique_ptr<RegistryWatch>>> Watch(const meta::KindInfo& kind,
                                                         WatchStart start);

 private:
  friend class CacheWatch;
  struct Waiter {
    rt::Leaf<Status> leaf;
    bool queued = true;
  };
  using Kinds = std::map<std::string, std::unique_ptr<KindCache>, std::less<>>;

  WatchCache(rt::Loop& loop,
             store::Store& store,
             const std::vector<const meta::KindInfo*>& kinds,
             WatchCacheOptions options);
  KindCache& MutableOf(const meta::KindInfo& kind) const;
  rt::Task<Status> Load();
  rt::Task<Status> Follow();
  rt::Task<Status> FollowOnce();
  rt::Task<Status> Rebuild();
  rt::Task<Status> SendBookmarks();
  void ApplyBatch(const store::WatchBatch& batch);
  void EndBatch(store::Revision revision);
  void CountAside();
  // The cache of the kind that `key` belongs to, or null.
  KindCache* Route(std::string_view key);

  rt::Loop& loop_;
  store::Store& store_;
  const WatchCacheOptions options_;
  Kinds kinds_;                                                    // by key prefix
  std::unordered_map<const meta::KindInfo*, KindCache*> by_kind_;  // views included
  KindCache* last_routed_ = nullptr;
  FreshWrites fresh_writes_;
  store::Revision revision_;
  size_t counted_aside_ = 0;
  std::multimap<store::Revision, Waiter*> waiters_;
  bool closed_ = false;
  rt::TaskScope scope_;
};

// "", "0" or a decimal revision.
Result<store::Revision> ParseResourceVersion(std::string_view text);
std::string FormatResourceVersion(store::Revision revision);

}  // namespace berth::apiserver
