// SPDX-License-Identifier: Apache-2.0
// For all sequences of events: how many copies fit, where a group goes, and whom to stop are
// answered like the reference would, and leave no trace.
#include "scheduler/core/board_world.h"

namespace berth::scheduler {
namespace {

// A board that is also asked how many copies of something fit, and told to place groups.
class PlanningWorld : public BoardWorld {
 public:
  using BoardWorld::BoardWorld;
  int64_t fitting() const { return fitting_; }
  int groups_placed() const { return groups_placed_; }
  int groups_refused() const { return groups_refused_; }

 private:
  void Ask() override {
    if (random_.Chance(0.1)) CompareFit();
    if (random_.Chance(0.1)) CompareGroup();
  }

  // Copies are placed one after the other until one finds no place.
  void CompareFit() {
    const Requirements r = NextRequirements();
    const Request request = DrawRequest(r);
    const int64_t limit = random_.Between(1, 12);
    ReferenceBoard copies = reference_;
    int64_t expected = 0;
    for (; expected < limit; ++expected) {
      Request copy = request;
      copy.key = {.high = ~uint64_t{0}, .low = static_cast<uint64_t>(expected)};
      for (size_t i = 0; i < copy.joint.size(); ++i)
        copy.joint[i].key = {.high = ~uint64_t{0} - 1 - i, .low = copy.key.low};
      const auto ranked = copies.Decide(copy, r);
      if (ranked.empty()) break;
      copies.Assume(copy, r, ranked[0]);
    }
    const Fitting fitting = board_.Fit(request, limit);
    ASSERT_EQ(fitting.copies, expected);
    ASSERT_EQ(fitting.is_limited, expected == limit);
    fitting_ += expected;
    CompareEverything();
  }

  // The largest part of any pool's capacity, in the dimension where it is largest.
  double SizeOf(const Requirements& r) const {
    double size = 0;
    for (const auto& [name, amount] : r.resources) {
      if (amount <= 0 || !reference_.resources.contains(name)) continue;
      int64_t largest = 1;
      for (const auto& [pool, entry] : reference_.pools) {
        const auto found = entry.spec.capacity.find(name);
        if (found != entry.spec.capacity.end()) largest = std::max(largest, found->second);
      }
      size = std::max(size, static_cast<double>(amount) / static_cast<double>(largest));
    }
    return size;
  }

  // Larger ones first, each where it goes best; all or none.
  void CompareGroup() {
    std::vector<Requirements> requirements;
    std::vector<Request> requests;
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < 1 + random_.Below(4); ++i) {
      requirements.push_back(NextRequirements());
      requests.push_back(DrawRequest(requirements.back()));
      order.emplace_back(-SizeOf(requirements.back()), i);
    }
    std::ranges::sort(order);
    ReferenceBoard after = reference_;
    std::map<size_t, Candidate> expected;
    for (const auto& [size, i] : order) {
      const auto ranked = after.Decide(requests[i], requirements[i]);
      if (ranked.empty()) break;
      after.Assume(requests[i], requirements[i], ranked[0]);
      expected[i] = ranked[0];
    }
    const auto placed = board_.PlaceGroup(requests);
    ASSERT_EQ(placed.has_value(), expected.size() == requests.size());
    if (placed) {
      reference_ = after;
      ++groups_placed_;
      for (size_t i = 0; i < requests.size(); ++i) {
        ASSERT_EQ((*placed)[i].pool, expected[i].pool) << "member " << i;
        ASSERT_EQ((*placed)[i].level, expected[i].level) << "member " << i;
        ASSERT_EQ((*placed)[i].reservation, expected[i].reservation) << "member " << i;
        ASSERT_EQ((*placed)[i].joint, expected[i].joint) << "member " << i;
      }
    } else {
      ++groups_refused_;
    }
    CompareEverything();
  }

  void CompareEverything() {
    ASSERT_EQ(board_.object_count(), reference_.objects.size());
    for (const auto& [pool, entry] : reference_.pools) CompareRoom(pool);
  }

  int64_t fitting_ = 0;
  int groups_placed_ = 0;
  int groups_refused_ = 0;
};

// A board that is asked whom to stop for what finds no place.
class PreemptingWorld : public BoardWorld {
 public:
  using BoardWorld::BoardWorld;
  int plans() const { return plans_; }
  int refusals() const { return refusals_; }

 private:
  using Victims = std::vector<const ReferenceObject*>;

  void Ask() override {
    if (!random_.Chance(0.7)) return;
    const Requirements r = NextRequirements();
    Request request = DrawRequest(r);
    request.reservation.clear();
    request.priority = static_cast<int32_t>(random_.Between(1, 5));
    if (!reference_.Decide(request, r).empty()) return;
    std::map<uint64_t, int64_t> budgets;
    if (random_.Chance(0.3)) budgets[1] = random_.Between(0, 2);
    ComparePreemption(request, r, budgets);
  }

