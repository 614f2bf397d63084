// SPDX-License-Identifier: Apache-2.0
// Every rule rules out what it should and nothing else, and room is counted once.
#include "scheduler/core/board.h"

#include <algorithm>

#include "scheduler/core/board_builders.h"

namespace berth::scheduler {
namespace {

struct RuleCase {
  std::string name;
  PoolSpec bad;            // fails the rule
  Requirements requires_;  // a good pool passes
  Rule rule;
};

std::vector<RuleCase> RuleCases() {
  std::vector<RuleCase> cases;
  const auto add = [&](Rule rule, auto change) {
    RuleCase one{std::string(RuleName(rule)), Pool("bad"), Small(), rule};
    change(one);
    cases.push_back(one);
  };
  add(Rule::kNotReady, [](RuleCase& one) { one.bad.state.is_ready = false; });
  add(Rule::kNoSession, [](RuleCase& one) { one.bad.state.has_session = false; });
  add(Rule::kDeleting, [](RuleCase& one) { one.bad.state.is_deleting = true; });
  add(Rule::kCordoned, [](RuleCase& one) { one.bad.state.is_cordoned = true; });
  add(Rule::kTaint, [](RuleCase& one) { one.bad.taints = {{"k", "v", TaintEffect::kNoSchedule}}; });
  add(Rule::kTaint, [](RuleCase& one) { one.bad.taints = {{"k", "v", TaintEffect::kNoExecute}}; });
  add(Rule::kSelector, [](RuleCase& one) {
    one.bad.labels = {{"zone", "b"}};
    one.requires_.pools = Selector::Equals({{"zone", "a"}});
  });
  add(Rule::kClass, [](RuleCase& one) { one.bad.classes = {"large"}; });
  add(Rule::kFence, [](RuleCase& one) {
    one.bad.state.is_fence_ready = false;
    one.requires_.needs_fence = true;
  });
  add(Rule::kRoom, [](RuleCase& one) { one.bad.capacity["cpu"] = 999; });
  add(Rule::kRoom, [](RuleCase& one) { one.bad.capacity["memory"] = 0; });
  add(Rule::kRoom, [](RuleCase& one) { one.bad.capacity.erase("memory"); });
  return cases;
}

TEST(CoreFilters, C01_OnlyPoolsThatPassEveryRuleAreConsidered) {
  for (const auto& one : RuleCases()) {
    SCOPED_TRACE(one.name);
    Board board({});
    PoolSpec good = Pool("good");
    good.labels = {{"zone", "a"}};
    good.state.is_fence_ready = true;
    const PoolIndex bad = board.SetPool(one.bad);
    const Request request = Ask(board, one.requires_);
    EXPECT_TRUE(board.Decide(request, 5).ranked.empty());
    EXPECT_FALSE(board.Admits(request, bad));
    const PoolIndex fine = board.SetPool(good);
    const Decision decision = board.Decide(request, 5);
    ASSERT_EQ(decision.ranked.size(), 1u);
    EXPECT_EQ(decision.ranked[0].pool, fine);
    const Explanation explanation = board.Explain(request, 5);
    EXPECT_EQ(explanation.failed[static_cast<size_t>(one.rule)], 1);
    EXPECT_EQ(explanation.passed, 1);
    EXPECT_EQ(explanation.nearest->pool, bad);
    EXPECT_EQ(explanation.nearest->rule, one.rule);
  }
}

// IronCore lets a pool named by the user pass without any check.
TEST(CoreFilters, D12_APinnedPoolIsCheckedLikeAnyOther) {
  for (const auto& one : RuleCases()) {
    SCOPED_TRACE(one.name);
    Board board({});
    const PoolIndex bad = board.SetPool(one.bad);
    PoolSpec good = Pool("good");
    good.labels = {{"zone", "a"}};
    good.state.is_fence_ready = true;
    const PoolIndex fine = board.SetPool(good);
    Request request = Ask(board, one.requires_);
    request.pinned = bad;
    EXPECT_TRUE(board.Decide(request, 5).ranked.empty());
    const Explanation explanation = board.Explain(request, 5);
    EXPECT_EQ(explanation.failed[static_cast<size_t>(one.rule)], 1);
    EXPECT_EQ(explanation.failed[static_cast<size_t>(Rule::kPinned)], 1);
    request.pinned = fine;
    ASSERT_EQ(board.Decide(request, 5).ranked.size(), 1u);
    EXPECT_EQ(board.Decide(request, 5).ranked[0].pool, fine);
  }
}

TEST(CoreFilters, ToleratedTaintsDoNotMatterAndPreferNoScheduleComesLast) {
  Board board({});
  PoolSpec tainted = Pool("a");
  tainted.taints = {{"k", "v", TaintEffect::kNoSchedule}};
  PoolSpec reluctant = Pool("b");
  reluctant.taints = {{"soft", "", TaintEffect::kPreferNoSchedule}};
  const PoolIndex a = board.SetPool(tainted);
  const PoolIndex b = board.SetPool(reluctant);
  const PoolIndex c = board.SetPool(Pool("c"));
  Requirements requirements = Small();
  requirements.tolerations = {{.key = "k", .op = Toleration::Op::kExists}};
  const Decision decision = board.Decide(Ask(board, requirements), 5);
  ASSERT_EQ(decision.ranked.size(), 3u);
  EXPECT_EQ(decision.ranked[0].pool, a);
  EXPECT_EQ(decision.ranked[1].pool, c);
  EXPECT_EQ(decision.ranked[2].pool, b);
  EXPECT_EQ(decision.ranked[2].tier, Tier::kPreferNot);
}

TEST(CoreFilters, C03_APoolThatRefusedInThisRoundIsNotAskedAgain) {
  Board board({});
  const PoolIndex a = board.SetPool(Pool("a"));
  const PoolIndex b = board.SetPool(Pool("b"));
  Request request = Ask(board, Small());
  ASSERT_EQ(board.Decide(request, 1).ranked[0].pool, a);
  request.refused = {a};
  ASSERT_EQ(board.Decide(request, 1).ranked[0].pool, b);
  request.refused = {a, b};
  EXPECT_TRUE(board.Decide(request, 1).ranked.empty());
  EXPECT_EQ(board.Explain(request, 1).failed[static_cast<size_t>(Rule::kRefused)], 2);
}

TEST(CoreFilters, AnAvoidedPoolComesLastUntilItsTimeIsOver) {
  Board board({});
  const PoolIndex a = board.SetPool(Pool("a"));
  const PoolIndex b = board.SetPool(Pool("b"));
  const Request request = Ask(board, Small());
  board.Avoid(a, Time::FromNanos(100));
  Decision decision = board.Decide(request, 2);
  ASSERT_EQ(decision.ranked.size(), 2u);
  EXPECT_EQ(decision.ranked[0].pool, b);
  EXPECT_EQ(decision.ranked[1].tier, Tier::kAvoided);
  board.AdvanceTo(Time::FromNanos(99));
  EXPECT_EQ(board.Decide(request, 1).ranked[0].pool, b);
  board.AdvanceTo(Time::FromNanos(100));
  EXPECT_EQ(board.Decide(request, 1).ranked[0].pool, a);
}

TEST(CoreFilters, AntiAffinityHoldsInBothDirections) {
  Board board({});
  const PoolIndex a = board.SetPool(Pool("a"));
  board.SetPool(Pool("b"));
  Requirements shy = Small();
  shy.labels = {{"app", "shy"}};
  shy.anti_affinity = {{.selector = Selector::Equals({{"app", "loud"}}),
                        .topology_key = std::string(kPoolTopology)}};
  Requirements loud = Small();
  loud.labels = {{"app", "loud"}};
  board.Settle(Ask(board, shy), a);
  EXPECT_FALSE(board.Admits(Ask(board, loud), a));
  ASSERT_EQ(board.Decide(Ask(board, loud), 5).ranked.size(), 1u);
  EXPECT_NE(board.Decide(Ask(board, loud), 5).ranked[0].pool, a);
  // Another namespace is nobody's business.
  loud.namespace_name = "other";
  EXPECT_TRUE(board.Admits(Ask(board, loud), a));
}

TEST(CoreFilters, AffinityLetsTheFirstOfAGroupStart) {
  Board board({});
  PoolSpec here = Pool("a");
  here.labels = {{"zone", "1"}};
  PoolSpec there = Pool("b");
  there.labels = {{"zone", "2"}};
  board.SetPool(here);
  const PoolIndex b = board.SetPool(there);
  board.SetPool(Pool("c"));  // in no zone
  Requirements requirements = Small();
  requirements.labels = {{"app", "x"}};
  requirements.affinity = {{.selector = Selector::Equals({{"app", "x"}}), .topology_key = "zone"}};
  EXPECT_EQ(board.Decide(Ask(board, requirements), 5).ranked.size(), 2u);
  board.Settle(Ask(board, requirements), b);
  const Decision decision = board.Decide(Ask(board, requirements), 5);
  ASSERT_EQ(decision.ranked.size(), 1u);
  EXPECT_EQ(decision.ranked[0].pool, b);
}

TEST(CoreFilters, SpreadKeepsDomainsWithinTheSkew) {
  Board board({});
  std::map<PoolIndex, std::string> zones;
  for (const char* name : {"a", "b", "c"}) {
    for (int i = 0; i < 2; ++i) {
      PoolSpec spec = Pool(name + std::to_string(i));
      spec.labels = {{"zone", name}};
      zones[board.SetPool(spec)] = name;
    }
  }
  Requirements requirements = Small();
  requirements.labels = {{"app", "x"}};
  requirements.spread = {
      {.company = {.selector = Selector::Equals({{"app", "x"}}), .topology_key = "zone"},
       .max_skew = 1}};
  std::map<std::string, int> counts;
  for (int i = 0; i < 9; ++i) ++counts[zones[PlaceOne(board, requirements)]];
  for (const auto& [zone, count] : counts) EXPECT_EQ(count, 3) << zone;
  // A zone that is down does not hold the others back.
  for (const auto& [pool, zone] : zones)
    if (zone == "c") board.SetPoolState(pool, {.is_ready = false});
  for (int i = 0; i < 4; ++i) ++counts[zones[PlaceOne(board, requirements)]];
  EXPECT_EQ(counts["a"], 5);
  EXPECT_EQ(counts["b"], 5);
}

// ---- Room

// IronCore subtracts what is placed from a figure that is already reduced: a pool counts as full at
// half its capacity.
TEST(CoreRoom, D01_CapacityIsSubtractedOnce) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("a"));  // room for 8
  for (uint64_t i = 0; i < 8; ++i) {
    const Request request = Ask(board, Small());
    const Decision decision = board.Decide(request, 1);
    ASSERT_EQ(decision.ranked.size(), 1u) << i;
    ASSERT_EQ(board.Assume(request, decision.ranked[0]), AssumeVerdict::kAssumed);
    board.Held(request.key, {.boot = 1, .counter = i + 1});
    board.Confirm(request.key);
    // The host reports what is left after it: both figures fall together.
    const auto left = static_cast<int64_t>(7 - i);
    board.Report(
        pool, {.boot = 1, .counter = i + 1}, {{"cpu", left * 1'000}, {"memory", left * 1'000}});
  }
  EXPECT_TRUE(board.Decide(Ask(board, Small()), 1).ranked.empty());
  EXPECT_EQ(board.RoomOf(pool).free.at("cpu"), 0);
}

