// SPDX-License-Identifier: Apache-2.0
// Joint placement, reservations, groups, preemption, what-if and waking: the questions around a
// decision.
#include "scheduler/core/board.h"
#include "scheduler/core/board_builders.h"

namespace berth::scheduler {
namespace {

int64_t Failed(const Explanation& explanation, Rule rule) {
  return explanation.failed[static_cast<size_t>(rule)];
}

// ---- Anew

TEST(CoreExplain, APlacedObjectIsExplainedAsIfItHadNoPlace) {
  Board board({});
  PoolSpec only = Pool("only");
  only.capacity = {{"cpu", 1'000}, {"memory", 1'000}};
  const PoolIndex pool = board.SetPool(only);
  const Request request = Ask(board, Small());
  board.Settle(request, pool);
  board.TakeChanges();
  EXPECT_EQ(Failed(board.Explain(request, 1), Rule::kRoom), 1);
  const Explanation anew = board.ExplainAnew(request, 1);
  EXPECT_EQ(anew.passed, 1);
  ASSERT_EQ(anew.ranked.size(), 1u);
  EXPECT_EQ(anew.ranked[0].pool, pool);
  // No trace is left: neither room nor a change that would wake somebody.
  EXPECT_EQ(Failed(board.Explain(request, 1), Rule::kRoom), 1);
  EXPECT_EQ(board.RoomOf(pool).free.at("cpu"), 0);
  EXPECT_TRUE(board.TakeChanges().empty());
  EXPECT_TRUE(board.IsConfirmed(request.key));
}

TEST(CoreExplain, RoomThatTheHostCountsForThePlacedObjectIsItsOwn) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("only"));
  const Request request = Ask(board, Small());
  board.Settle(request, pool);
  board.Report(pool, {.boot = 1, .counter = 1}, Resources{{"cpu", 0}, {"memory", 0}});
  EXPECT_EQ(Failed(board.Explain(request, 1), Rule::kHostRoom), 1);
  EXPECT_EQ(board.ExplainAnew(request, 1).passed, 1);
  EXPECT_EQ(Failed(board.Explain(request, 1), Rule::kHostRoom), 1);
}

TEST(CoreExplain, AnObjectIsNoCompanyToItself) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("only"));
  Requirements alone = Small();
  alone.labels = {{"app", "web"}};
  alone.anti_affinity = {
      {.selector = Selector::Equals({{"app", "web"}}), .topology_key = std::string(kPoolTopology)}};
  const Request request = Ask(board, alone);
  board.Settle(request, pool);
  EXPECT_EQ(Failed(board.Explain(request, 1), Rule::kAntiAffinity), 1);
  EXPECT_EQ(board.ExplainAnew(request, 1).passed, 1);
  EXPECT_EQ(Failed(board.Explain(Ask(board, alone), 1), Rule::kAntiAffinity), 1);
}

