// SPDX-License-Identifier: Apache-2.0
// Volumes that get their pool together with a machine. Every volume takes, in the order of the
// request, the best volume pool that can be used from the machine's pool and still has room. Where
// one finds none because of those before it, these make way: depth first, so that of all ways the
// one is found in which the first volume has its best pool, then the second, and so on.
#include <algorithm>

#include "base/check.h"
#include "scheduler/core/internal/state.h"

namespace berth::scheduler {
namespace {

// Pools that are tried for the volumes of one machine with the same volume pools within reach. Four
// volumes with four pools each are tried in every way; of many volumes that compete for many pools
// which are nearly full a way may be missed, never a wrong one taken. 340 * 30 ns = 10 us, only
// where the first try finds nothing.
constexpr int kTrialsMax = 4 + 4 * 4 + 4 * 4 * 4 + 4 * 4 * 4 * 4;
// And for one question, however many hosts have disks of their own: 64 * 10 us = 640 us. From there
// on the first try alone counts.
constexpr int kTrialsOfQuestion = 64 * kTrialsMax;

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

void Take(const PoolTable& pools,
          const CompiledShape& shape,
          size_t pool,
          std::vector<Taken>& taken) {
  pools.ForEachDemand(shape, pool, [&](size_t dimension, int64_t amount) {
    taken.push_back({.pool = pool, .dimension = dimension, .amount = amount});
  });
}

// Tries what the first try of AssignJoint did not find.
class JointSearch {
 public:
  JointSearch(const BoardState& state, const Inquiry& inquiry, size_t machine_pool, int trials)
      : state_(state), inquiry_(inquiry), trials_left_(trials) {
    for (const JointRanking& ranking : inquiry.joint) {
      options_.push_back(state.OptionsOf(ranking, machine_pool));
    }
  }

  // From this volume on, for those that have a place in chosen().
  bool Place(size_t volume) {
    if (volume == options_.size()) return true;
    const CompiledShape& shape = *inquiry_.joint[volume].shape;
    for (const uint32_t pool : options_[volume]) {
      if (trials_left_ == 0) return false;
      --trials_left_;
      if (!HasRoomBeside(state_.pools, shape, pool, taken_)) continue;
      const size_t before = taken_.size();
      Take(state_.pools, shape, pool, taken_);
      chosen_.push_back(PoolIndex{pool});
      if (Place(volume + 1)) return true;
      chosen_.pop_back();
      taken_.resize(before);
    }
    return false;
  }
  const std::vector<PoolIndex>& chosen() const { return chosen_; }
  int trials_left() const { return trials_left_; }

 private:
  const BoardState& state_;
  const Inquiry& inquiry_;
  std::vector<std::vector<uint32_t>> options_;  // by volume, best first
  std::vector<Taken> taken_;
  std::vector<PoolIndex> chosen_;
  int trials_left_;
};

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

std::vector<uint32_t> BoardState::OptionsOf(const JointRanking& ranking,
                                            size_t machine_pool) const {
  std::vector<uint32_t> found;
  for (const uint32_t pool : pools.pools_of_host(pools.host_of(machine_pool)))
    if (ranking.position_of[pool] != kNoRank) found.push_back(pool);
  for (const uint32_t pool : ranking.beyond_host)
    if (pools.host_of(pool) != pools.host_of(machine_pool) && Reaches(pool, machine_pool))
      found.push_back(pool);
  std::ranges::sort(found, {}, [&](uint32_t pool) { return ranking.position_of[pool]; });
  return found;
}

std::unique_ptr<JointAnswers> BoardState::NoAnswersYet(const std::vector<JointRanking>& rankings) {
  auto answers = std::make_unique<JointAnswers>();
  std::vector<uint32_t>& pools = answers->beyond_host;
  for (const JointRanking& ranking : rankings)
    pools.insert(pools.end(), ranking.beyond_host.begin(), ranking.beyond_host.end());
  std::ranges::sort(pools);
  pools.erase(std::ranges::unique(pools).begin(), pools.end());
  answers->trials_left = kTrialsOfQuestion;
  return answers;
}

std::vector<uint32_t> BoardState::RankedWithinReach(const Inquiry& inquiry,
                                                    size_t machine_pool) const {
  const auto is_ranked = [&](uint32_t pool) {
    return std::ranges::any_of(inquiry.joint, [pool](const JointRanking& ranking) {
      return ranking.position_of[pool] != kNoRank;
    });
  };
  std::vector<uint32_t> found;
  for (const uint32_t pool : pools.pools_of_host(pools.host_of(machine_pool)))
    if (is_ranked(pool)) found.push_back(pool);
  for (const uint32_t pool : inquiry.joint_answers->beyond_host)
    if (pools.host_of(pool) != pools.host_of(machine_pool) && Reaches(pool, machine_pool))
      found.push_back(pool);
  std::ranges::sort(found);
  return found;
}

// An answer that was found is kept for as long as the question: what was good enough to take the
// machine pool is found again when the volumes get their pools.
bool BoardState::SearchJoint(const Inquiry& inquiry,
                             size_t machine_pool,
                             std::vector<PoolIndex>* chosen) const {
  JointAnswers& answers = *inquiry.joint_answers;
  std::vector<uint32_t> reach = RankedWithinReach(inquiry, machine_pool);
  auto known = answers.by_reach.find(reach);
  if (known == answers.by_reach.end()) {
    if (answers.trials_left == 0) return false;
    const int trials = std::min(kTrialsMax, answers.trials_left);
    JointSearch search(*this, inquiry, machine_pool, trials);
    JointAnswers::Answer answer;
    if (search.Place(0)) answer = search.chosen();
    answers.trials_left -= trials - search.trials_left();
    known = answers.by_reach.emplace(std::move(reach), std::move(answer)).first;
  }
  if (!known->second) return false;
  if (chosen != nullptr) *chosen = *known->second;
  return true;
}

bool BoardState::AssignJoint(const Inquiry& inquiry,
                             size_t machine_pool,
                             std::vector<PoolIndex>* chosen) {
  std::vector<Taken> taken;
  std::vector<PoolIndex> found;
  for (const JointRanking& ranking : inquiry.joint) {
    uint32_t best = kNoRank;
    size_t best_pool = 0;
    bool is_in_the_way = false;  // what comes before this one
    const auto consider = [&](size_t pool) {
      if (ranking.position_of[pool] >= best) return;
      if (!HasRoomBeside(pools, *ranking.shape, pool, taken)) {
        is_in_the_way = true;  // ranked, so there is room for it alone
        return;
      }
      best = ranking.position_of[pool];
      best_pool = pool;
    };
    // Pools that serve their own host only are found through the host, not by trying all of them.
    for (const uint32_t pool : pools.pools_of_host(pools.host_of(machine_pool))) consider(pool);
    for (const uint32_t pool : ranking.beyond_host) {
      if (ranking.position_of[pool] >= best) break;
      if (Reaches(pool, machine_pool)) consider(pool);
    }
    if (best == kNoRank) {
      return is_in_the_way && SearchJoint(inquiry, machine_pool, chosen);
    }
    Take(pools, *ranking.shape, best_pool, taken);
    found.push_back(PoolIndex{static_cast<uint32_t>(best_pool)});
  }
  if (chosen != nullptr) *chosen = std::move(found);
  return true;
}

}  // namespace berth::scheduler
