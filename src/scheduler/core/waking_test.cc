// SPDX-License-Identifier: Apache-2.0
// Whoever waits is woken by what may give it a place, on its own pools or on others, and by little
// else.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/core/board.h"
#include "scheduler/core/board_builders.h"

namespace berth::scheduler {
namespace {

constexpr char kZone[] = "topology.ironcore.dev/zone";

bool Has(Events events, Event event) { return (events & ToEvents(event)) != 0; }

// A request without a place, and what it waits for.
struct Waiter {
  Request request;
  Events waking = 0;
};

Waiter Park(Board& board, Request request) {
  EXPECT_TRUE(board.Decide(request, 1).ranked.empty());
  const Events waking = board.WakingEvents(request);
  return {.request = std::move(request), .waking = waking};
}

bool IsWoken(Board& board, Waiter& waiter, const std::vector<Change>& changes) {
  return std::ranges::any_of(changes, [&](const Change& change) {
    return board.Wakes(waiter.request, waiter.waking, change);
  });
}

bool HasPlace(Board& board, const Waiter& waiter) {
  return !board.Decide(waiter.request, 1).ranked.empty();
}

// More than any pool has.
Requirements Huge() {
  Requirements huge = Small();
  huge.resources["cpu"] = 9'000;
  return huge;
}

Company Web(const std::string& topology_key) {
  return {.selector = Selector::Equals({{"app", "web"}}), .topology_key = topology_key};
}

TEST(CoreWaking, APoolThatIsLostSaysSoOnce) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("a"));
  board.TakeChanges();
  board.SetPoolState(pool, {.is_cordoned = true});
  std::vector<Change> changes = board.TakeChanges();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].pool, pool);
  EXPECT_EQ(changes[0].events, ToEvents(Event::kLost));
  board.SetPoolState(pool, {.is_ready = false, .is_cordoned = true});
  EXPECT_TRUE(board.TakeChanges().empty());
  board.RemovePool(pool);
  // Another one may have its number by the time that somebody looks.
  ASSERT_EQ(board.SetPool(Pool("b")), pool);
  changes = board.TakeChanges();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(Has(changes[0].events, Event::kLost));
  EXPECT_TRUE(Has(changes[0].events, Event::kUsable));
  EXPECT_TRUE(board.TakeChanges().empty());
}

// ---- What happens elsewhere

// Zone a has two, zone b has one and no room for more: as long as b counts, a gets no third one.
class CoreWakingSpread : public testing::Test {
 protected:
  CoreWakingSpread() {
    PoolSpec crowded = Pool("crowded");
    crowded.labels = {{"zone", "a"}};
    full_.labels = {{"zone", "b"}};
    full_.capacity = {{"cpu", 1'000}, {"memory", 1'000}};
    const PoolIndex a = board_.SetPool(crowded);
    pool_ = board_.SetPool(full_);
    Requirements web = Small();
    web.labels = {{"app", "web"}};
    web.spread = {{.company = Web("zone")}};
    board_.Settle(Ask(board_, web), a);
    board_.Settle(Ask(board_, web), a);
    board_.Settle(Ask(board_, web), pool_);
    waiter_ = Park(board_, Ask(board_, web));
    other_ = Park(board_, Ask(board_, Huge()));
    board_.TakeChanges();
  }
  void ExpectThatAOpens() {
    const std::vector<Change> changes = board_.TakeChanges();
    EXPECT_TRUE(HasPlace(board_, waiter_));
    EXPECT_TRUE(IsWoken(board_, waiter_, changes));
    EXPECT_FALSE(IsWoken(board_, other_, changes)) << "nothing of that helps who lacks room";
  }

  Board board_{{}};
  PoolSpec full_ = Pool("full");
  PoolIndex pool_{};
  Waiter waiter_;
  Waiter other_;
};

TEST_F(CoreWakingSpread, APoolThatHeldTheOthersBackOpensThemWhenItIsCordoned) {
  board_.SetPoolState(pool_, {.is_cordoned = true});
  ExpectThatAOpens();
}