TEST(CoreExplain, CopiesThatCareAreCountedUpToALimit) {
  Board board({});
  PoolSpec huge = Pool("huge");
  huge.capacity = {{"cpu", 1'000'000'000}, {"memory", 1'000'000'000}};
  board.SetPool(huge);
  Requirements caring = Small();
  caring.spread = {{.company = {.topology_key = std::string(kPoolTopology)}, .max_skew = 100'000}};
  const Fitting fitting = board.Fit(Ask(board, caring), 100'000);
  EXPECT_EQ(fitting.copies, kCarefulCopiesMax);
  EXPECT_TRUE(fitting.is_limited);
  EXPECT_EQ(board.Fit(Ask(board, Small()), 100'000).copies, 100'000);
}

// ---- Volumes

TEST(CoreVolumes, ABoundVolumePinsTheMachineWithinItsReach) {
  Board board({});
  PoolSpec a = Pool("a");
  a.labels = {{"topology.ironcore.dev/zone", "z1"}, {"topology.ironcore.dev/region", "r1"}};
  PoolSpec b = Pool("b");
  b.labels = {{"topology.ironcore.dev/zone", "z2"}, {"topology.ironcore.dev/region", "r1"}};
  PoolSpec c = Pool("c");
  c.labels = {{"topology.ironcore.dev/zone", "z1"}, {"topology.ironcore.dev/region", "r2"}};
  board.SetPool(a);
  board.SetPool(b);
  board.SetPool(c);
  const struct {
    Reach reach;
    std::vector<std::string> usable;
  } cases[] = {{Reach::kHost, {"a"}},
               {Reach::kZone, {"a"}},
               {Reach::kRegion, {"a", "b"}},
               {Reach::kAny, {"a", "b", "c"}}};
  for (const auto& [reach, usable] : cases) {
    PoolSpec volumes = VolumePool("v", reach);
    volumes.host = a.host;
    volumes.labels = a.labels;
    Request request = Ask(board, Small());
    request.bound_volumes = {board.SetPool(volumes)};
    std::vector<std::string> names;
    for (const auto& candidate : board.Decide(request, 5).ranked)
      names.push_back(board.pool(candidate.pool).name);
    EXPECT_EQ(names, usable);
    EXPECT_EQ(Failed(board.Explain(request, 1), Rule::kVolumeReach),
              3 - static_cast<int64_t>(usable.size()));
  }
}

TEST(CoreVolumes, AMachineAndItsNewVolumesArePlacedTogether) {
  Board board({});
  // Host b is the better machine pool by packing, but its disk is too small.
  board.SetPool(Pool("a"));
  const PoolIndex b = board.SetPool(Pool("b"));
  board.Settle(Ask(board, Small()), b);
  PoolSpec disk_a = VolumePool("disk-a", Reach::kHost);
  disk_a.host = "host-of-a";
  PoolSpec disk_b = VolumePool("disk-b", Reach::kHost);
  disk_b.host = "host-of-b";
  disk_b.capacity = {{"storage", 50}};
  const PoolIndex va = board.SetPool(disk_a);
  board.SetPool(disk_b);
  Request request = Ask(board, Small());
  request.joint = {Ask(board, Volume(40)), Ask(board, Volume(40))};
  const Decision decision = board.Decide(request, 5);
  ASSERT_EQ(decision.ranked.size(), 1u);
  EXPECT_EQ(board.pool(decision.ranked[0].pool).name, "a");
  EXPECT_EQ(decision.ranked[0].joint, (std::vector<PoolIndex>{va, va}));
  const Explanation explanation = board.Explain(request, 1);
  EXPECT_EQ(Failed(explanation, Rule::kJointVolume), 1);
  ASSERT_EQ(explanation.joint.size(), 2U) << "each by itself";
  EXPECT_EQ(explanation.joint[1].passed, 2);
  ASSERT_EQ(board.Assume(request, decision.ranked[0]), AssumeVerdict::kAssumed);
  EXPECT_EQ(board.RoomOf(va).free.at("storage"), 20);
  board.ForgetAll(request);
  EXPECT_EQ(board.RoomOf(va).free.at("storage"), 100);
  EXPECT_EQ(board.object_count(), 1u);
}

TEST(CoreVolumes, R6_2_AVolumeMakesWayForOneThatFitsNowhereElse) {
  Board board({});
  board.SetPool(Pool("m"));
  PoolSpec larger = VolumePool("larger", Reach::kAny);
  larger.capacity = {{"storage", 60}};
  PoolSpec smaller = VolumePool("smaller", Reach::kAny);
  smaller.capacity = {{"storage", 40}};
  const PoolIndex large = board.SetPool(larger);
  const PoolIndex small = board.SetPool(smaller);
  Requirements first = Volume(30);
  first.policy = Policy::kSpread;  // by itself it would go where there is more room
  Request request = Ask(board, Small());
  request.joint = {Ask(board, first), Ask(board, Volume(60))};
  const Decision decision = board.Decide(request, 1);
  ASSERT_EQ(decision.ranked.size(), 1u);
  EXPECT_EQ(decision.ranked[0].joint, (std::vector<PoolIndex>{small, large}));
  EXPECT_EQ(board.Assume(request, decision.ranked[0]), AssumeVerdict::kAssumed);
}

// Hosts from which seven volumes find no pools together, though each finds one alone, and behind
// them one more, with a disk to which the sixth volume can make way. A first volume, small, goes to
// a disk that each host has if `own_disks` says so.
enum class OwnDisks : uint8_t { kNo, kYes };
Decision PlaceBehind(Board& board, int hosts, OwnDisks own_disks) {
  const auto add_disk = [&board](const std::string& host, const char* name, int64_t capacity) {
    PoolSpec disk = VolumePool(name + host, Reach::kHost);
    disk.host = "host-of-" + host;
    disk.capacity = {{"storage", capacity}};
    board.SetPool(disk);
  };
  for (const char* name : {"a", "b", "c"}) board.SetPool(VolumePool(name, Reach::kAny));
  for (int i = 0; i <= hosts; ++i) {
    const std::string host = i == hosts ? "last" : "m" + std::to_string(i);
    board.SetPool(Pool(host));
    if (own_disks == OwnDisks::kYes) add_disk(host, "own-", 10);
  }
  add_disk("last", "more-", 30);
  Request request = Ask(board, Small());
  if (own_disks == OwnDisks::kYes) request.joint.push_back(Ask(board, Volume(10)));
  for (int i = 0; i < 5; ++i) request.joint.push_back(Ask(board, Volume(40)));
  Requirements sixth = Volume(30);
  sixth.policy = Policy::kSpread;  // by itself it would go where there is more room
  request.joint.push_back(Ask(board, sixth));
  request.joint.push_back(Ask(board, Volume(40)));
  Decision decision = board.Decide(request, 1);
  const auto found = static_cast<int64_t>(decision.ranked.size());
  const Explanation explanation = board.Explain(request, 1);
  EXPECT_EQ(explanation.passed, found);
  EXPECT_EQ(Failed(explanation, Rule::kJointVolume), hosts + 1 - found);
  for (const Candidate& candidate : decision.ranked) {
    EXPECT_EQ(board.Assume(request, candidate), AssumeVerdict::kAssumed);
  }
  return decision;
}

// A thousand searches of their own would use up the trials of the question.
TEST(CoreVolumes, R6_2_HostsWithTheSameVolumePoolsAreSearchedOnce) {
  Board board({});
  const Decision decision = PlaceBehind(board, 1'000, OwnDisks::kNo);
  ASSERT_EQ(decision.ranked.size(), 1u);
  EXPECT_EQ(board.pool(decision.ranked[0].pool).name, "last");
}

TEST(CoreVolumes, R6_2_OneQuestionSearchesAFewHostsAndNotAll) {
  Board few({});
  EXPECT_EQ(PlaceBehind(few, 50, OwnDisks::kYes).ranked.size(), 1u);
  Board many({});
  EXPECT_TRUE(PlaceBehind(many, 100, OwnDisks::kYes).ranked.empty()) << "the search has no end";
}

TEST(CoreVolumes, R6_1_AHostIsInItsOwnZoneWhateverThatIs) {
  for (const Reach reach : {Reach::kHost, Reach::kZone, Reach::kRegion, Reach::kAny}) {
    Board board({});
    board.SetPool(Pool("a"));
    PoolSpec volumes = VolumePool("v", reach);
    volumes.host = "host-of-a";
    const PoolIndex pool = board.SetPool(volumes);
    Request bound = Ask(board, Small());
    bound.bound_volumes = {pool};
    EXPECT_EQ(board.Decide(bound, 1).ranked.size(), 1u);
    Request together = Ask(board, Small());
    together.joint = {Ask(board, Volume(10))};
    EXPECT_EQ(board.Decide(together, 1).ranked.size(), 1u);
  }
}

TEST(CoreVolumes, S2_AssumingTogetherIsAllOrNothing) {
  Board board({});
  const PoolIndex a = board.SetPool(Pool("a"));
  const PoolIndex v = board.SetPool(VolumePool("v", Reach::kAny));
  Request request = Ask(board, Small());
  request.joint = {Ask(board, Volume(60)), Ask(board, Volume(60))};
  EXPECT_TRUE(board.Decide(request, 1).ranked.empty());
  EXPECT_EQ(board.Assume(request, {.pool = a, .joint = {v, v}}), AssumeVerdict::kNoRoom);
  EXPECT_EQ(board.object_count(), 0u);
  EXPECT_EQ(board.RoomOf(a).free.at("cpu"), 8'000);
  EXPECT_EQ(board.RoomOf(v).free.at("storage"), 100);
}

// ---- Reservations

TEST(CoreReservations, AMachineGoesIntoTheRoomThatIsReservedForIt) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("a"));
  Requirements all = Small();
  all.resources = {{"cpu", 8'000}, {"memory", 8'000}};
  Request reservation = Ask(board, all);
  reservation.is_reservation = true;
  board.Settle(reservation, pool);
  EXPECT_TRUE(board.Decide(Ask(board, Small()), 1).ranked.empty());
  Request request = Ask(board, Small());
  request.reservation = {reservation.key};
  const Decision decision = board.Decide(request, 1);
  ASSERT_EQ(decision.ranked.size(), 1u);
  ASSERT_EQ(board.Assume(request, decision.ranked[0]), AssumeVerdict::kAssumed);
  // Until the commit the surplus is nobody's: if it fails, the reservation must be whole again.
  EXPECT_EQ(board.RoomOf(pool).free.at("cpu"), 0);
  Request second = Ask(board, Small());
  second.reservation = {reservation.key};
  EXPECT_TRUE(board.Decide(second, 1).ranked.empty()) << "consumed twice";
  board.Forget(request.key);
  EXPECT_EQ(board.Decide(second, 1).ranked.size(), 1u);
  ASSERT_EQ(board.Assume(request, board.Decide(request, 1).ranked[0]), AssumeVerdict::kAssumed);
  board.Confirm(request.key);
  EXPECT_FALSE(board.PoolOf(reservation.key));
  EXPECT_EQ(board.RoomOf(pool).free.at("cpu"), 7'000);
}

TEST(CoreReservations, TheRequestMustFitInside) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("a"));
  const Request reservation = Ask(board, Small());
  board.Settle(reservation, pool);
  Requirements larger = Small();
  larger.resources["cpu"] = 1'001;
  Request request = Ask(board, larger);
  request.reservation = {reservation.key};
  EXPECT_TRUE(board.Decide(request, 1).ranked.empty());
  EXPECT_EQ(Failed(board.Explain(request, 1), Rule::kReservation), 1);
}

// ---- Groups and what-if

TEST(CoreGroups, AreAssumedWholeOrNotAtAll) {
  Board board({});
  for (const char* name : {"a", "b"}) board.SetPool(Pool(name));
  Requirements half = Small();
  half.resources = {{"cpu", 5'000}};
  Requirements rest = Small();
  rest.resources = {{"cpu", 3'000}};
  // In this order the small ones would take the room of the large ones.
  const std::vector<Request> fitting = {
      Ask(board, rest), Ask(board, rest), Ask(board, half), Ask(board, half)};
  const auto placed = board.PlaceGroup(fitting);
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->size(), 4u);
  for (size_t i = 0; i < fitting.size(); ++i)
    EXPECT_EQ(board.PoolOf(fitting[i].key), (*placed)[i].pool);
  for (const auto& request : fitting) board.Forget(request.key);
  board.TakeChanges();
  const std::vector<Request> too_many = {Ask(board, half), Ask(board, half), Ask(board, half)};
  EXPECT_FALSE(board.PlaceGroup(too_many));
  EXPECT_EQ(board.object_count(), 0u);
  EXPECT_TRUE(board.TakeChanges().empty()) << "a try that failed wakes nobody";
}

TEST(CoreFit, C07_CountsCopiesWithoutPlacingAny) {
  Board board({});
  for (const char* name : {"a", "b", "c"}) board.SetPool(Pool(name));
  board.TakeChanges();
  EXPECT_EQ(board.Fit(Ask(board, Small()), 100).copies, 24);
  EXPECT_FALSE(board.Fit(Ask(board, Small()), 100).is_limited);
  EXPECT_EQ(board.Fit(Ask(board, Small()), 5).copies, 5);
  EXPECT_TRUE(board.Fit(Ask(board, Small()), 5).is_limited);
  Requirements lonely = Small();
  lonely.labels = {{"app", "x"}};
  lonely.anti_affinity = {
      {.selector = Selector::Equals({{"app", "x"}}), .topology_key = std::string(kHostTopology)}};
  EXPECT_EQ(board.Fit(Ask(board, lonely), 100).copies, 3);
  EXPECT_EQ(board.object_count(), 0u);
  EXPECT_TRUE(board.TakeChanges().empty());
}

// ---- Preemption

class CorePreemption : public testing::Test {
 protected:
  Request Important() {
    Requirements requirements = Small();
    requirements.resources = {{"cpu", 4'000}};
    Request request = Ask(board_, requirements);
    request.priority = 100;
    return request;
  }
  // Fills a pool with objects of these priorities, 2 cpu each.
  std::vector<ObjectKey> Fill(const std::string& name, const std::vector<int32_t>& priorities) {
    const PoolIndex pool = board_.SetPool(Pool(name));
    Requirements requirements = Small();
    requirements.resources = {{"cpu", 2'000}};
    std::vector<ObjectKey> keys;
    for (const int32_t priority : priorities) {
      Request request = Ask(board_, requirements);
      request.priority = priority;
      request.is_preemptible = true;
      request.set = 7;
      board_.Settle(request, pool);
      keys.push_back(request.key);
    }
    return keys;
  }
  Board board_{{}};
};

TEST_F(CorePreemption, StopsTheLeastImportantAndNoMoreThanNeeded) {
  Fill("a", {1, 50, 50, 50});
  const auto keys = Fill("b", {10, 1, 20, 5});
  const auto plan = board_.Preempt(Important(), {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(board_.pool(plan->pool).name, "b");
  EXPECT_EQ(plan->victims, (std::vector<ObjectKey>{keys[1], keys[3]}));
}

TEST_F(CorePreemption, SparesEqualsTheUnpreemptibleAndLocalState) {
  const PoolIndex pool = board_.SetPool(Pool("a"));
  Requirements requirements = Small();
  requirements.resources = {{"cpu", 2'000}};
  for (int i = 0; i < 4; ++i) {
    Request request = Ask(board_, requirements);
    request.priority = i == 0 ? 100 : 1;
    request.is_preemptible = i != 1;
    request.has_local_state = i == 2;
    board_.Settle(request, pool);
  }
  EXPECT_FALSE(board_.Preempt(Important(), {}));
}

TEST_F(CorePreemption, RespectsTheBudgetOfASet) {
  Fill("a", {1, 1, 1, 1});
  EXPECT_TRUE(board_.Preempt(Important(), {{7, 2}}));
  EXPECT_FALSE(board_.Preempt(Important(), {{7, 1}}));
}

TEST_F(CorePreemption, OtherRulesAreNotBroken) {
  Fill("a", {1, 1, 1, 1});
  board_.SetPoolState(*board_.FindPool(PoolKind::kMachine, "a"), {.is_cordoned = true});
  EXPECT_FALSE(board_.Preempt(Important(), {}));
}

// ---- Waking

// IronCore wakes every waiting machine on every event, and none when a machine is deleted.
TEST(CoreWaking, D11_FreedRoomWakesExactlyThoseWhoNowFit) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("a"));
  Requirements most = Small();
  most.resources = {{"cpu", 7'000}, {"memory", 7'000}};
  const Request big = Ask(board, most);
  board.Settle(big, pool);
  Requirements two = Small();
  two.resources = {{"cpu", 2'000}};
  Requirements fast = two;
  fast.pools = Selector::Equals({{"disk", "ssd"}});
  const Request waiting = Ask(board, two);
  const Request elsewhere = Ask(board, fast);
  Events room = board.WakingEvents(waiting);
  Events labels = board.WakingEvents(elsewhere);
  EXPECT_NE(room & ToEvents(Event::kRoom), 0);
  EXPECT_EQ(labels & ToEvents(Event::kRoom), 0);
  EXPECT_NE(labels & ToEvents(Event::kLabels), 0);
  board.TakeChanges();
  board.Forget(big.key);
  const auto changes = board.TakeChanges();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(board.Wakes(waiting, room, changes[0]));
  EXPECT_FALSE(board.Wakes(elsewhere, labels, changes[0]));
}

TEST(CoreWaking, TooLittleRoomWakesNobody) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("a"));
  std::vector<Request> placed;
  for (int i = 0; i < 8; ++i) placed.push_back(Ask(board, Small()));
  for (const auto& request : placed) board.Settle(request, pool);
  Requirements two = Small();
  two.resources = {{"cpu", 2'000}};
  const Request waiting = Ask(board, two);
  Events events = board.WakingEvents(waiting);
  board.TakeChanges();
  board.Forget(placed[0].key);
  const auto changes = board.TakeChanges();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_FALSE(board.Wakes(waiting, events, changes[0]));
}

TEST(CoreWaking, C05_ANewPoolWakesWhoFoundNone) {
  Board board({});
  const Request waiting = Ask(board, Small());
  EXPECT_TRUE(board.Decide(waiting, 1).ranked.empty());
  EXPECT_EQ(board.Explain(waiting, 1).pools, 0);
  Events events = board.WakingEvents(waiting);
  board.SetPool(Pool("a"));
  const auto changes = board.TakeChanges();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(board.Wakes(waiting, events, changes[0]));
}

TEST(CoreWaking, EveryRuleHasAnEventThatEndsIt) {
  const struct {
    Rule rule;
    PoolSpec bad;
    Event event;
  } cases[] = {
      {Rule::kCordoned,
       [] {
         auto p = Pool("a");
         p.state.is_cordoned = true;
         return p;
       }(),
       Event::kUsable},
      {Rule::kNotReady,
       [] {
         auto p = Pool("a");
         p.state.is_ready = false;
         return p;
       }(),
       Event::kUsable},
      {Rule::kTaint,
       [] {
         auto p = Pool("a");
         p.taints = {{"k", "v"}};
         return p;
       }(),
       Event::kTaints},
      {Rule::kClass,
       [] {
         auto p = Pool("a");
         p.classes = {};
         return p;
       }(),
       Event::kClasses},
      {Rule::kRoom,
       [] {
         auto p = Pool("a");
         p.capacity = {};
         return p;
       }(),
       Event::kRoom},
  };
  for (const auto& [rule, bad, event] : cases) {
    SCOPED_TRACE(RuleName(rule));
    Board board({});
    board.SetPool(bad);
    const Request waiting = Ask(board, Small());
    ASSERT_EQ(Failed(board.Explain(waiting, 1), rule), 1);
    Events events = board.WakingEvents(waiting);
    EXPECT_NE(events & ToEvents(event), 0);
    board.TakeChanges();
    board.SetPool(Pool("a"));
    const auto changes = board.TakeChanges();
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_NE(changes[0].events & ToEvents(event), 0);
    EXPECT_TRUE(board.Wakes(waiting, events, changes[0]));
  }
}

}  // namespace
}  // namespace berth::scheduler
