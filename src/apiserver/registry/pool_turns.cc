// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/pool_turns.h"

#include <algorithm>

#include "base/check.h"

namespace berth::apiserver {

PoolTurns::~PoolTurns() {
  CHECK(busy_.empty() && queue_.empty()) << "pools are in use while their turns are destroyed";
}

bool PoolTurns::IsFree(const Pools& pools, const std::set<std::string_view>& wanted) const {
  return std::ranges::none_of(pools, [this, &wanted](const std::string& pool) {
    return busy_.contains(pool) || wanted.contains(pool);
  });
}

rt::Task<Result<PoolTurns::Permit>> PoolTurns::Enter(Pools pools) {
  Waiter waiter;
  waiter.pools = &pools;
  waiter.place = queue_.insert(queue_.end(), &waiter);
  Serve();
  if (waiter.queued) {
    const Status turn = co_await waiter.leaf;
    if (!turn.ok()) {
      if (waiter.queued) {
        queue_.erase(waiter.place);
        // Whoever stood behind this one for its pools may go now.
        Serve();
      }
      co_return turn;
    }
  }
  co_return Permit(*this, std::move(pools));
}

void PoolTurns::Leave(const Pools& pools) {
  for (const std::string& pool : pools) busy_.erase(pool);
  Serve();
}

void PoolTurns::Serve() {
  // What those in front wait for is not given to those behind them.
  std::set<std::string_view> wanted;
  for (auto at = queue_.begin(); at != queue_.end();) {
    Waiter& waiter = **at;
    if (waiter.leaf.completed()) {  // cancelled, not yet resumed
      ++at;
      continue;
    }
    if (IsFree(*waiter.pools, wanted)) {
      busy_.insert(waiter.pools->begin(), waiter.pools->end());
      waiter.queued = false;
      at = queue_.erase(at);
      waiter.leaf.Complete(OkStatus());
    } else {
      wanted.insert(waiter.pools->begin(), waiter.pools->end());
      ++at;
    }
  }
}

}  // namespace berth::apiserver