TEST_F(CoreWakingSpread, APoolThatHeldTheOthersBackOpensThemWhenItIsNotReady) {
  board_.SetPoolState(pool_, {.is_ready = false});
  ExpectThatAOpens();
}

TEST_F(CoreWakingSpread, APoolThatHeldTheOthersBackOpensThemWhenItIsRemoved) {
  board_.RemovePool(pool_);
  ExpectThatAOpens();
}

TEST_F(CoreWakingSpread, APoolThatHeldTheOthersBackOpensThemWhenItIsTainted) {
  full_.taints = {{"k", "v"}};
  board_.SetPool(full_);
  ExpectThatAOpens();
}

TEST_F(CoreWakingSpread, APoolThatHeldTheOthersBackOpensThemWhenItLeavesItsZone) {
  full_.labels = {};
  board_.SetPool(full_);
  ExpectThatAOpens();
}

TEST_F(CoreWakingSpread, APoolThatHeldTheOthersBackOpensThemWhenItOffersTheClassNoMore) {
  full_.classes = {};
  board_.SetPool(full_);
  ExpectThatAOpens();
}

TEST_F(CoreWakingSpread, RoomAndAPoolThatComesBackOpenNoOtherDomain) {
  PoolSpec third = Pool("third");
  third.labels = {{"zone", "b"}};
  third.capacity = {};
  third.state.is_ready = false;
  board_.SetPool(third);
  board_.TakeChanges();
  third.capacity = {{"cpu", 500}};
  third.state.is_ready = true;
  board_.SetPool(third);
  const std::vector<Change> changes = board_.TakeChanges();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_FALSE(HasPlace(board_, waiter_));
  EXPECT_FALSE(IsWoken(board_, waiter_, changes));
}

// Somebody whose company is refused is in the same zone.
class CoreWakingCompany : public testing::Test {
 protected:
  CoreWakingCompany() {
    PoolSpec here = Pool("here");
    here.labels = {{"zone", "a"}};
    board_.SetPool(here);
    beside_.labels = {{"zone", "a"}};
    pool_ = board_.SetPool(beside_);
    Requirements lonely = Small();
    lonely.labels = {{"app", "web"}};
    lonely.anti_affinity = {Web("zone")};
    board_.Settle(Ask(board_, lonely), pool_);
    waiter_ = Park(board_, Ask(board_, lonely));
    board_.TakeChanges();
  }

  Board board_{{}};
  PoolSpec beside_ = Pool("beside");
  PoolIndex pool_{};
  Waiter waiter_;
};

TEST_F(CoreWakingCompany, WhoGoesWithItsPoolIsNoCompanyAnyMore) {
  board_.RemovePool(pool_);
  const std::vector<Change> changes = board_.TakeChanges();
  EXPECT_TRUE(HasPlace(board_, waiter_));
  EXPECT_TRUE(IsWoken(board_, waiter_, changes));
}

TEST_F(CoreWakingCompany, WhosePoolIsInAnotherZoneNowIsNoCompanyAnyMore) {
  beside_.labels = {{"zone", "b"}};
  board_.SetPool(beside_);
  const std::vector<Change> changes = board_.TakeChanges();
  EXPECT_TRUE(HasPlace(board_, waiter_));
  EXPECT_TRUE(IsWoken(board_, waiter_, changes));
}

TEST_F(CoreWakingCompany, APoolThatIsCordonedChangesNoCompany) {
  board_.SetPoolState(pool_, {.is_cordoned = true});
  const std::vector<Change> changes = board_.TakeChanges();
  EXPECT_FALSE(IsWoken(board_, waiter_, changes));
}

// ---- Volumes