  // Whoever on the pool may be stopped for the request.
  Victims PossibleVictims(const Request& request, size_t pool) const {
    Victims possible;
    for (const auto& [key, object] : reference_.objects) {
      const bool has_consumer = std::ranges::any_of(
          reference_.objects, [&](const auto& other) { return other.second.inside == key; });
      if (object.pool == pool && object.is_confirmed && object.request.is_preemptible &&
          !object.request.has_local_state && !object.inside && !has_consumer &&
          object.request.priority < request.priority)
        possible.push_back(&object);
    }
    return possible;
  }
  bool FitsWithout(const Victims& victims, const Requirements& r, size_t pool) const {
    const PoolSpec& spec = reference_.pools.at(pool).spec;
    Resources room = reference_.Free(pool);
    for (const ReferenceObject* victim : victims)
      for (const auto& [name, amount] : ReferenceBoard::Demand(victim->requirements, spec))
        room[name] += amount;
    return ReferenceBoard::Fits(ReferenceBoard::Demand(r, spec), room);
  }
  // The lowest priority up to which all must stop on the pool; none: it would not fit even then.
  std::optional<int32_t> LeastHarm(const Request& request,
                                   const Requirements& r,
                                   size_t pool) const {
    if (reference_.pools.at(pool).spec.kind != r.kind) return std::nullopt;
    if (reference_.FailureBeforeRoom(request, r, pool)) return std::nullopt;
    if (reference_.FailureAfterRoom(request, r, pool)) return std::nullopt;
    const Victims possible = PossibleVictims(request, pool);
    for (int32_t highest = 0; highest < request.priority; ++highest) {
      Victims stopped = possible;
      std::erase_if(stopped, [&](const auto* one) { return one->request.priority > highest; });
      if (FitsWithout(stopped, r, pool)) return highest;
    }
    return std::nullopt;
  }

  void ComparePreemption(const Request& request,
                         const Requirements& r,
                         const std::map<uint64_t, int64_t>& budgets) {
    std::optional<int32_t> least;
    for (const auto& [pool, entry] : reference_.pools) {
      const auto harm = LeastHarm(request, r, pool);
      if (harm && (!least || *harm < *least)) least = harm;
    }
    const auto plan = board_.Preempt(request, budgets);
    if (budgets.empty()) ASSERT_EQ(plan.has_value(), least.has_value());
    if (!plan) {
      ++refusals_;
      return;
    }
    ++plans_;
    ASSERT_TRUE(least.has_value());
    CheckPlan(*plan, request, r, budgets);
    const int32_t highest = reference_.objects.at(plan->victims.back()).request.priority;
    if (budgets.empty()) ASSERT_EQ(highest, *least);
  }
  // Only who may be stopped, no more of a set than its budget, and nobody who could be spared.
  void CheckPlan(const Preemption& plan,
                 const Request& request,
                 const Requirements& r,
                 const std::map<uint64_t, int64_t>& budgets) {
    const size_t pool = ToSize(plan.pool);
    ASSERT_TRUE(LeastHarm(request, r, pool).has_value());
    const Victims possible = PossibleVictims(request, pool);
    Victims victims;
    std::map<uint64_t, int64_t> stopped;
    for (const ObjectKey& key : plan.victims) {
      const ReferenceObject* victim = &reference_.objects.at(key);
      ASSERT_NE(std::ranges::find(possible, victim), possible.end());
      if (!victims.empty()) ASSERT_GE(victim->request.priority, victims.back()->request.priority);
      victims.push_back(victim);
      ++stopped[victim->request.set];
    }
    ASSERT_TRUE(FitsWithout(victims, r, pool));
    for (const auto& [set, budget] : budgets) ASSERT_LE(stopped[set], budget);
    for (const ReferenceObject* spared : victims) {
      Victims fewer = victims;
      std::erase(fewer, spared);
      ASSERT_FALSE(FitsWithout(fewer, r, pool)) << "one could have been spared";
    }
  }

  int plans_ = 0;
  int refusals_ = 0;
};

TEST(BoardProperty, CountsCopiesAndPlacesGroupsLikeTheReference) {
  int64_t fitting = 0;
  int placed = 0;
  int refused = 0;
  for (uint64_t seed = 1; seed <= 30 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    PlanningWorld world(seed, {.pools = 10, .steps = 150, .shapes = seed % 3 == 0 ? 9U : 0U});
    world.Run();
    fitting += world.fitting();
    placed += world.groups_placed();
    refused += world.groups_refused();
  }
  EXPECT_GT(fitting, 100);
  EXPECT_GT(placed, 20);
  EXPECT_GT(refused, 20);
}

TEST(BoardProperty, StopsNobodyWhoCouldBeSparedAndFindsTheLeastHarm) {
  int plans = 0;
  int refusals = 0;
  for (uint64_t seed = 1; seed <= 30 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    PreemptingWorld world(seed, {.pools = 8, .steps = 300, .shapes = seed % 3 == 0 ? 9U : 0U});
    world.Run();
    plans += world.plans();
    refusals += world.refusals();
  }
  EXPECT_GT(plans, 50);
  EXPECT_GT(refusals, 50);
}

}  // namespace
}  // namespace berth::scheduler