// IronCore sells every class against the whole host.
TEST(CoreRoom, D02_ClassesShareTheHost) {
  Board board({});
  PoolSpec spec = Pool("a");
  const PoolIndex vector = board.SetPool(spec);
  Requirements large = Small();
  large.class_name = "large";
  large.resources = {{"cpu", 4'000}, {"memory", 4'000}};
  PlaceOne(board, large);
  EXPECT_EQ(board.Fit(Ask(board, Small()), 100).copies, 4);
  EXPECT_EQ(board.Fit(Ask(board, large), 100).copies, 1);
  board.RemovePool(vector);
  // The same on a pool that only tells counts: 8 small ones or 3 large ones.
  PoolSpec counted = Pool("counted");
  counted.class_counts = {{"small", 8}, {"large", 3}};
  const PoolIndex pool = board.SetPool(counted);
  PlaceOne(board, large);
  PlaceOne(board, large);
  EXPECT_EQ(board.Fit(Ask(board, Small()), 100).copies, 2);  // 2/3 + 2/8 <= 1 < 2/3 + 3/8
  PlaceOne(board, Small());
  PlaceOne(board, Small());
  EXPECT_TRUE(board.Decide(Ask(board, Small()), 1).ranked.empty());
  const Explanation full = board.Explain(Ask(board, Small()), 1);
  EXPECT_EQ(full.failed[static_cast<size_t>(Rule::kRoom)], 1);
  // What is missing is no part of a whole that only the board knows.
  EXPECT_EQ(full.scarce, (std::map<std::string, int64_t>{{"class small", 1}}));
  EXPECT_EQ(full.nearest->missing, (Resources{{"class small", 1}}));
  EXPECT_EQ(board.RoomOf(pool).objects, 4);
}