TEST(CoreWaking, AVolumePoolWakesTheMachineThatItsRoomHelps) {
  PoolSpec good = VolumePool("v", Reach::kHost);
  good.host = "host-of-a";
  const auto but = [&good](const std::function<void(PoolSpec&)>& change) {
    PoolSpec bad = good;
    change(bad);
    return bad;
  };
  const struct {
    std::string what;
    std::optional<PoolSpec> before;
  } cases[] = {
      {"joins", std::nullopt},
      {"is uncordoned", but([](PoolSpec& bad) { bad.state.is_cordoned = true; })},
      {"becomes ready", but([](PoolSpec& bad) { bad.state.is_ready = false; })},
      {"gets a session", but([](PoolSpec& bad) { bad.state.has_session = false; })},
      {"loses a taint", but([](PoolSpec& bad) { bad.taints = {{"k", "v"}}; })},
      {"offers the class", but([](PoolSpec& bad) { bad.classes = {}; })},
      {"gains room", but([](PoolSpec& bad) { bad.capacity = {}; })},
      {"comes within reach", but([](PoolSpec& bad) { bad.host = "host-of-b"; })},
  };
  for (const auto& [what, before] : cases) {
    SCOPED_TRACE(what);
    Board board({});
    board.SetPool(Pool("a"));
    if (before) board.SetPool(*before);
    const auto with_volume = [&board](const Requirements& machine, int64_t storage) {
      Request request = Ask(board, machine);
      request.joint = {Ask(board, Volume(storage))};
      return Park(board, std::move(request));
    };
    Waiter waiter = with_volume(Small(), 60);
    Waiter lacks_room = with_volume(Huge(), 60);
    Waiter lacks_more = with_volume(Small(), 200);
    board.TakeChanges();
    board.SetPool(good);
    const std::vector<Change> changes = board.TakeChanges();
    EXPECT_TRUE(HasPlace(board, waiter));
    EXPECT_TRUE(IsWoken(board, waiter, changes));
    EXPECT_FALSE(IsWoken(board, lacks_room, changes)) << "its volume is not what it waits for";
    EXPECT_FALSE(IsWoken(board, lacks_more, changes)) << "its volume is larger than the pool";
  }
}

TEST(CoreWaking, FreedRoomOnAVolumePoolWakesTheMachineThatBringsAVolume) {
  Board board({});
  board.SetPool(Pool("a"));
  const PoolIndex v = board.SetPool(VolumePool("v", Reach::kAny));
  const Request large = Ask(board, Volume(80));
  board.Settle(large, v);
  Request request = Ask(board, Small());
  request.joint = {Ask(board, Volume(40))};
  Waiter waiter = Park(board, std::move(request));
  board.TakeChanges();
  board.Forget(large.key);
  EXPECT_TRUE(IsWoken(board, waiter, board.TakeChanges()));
  EXPECT_TRUE(HasPlace(board, waiter));
}

TEST(CoreWaking, AVolumePoolThatComesWithinReachWakesWhoHasAVolumeThere) {
  Board board({});
  PoolSpec machines = Pool("a");
  machines.labels = {{kZone, "z1"}};
  board.SetPool(machines);
  PoolSpec volumes = VolumePool("v", Reach::kZone);
  volumes.labels = {{kZone, "z2"}};
  const PoolIndex v = board.SetPool(volumes);
  Request request = Ask(board, Small());
  request.bound_volumes = {v};
  Waiter waiter = Park(board, request);
  board.TakeChanges();
  volumes.capacity["storage"] = 200;
  board.SetPool(volumes);
  EXPECT_FALSE(IsWoken(board, waiter, board.TakeChanges())) << "its volume has its room";
  volumes.labels = {{kZone, "z1"}};
  board.SetPool(volumes);
  EXPECT_TRUE(IsWoken(board, waiter, board.TakeChanges()));
  EXPECT_TRUE(HasPlace(board, waiter));
  // The other way round.
  machines.labels = {{kZone, "z2"}};
  board.SetPool(machines);
  waiter = Park(board, request);
  board.TakeChanges();
  machines.labels = {{kZone, "z1"}};
  board.SetPool(machines);
  EXPECT_TRUE(IsWoken(board, waiter, board.TakeChanges()));
}

