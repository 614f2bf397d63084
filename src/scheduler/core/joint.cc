// SPDX-License-Identifier: Apache-2.0
// Volumes that get their pool together with a machine. Every volume takes, in the order of the
// request, the best volume pool that can be used from the machine's pool and still has room:
// greedy, so with several volumes competing for one small pool an assignment may be missed, never a
// wrong one made.
#include <algorithm>

#include "base/check.h"
#include "scheduler/core/internal/state.h"

namespace berth::scheduler {
namespace {

// What the volumes before it have taken from a pool.
struct Taken {
  size_t pool = 0;
  size_t dimension = 0;
  int64_t amount = 0;
};

bool HasRoomBeside(const PoolTable& pools,
                   const CompiledShape& shape,
                   size_t pool,
                   const std::vector<Taken>& taken) {
  bool fits = true;
  pools.ForEachDemand(shape, pool, [&](size_t dimension, int64_t amount) {
    for (const Taken& other : taken)
      if (other.pool == pool && other.dimension == dimension) amount += other.amount;
    if (pools.free(pool, dimension) < amount) fits = false;
  });
  return fits;
}

}  // namespace

std::vector<JointRanking> BoardState::RankJoint(const Request& request) {
  std::vector<JointRanking> rankings;
  for (const Request& volume : request.joint) {
    CHECK(volume.shape != nullptr && volume.joint.empty());
    const Inquiry inquiry = Inquire(volume);
    struct Option {
      Tier tier;
      int32_t points;
      uint8_t level;
      uint32_t pool;
    };
    std::vector<Option> found;
    pools.of_kind(inquiry.shape.requirements.kind).ForEach([&](size_t pool) {
      if (FirstFailure(inquiry, pool, RoomCheck::kAsked)) return;
      found.push_back(
          {.tier = TierOf(inquiry, pool),
           .points = PointsOf(inquiry, pool),
           .level = LevelOf(pools, pool, inquiry.shape.requirements.policy, inquiry.shape),
           .pool = static_cast<uint32_t>(pool)});
    });
    std::ranges::sort(found, [](const Option& a, const Option& b) {
      if (a.tier != b.tier) return a.tier < b.tier;
      if (a.points != b.points) return a.points > b.points;
      if (a.level != b.level) return a.level > b.level;
      return a.pool < b.pool;
    });
    JointRanking ranking{.shape = &inquiry.shape};
    ranking.position_of.resize(pools.slots(), kNoRank);
    for (uint32_t i = 0; i < found.size(); ++i) {
      ranking.position_of[found[i].pool] = i;
      if (pools.spec(found[i].pool).reach != Reach::kHost)
        ranking.beyond_host.push_back(found[i].pool);
    }
    rankings.push_back(std::move(ranking));
  }
  return rankings;
}

bool BoardState::AssignJoint(const Inquiry& inquiry,
                             size_t machine_pool,
                             std::vector<PoolIndex>* chosen) {
  std::vector<Taken> taken;
  for (const JointRanking& ranking : inquiry.joint) {
    uint32_t best = kNoRank;
    size_t best_pool = 0;
    const auto consider = [&](size_t pool) {
      if (ranking.position_of[pool] >= best) return;
      if (!HasRoomBeside(pools, *ranking.shape, pool, taken)) return;
      best = ranking.position_of[pool];
      best_pool = pool;
    };
    // Pools that serve their own host only are found through the host, not by trying all of them.
    for (const uint32_t pool : pools.pools_of_host(pools.host_of(machine_pool))) consider(pool);
    for (const uint32_t pool : ranking.beyond_host) {
      if (ranking.position_of[pool] >= best) break;
      if (Reaches(pool, machine_pool)) consider(pool);
    }
    if (best == kNoRank) return false;
    pools.ForEachDemand(*ranking.shape, best_pool, [&](size_t dimension, int64_t amount) {
      taken.push_back({.pool = best_pool, .dimension = dimension, .amount = amount});
    });
    if (chosen != nullptr) chosen->push_back(PoolIndex{static_cast<uint32_t>(best_pool)});
  }
  return true;
}

}  // namespace berth::scheduler