TEST(CoreRoom, FractionsAreExact) {
  for (const int64_t count : {1, 3, 7, 49, 97, 1'000}) {
    Board board({});
    PoolSpec spec = Pool("a");
    spec.class_counts = {{"small", count}, {"large", 7}};
    board.SetPool(spec);
    EXPECT_EQ(board.Fit(Ask(board, Small()), 10'000).copies, count);
  }
  // Counts without a common multiple in reach lose at most a copy, and never gain one.
  Board board({});
  PoolSpec spec = Pool("a");
  for (const int64_t prime : {999'983, 999'979, 999'961, 999'959})
    spec.class_counts["c" + std::to_string(prime)] = prime;
  board.SetPool(spec);
  Requirements requirements;
  requirements.class_name = "c999983";
  const int64_t copies = board.Fit(Ask(board, requirements), 2'000'000).copies;
  EXPECT_GE(copies, 999'982);
  EXPECT_LE(copies, 999'983);
}

TEST(CoreRoom, R8_4_WhatIsKeptIsNobodysWhateverTheHostReports) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("a"));  // room for 8, and the host sees room for one
  board.Report(pool, {.boot = 1, .counter = 1}, {{"cpu", 1'000}, {"memory", 1'000}});
  const Request kept = Ask(board, Small());
  board.Keep(kept, pool);
  board.Keep(kept, pool);
  EXPECT_FALSE(board.Admits(Ask(board, Small()), pool));
  board.Report(pool, {.boot = 1, .counter = 2}, {{"cpu", 1'000}, {"memory", 1'000}});
  EXPECT_FALSE(board.Admits(Ask(board, Small()), pool)) << "the host knows nothing of it";
  board.Report(pool, {.boot = 1, .counter = 3}, {{"cpu", 2'000}, {"memory", 2'000}});
  EXPECT_EQ(board.Fit(Ask(board, Small()), 100).copies, 1);
  board.Forget(kept.key);
  EXPECT_EQ(board.Fit(Ask(board, Small()), 100).copies, 2);
}

TEST(CoreRoom, C06_EveryDimensionIsCountedAndAHostsWordLowersIt) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("a"));
  const Request request = Ask(board, Small());
  board.Report(pool, {.boot = 1, .counter = 1}, {{"memory", 999}});
  const Explanation explanation = board.Explain(request, 1);
  EXPECT_EQ(explanation.failed[static_cast<size_t>(Rule::kHostRoom)], 1);
  EXPECT_EQ(explanation.scarce, (std::map<std::string, int64_t>{{"memory", 1}}));
  EXPECT_EQ(explanation.nearest->missing, (Resources{{"memory", 1}}));
  // An older figure changes nothing, a newer one does, and the end of the session forgets it.
  board.Report(pool, {.boot = 1, .counter = 0}, {{"memory", 8'000}});
  EXPECT_FALSE(board.Admits(request, pool));
  board.Report(pool, {.boot = 2, .counter = 0}, {{"memory", 1'000}});
  EXPECT_TRUE(board.Admits(request, pool));
  board.Report(pool, {.boot = 2, .counter = 1}, {{"memory", 0}});
  board.ClearReport(pool);
  EXPECT_TRUE(board.Admits(request, pool));
}

// What nobody placed there takes room all the same: orphans after a restore.
TEST(CoreRoom, R5_6_AHostsWordLowersAPoolByCounts) {
  Board board({});
  PoolSpec spec = Pool("a");
  spec.capacity.clear();
  spec.class_counts = {{"small", 12}, {"large", 5}};
  const PoolIndex pool = board.SetPool(spec);
  const Request request = Ask(board, Small());
  EXPECT_EQ(board.Fit(request, 100).copies, 12);
  // As a host counts: parts of a twelfth, rounded down each.
  const int64_t each = kReportedWhole / 12;
  const std::string share(kShareResource);
  board.Report(pool, {.boot = 1, .counter = 1}, {{share, kReportedWhole - 11 * each}});
  EXPECT_EQ(board.Fit(request, 100).copies, 1);
  board.Report(pool, {.boot = 1, .counter = 2}, {{share, kReportedWhole - 12 * each}});
  EXPECT_EQ(board.Explain(request, 1).failed[static_cast<size_t>(Rule::kHostRoom)], 1);
  board.Report(pool, {.boot = 1, .counter = 3}, {{share, -each}});
  EXPECT_FALSE(board.Admits(request, pool));
  // Of other counts nothing is known until the next report.
  spec.class_counts["small"] = 6;
  board.SetPool(spec);
  EXPECT_EQ(board.Fit(request, 100).copies, 6);
  board.Report(pool, {.boot = 1, .counter = 4}, {{share, kReportedWhole / 2}});
  EXPECT_EQ(board.Fit(request, 100).copies, 3);
}

TEST(CoreRoom, WhatTheHostCannotKnowYetIsSubtractedFromItsFigure) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("a"));
  board.Report(pool, {.boot = 1, .counter = 5}, {{"cpu", 2'000}});
  const Request first = Ask(board, Small());
  ASSERT_EQ(board.Assume(first, {.pool = pool}), AssumeVerdict::kAssumed);
  EXPECT_EQ(board.RoomOf(pool).free.at("cpu"), 1'000);
  board.Held(first.key, {.boot = 1, .counter = 7});
  // Written before the hold: still unseen. Written after it: counted there.
  board.Report(pool, {.boot = 1, .counter = 6}, {{"cpu", 2'000}});
  EXPECT_EQ(board.RoomOf(pool).free.at("cpu"), 1'000);
  board.Report(pool, {.boot = 1, .counter = 7}, {{"cpu", 1'000}});
  EXPECT_EQ(board.RoomOf(pool).free.at("cpu"), 1'000);
  // Forgetting frees the server's figure; the host's word stands until the next.
  board.Forget(first.key);
  EXPECT_EQ(board.RoomOf(pool).free.at("cpu"), 1'000);
}

// With a cache that forgets before the watch has told, IronCore assigns a burst twice.
TEST(CoreRoom, D11_ABurstNeverTakesMoreThanThereIs) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("a"));
  int assumed = 0;
  for (int i = 0; i < 20; ++i)
    if (board.Assume(Ask(board, Small()), {.pool = pool}) == AssumeVerdict::kAssumed) ++assumed;
  EXPECT_EQ(assumed, 8);
  EXPECT_EQ(board.RoomOf(pool).free.at("cpu"), 0);
}

TEST(CoreRoom, TheStoreIsBelievedEvenAboveCapacity) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("a"));
  for (int i = 0; i < 10; ++i) board.Settle(Ask(board, Small()), pool);
  EXPECT_EQ(board.RoomOf(pool).free.at("cpu"), -2'000);
  EXPECT_TRUE(board.Decide(Ask(board, Small()), 1).ranked.empty());
  const PoolIndex other = board.SetPool(Pool("b"));
  const Request moved = Ask(board, Small());
  board.Settle(moved, pool);
  board.Settle(moved, other);
  board.Settle(moved, other);
  EXPECT_EQ(board.PoolOf(moved.key), other);
  EXPECT_EQ(board.RoomOf(other).objects, 1);
  EXPECT_EQ(board.RoomOf(pool).objects, 10);
}

TEST(CoreRoom, AResourceThatNobodyHasIsNamedAsMissing) {
  Board board({});
  board.SetPool(Pool("a"));
  Requirements requirements = Small();
  requirements.resources["gpu"] = 2;
  const Explanation explanation = board.Explain(Ask(board, requirements), 1);
  EXPECT_EQ(explanation.nearest->missing, (Resources{{"gpu", 2}}));
  // As soon as a pool has it, it counts; what was placed before counts there too.
  PoolSpec spec = Pool("b");
  spec.capacity["gpu"] = 2;
  const PoolIndex b = board.SetPool(spec);
  EXPECT_EQ(board.Decide(Ask(board, requirements), 2).ranked.size(), 1u);
  EXPECT_EQ(board.Decide(Ask(board, requirements), 2).ranked[0].pool, b);
}

// ---- Policies

TEST(CorePolicies, EachPrefersWhatItsNameSays) {
  const struct {
    Policy policy;
    std::string expected;
  } cases[] = {{Policy::kBinpack, "fuller"}, {Policy::kSpread, "emptier"}};
  for (const auto& [policy, expected] : cases) {
    Board board({});
    board.SetPool(Pool("emptier"));
    const PoolIndex fuller = board.SetPool(Pool("fuller"));
    board.Settle(Ask(board, Small()), fuller);
    Requirements requirements = Small();
    requirements.policy = policy;
    const Decision decision = board.Decide(Ask(board, requirements), 2);
    ASSERT_EQ(decision.ranked.size(), 2u);
    EXPECT_EQ(board.pool(decision.ranked[0].pool).name, expected) << PolicyName(policy);
    EXPECT_GT(decision.ranked[0].level, decision.ranked[1].level);
  }
}

TEST(CorePolicies, BinpackDoesNotStrandAndBalancedEvensOut) {
  // Both pools would be left with the same sum; one of them only in memory, which nobody can use.
  for (const Policy policy : {Policy::kBinpack, Policy::kBalanced}) {
    Board board({});
    PoolSpec lopsided = Pool("lopsided");
    const PoolIndex first = board.SetPool(lopsided);
    const PoolIndex second = board.SetPool(Pool("even"));
    Requirements cpu_only = Small();
    cpu_only.resources = {{"cpu", 6'000}};
    board.Settle(Ask(board, cpu_only), first);
    Requirements both = Small();
    both.resources = {{"cpu", 3'000}, {"memory", 3'000}};
    board.Settle(Ask(board, both), second);
    Requirements requirements = Small();
    requirements.policy = policy;
    EXPECT_EQ(board.Decide(Ask(board, requirements), 1).ranked[0].pool, second)
        << PolicyName(policy);
  }
}

TEST(CorePolicies, SpreadBreaksTiesBySeedAndKeyAndBinpackFromTheFront) {
  Board board({.seed = 9});
  for (int i = 0; i < 200; ++i) board.SetPool(Pool("p" + std::to_string(i)));
  std::vector<PoolIndex> packed, spread;
  Requirements requirements = Small();
  for (int i = 0; i < 20; ++i) {
    requirements.policy = Policy::kBinpack;
    packed.push_back(board.Decide(Ask(board, requirements), 1).ranked[0].pool);
    requirements.policy = Policy::kSpread;
    spread.push_back(board.Decide(Ask(board, requirements), 1).ranked[0].pool);
  }
  std::ranges::sort(spread);
  const auto repeated = std::ranges::unique(spread);
  EXPECT_GT(spread.size() - repeated.size(), 15u);
  for (const PoolIndex pool : packed) EXPECT_EQ(pool, PoolIndex{0});
}

TEST(CorePolicies, PreferencesCountBeforeThePolicy) {
  Board board({});
  PoolSpec liked = Pool("liked");
  liked.labels = {{"disk", "ssd"}};
  const PoolIndex fuller = board.SetPool(Pool("fuller"));
  const PoolIndex ssd = board.SetPool(liked);
  board.Settle(Ask(board, Small()), fuller);
  Requirements requirements = Small();
  EXPECT_EQ(board.Decide(Ask(board, requirements), 1).ranked[0].pool, fuller);
  requirements.preferred_pools = {{.selector = Selector::Equals({{"disk", "ssd"}}), .weight = 3}};
  const Decision decision = board.Decide(Ask(board, requirements), 2);
  EXPECT_EQ(decision.ranked[0].pool, ssd);
  EXPECT_EQ(decision.ranked[0].points, 3);
}

}  // namespace
}  // namespace berth::scheduler