TEST(CoreWaking, WhoNamesAPoolIsToldThatItIsGone) {
  Board board({});
  board.SetPool(Pool("a"));
  const PoolIndex named = board.SetPool(Pool("b"));
  Requirements huge = Huge();
  Request pinned = Ask(board, huge);
  pinned.pinned = named;
  Request among = Ask(board, huge);
  among.among = {named};
  Waiter one = Park(board, pinned);
  Waiter two = Park(board, among);
  Waiter any = Park(board, Ask(board, huge));
  board.TakeChanges();
  board.RemovePool(named);
  const std::vector<Change> changes = board.TakeChanges();
  EXPECT_TRUE(IsWoken(board, one, changes));
  EXPECT_TRUE(IsWoken(board, two, changes));
  EXPECT_FALSE(IsWoken(board, any, changes));
}

// ---- One rule behind another

TEST(CoreWaking, ARuleThatAnotherOneHidIsWaitedForOnceItShows) {
  Board board({});
  PoolSpec spec = Pool("a");
  spec.taints = {{"k", "v"}};
  const PoolIndex pool = board.SetPool(spec);
  Requirements all = Small();
  all.resources = {{"cpu", 8'000}};
  const Request large = Ask(board, all);
  board.Settle(large, pool);
  Waiter waiter = Park(board, Ask(board, Small()));
  EXPECT_FALSE(Has(waiter.waking, Event::kRoom));
  board.TakeChanges();
  spec.taints = {};
  board.SetPool(spec);
  EXPECT_FALSE(IsWoken(board, waiter, board.TakeChanges()));
  EXPECT_TRUE(Has(waiter.waking, Event::kRoom));
  board.Forget(large.key);
  EXPECT_TRUE(IsWoken(board, waiter, board.TakeChanges()));
}

TEST(CoreWaking, ARuleThatCameBeforeTheOneThatWasFailedIsWaitedForToo) {
  Board board({});
  PoolSpec spec = Pool("a");
  const PoolIndex pool = board.SetPool(spec);
  Requirements all = Small();
  all.resources = {{"cpu", 8'000}};
  const Request large = Ask(board, all);
  board.Settle(large, pool);
  Waiter waiter = Park(board, Ask(board, Small()));
  board.TakeChanges();
  spec.taints = {{"k", "v"}};
  board.SetPool(spec);
  EXPECT_FALSE(IsWoken(board, waiter, board.TakeChanges()));
  board.Forget(large.key);
  EXPECT_FALSE(IsWoken(board, waiter, board.TakeChanges()));
  spec.taints = {};
  board.SetPool(spec);
  EXPECT_TRUE(IsWoken(board, waiter, board.TakeChanges()));
}

// ---- Reservations

TEST(CoreWaking, ReservedRoomThatIsGivenBackWakesWhoWaitsForIt) {
  Board board({});
  const PoolIndex pool = board.SetPool(Pool("a"));
  Requirements all = Small();
  all.resources = {{"cpu", 8'000}, {"memory", 8'000}};
  Request reservation = Ask(board, all);
  reservation.is_reservation = true;
  board.Settle(reservation, pool);
  Request first = Ask(board, Small());
  first.reservation = {reservation.key};
  ASSERT_EQ(board.Assume(first, board.Decide(first, 1).ranked.at(0)), AssumeVerdict::kAssumed);
  Request second = Ask(board, Small());
  second.reservation = {reservation.key};
  Waiter waiter = Park(board, second);
  Waiter other = Park(board, Ask(board, Small()));
  board.TakeChanges();
  board.Forget(first.key);
  const std::vector<Change> changes = board.TakeChanges();
  EXPECT_TRUE(HasPlace(board, waiter));
  EXPECT_TRUE(IsWoken(board, waiter, changes));
  EXPECT_FALSE(IsWoken(board, other, changes)) << "the room is reserved";
}

}  // namespace
}  // namespace berth::scheduler
