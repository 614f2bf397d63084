// SPDX-License-Identifier: Apache-2.0
// PoolObjects from the watch cache.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apiserver/cache/watch_cache.h"
#include "apiserver/pool_objects.h"

namespace berth::apiserver {

class CachedPoolObjects final : public PoolObjects {
 public:
  // `cache` outlives this.
  explicit CachedPoolObjects(const WatchCache& cache) : cache_(cache) {}

  std::optional<meta::Object> Find(const meta::KindInfo& kind,
                                   const client::ObjectKey& key) const override;
  std::vector<meta::Object> OnPool(const meta::KindInfo& kind,
                                   const std::string& namespace_,
                                   const std::string& pool) const override;

 private:
  const WatchCache& cache_;
};

}  // namespace berth::apiserver
