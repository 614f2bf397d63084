// SPDX-License-Identifier: Apache-2.0
// Nothing is promised twice: rules P1 to P5 of the protocol, on the ledger alone.
#include "poollet/ledger/ledger.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace berth::poollet {
namespace {

using Answered = fleet::Answer::Verdict;
using fleet::ObjectKind;

constexpr Duration kTtl = Duration::Seconds(10);
const Time kStart = Time::FromNanos(1'000'000'000);

fleet::OfferItem Item(std::string uid, Amounts amounts, ObjectKind kind = ObjectKind::kMachine) {
  return {.pool_uid = kind == ObjectKind::kVolume ? "volumes" : "machines",
          .kind = kind,
          .uid = std::move(uid),
          .placement = 1,
          .class_name = "small",
          .resources = std::move(amounts)};
}

fleet::Offer OfferOf(uint64_t number, fleet::OfferItem item, uint64_t term = 1) {
  fleet::Offer offer;
  offer.id = {.term = term, .number = number};
  offer.item = std::move(item);
  offer.hold_ttl = kTtl;
  return offer;
}

Allocation AllocationOf(const fleet::OfferItem& item) {
  return {.uid = item.uid,
          .kind = item.kind,
          .pool_uid = item.pool_uid,
          .class_name = item.class_name,
          .placement = item.placement,
          .amounts = item.resources,
          .reservation_uid = {}};
}

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    ledger_.SetCapacity({{"cpu", 4000}, {"memory", 1000}, {"storage", 100}});
    ledger_.SetPool({.uid = "machines", .counting = {}, .limits = {}, .classes = {}});
    ledger_.SetPool({.uid = "volumes", .counting = {}, .limits = {}, .classes = {}});
  }
  fleet::Answer Ask(const fleet::Offer& offer, Time now = kStart) {
    return ledger_.Ask(offer, 0, now);
  }
  Ledger ledger_{"boot"};
};

TEST_F(LedgerTest, P1_AnOfferOfAnOldTermIsRefused) {
  const auto answer = ledger_.Ask(OfferOf(1, Item("a", {{"cpu", 1}}), 4), 5, kStart);
  EXPECT_EQ(answer.verdict, Answered::kRejected);
  EXPECT_EQ(answer.reason, "StaleTerm");
  EXPECT_EQ(ledger_.holds(), 0U);
}

TEST_F(LedgerTest, P2_ASecondOfferForAUidRefreshesItsHold) {
  EXPECT_EQ(Ask(OfferOf(1, Item("a", {{"cpu", 3000}}))).verdict, Answered::kAccepted);
  const Time later = kStart + Duration::Seconds(8);
  EXPECT_EQ(Ask(OfferOf(2, Item("a", {{"cpu", 3500}})), later).verdict, Answered::kAccepted);
  EXPECT_EQ(ledger_.holds(), 1U);
  EXPECT_EQ(AmountOf(ledger_.HeldOf("machines"), "cpu"), 3500);
  ledger_.Expire(kStart + kTtl);
  EXPECT_EQ(ledger_.holds(), 1U) << "the second offer began a new time to live";
  ledger_.Release({.term = 1, .number = 1});
  EXPECT_EQ(ledger_.holds(), 1U) << "the first offer is not what holds it now";
}

TEST_F(LedgerTest, P2_ARefreshThatDoesNotFitKeepsTheOldHold) {
  EXPECT_EQ(Ask(OfferOf(1, Item("a", {{"cpu", 3000}}))).verdict, Answered::kAccepted);
  EXPECT_EQ(Ask(OfferOf(2, Item("a", {{"cpu", 5000}}))).verdict, Answered::kRejected);
  EXPECT_EQ(AmountOf(ledger_.HeldOf("machines"), "cpu"), 3000);
}

TEST_F(LedgerTest, P3_WhatIsHeldAllocatedOrOrphanedIsNotFree) {
  EXPECT_TRUE(ledger_.Admit(AllocationOf(Item("a", {{"cpu", 1000}})), kStart).fits);
  ledger_.SetOrphans({{.runtime_id = "r",
                       .uid = "lost",
                       .kind = ObjectKind::kMachine,
                       .pool_uid = "machines",
                       .class_name = "small",
                       .amounts = {{"cpu", 1000}}}});
  EXPECT_EQ(Ask(OfferOf(1, Item("b", {{"cpu", 1500}}))).verdict, Answered::kAccepted);
  const auto answer = Ask(OfferOf(2, Item("c", {{"cpu", 600}})));
  EXPECT_EQ(answer.verdict, Answered::kRejected);
  EXPECT_EQ(answer.reason, "Insufficient");
  EXPECT_EQ(answer.missing, (Amounts{{"cpu", 100}}));
  EXPECT_EQ(answer.ledger.boot, "boot");
}

TEST_F(LedgerTest, P3_ADimensionThatTheHostDoesNotHaveIsMissing) {
  const auto answer = Ask(OfferOf(1, Item("a", {{"gpu", 1}})));
  EXPECT_EQ(answer.missing, (Amounts{{"gpu", 1}}));
}

TEST_F(LedgerTest, P3_VolumesAndLocalDisksShareOneDiskBudget) {
  EXPECT_EQ(Ask(OfferOf(1, Item("v", {{"storage", 70}}, ObjectKind::kVolume))).verdict,
            Answered::kAccepted);
  const auto answer = Ask(OfferOf(2, Item("m", {{"cpu", 1}, {"storage", 40}})));
  EXPECT_EQ(answer.missing, (Amounts{{"storage", 10}}));
}

TEST_F(LedgerTest, P3_APoolsLimitCountsBesideTheHostsCapacity) {
  ledger_.SetPool({.uid = "machines", .counting = {}, .limits = {{"cpu", 1000}}, .classes = {}});
  EXPECT_EQ(Ask(OfferOf(1, Item("a", {{"cpu", 1001}}))).missing, (Amounts{{"cpu", 1}}));
  EXPECT_EQ(AmountOf(ledger_.CapacityOf("machines"), "cpu"), 1000);
}

TEST_F(LedgerTest, P5_AnAssignmentWithoutAHoldIsAdmittedOnlyIfItFits) {
  EXPECT_TRUE(ledger_.Admit(AllocationOf(Item("a", {{"cpu", 3000}})), kStart).fits);
  const auto verdict = ledger_.Admit(AllocationOf(Item("b", {{"cpu", 2000}})), kStart);
  EXPECT_FALSE(verdict.fits);
  EXPECT_EQ(verdict.missing, (Amounts{{"cpu", 1000}}));
  EXPECT_FALSE(ledger_.IsAllocated("b"));
}

TEST_F(LedgerTest, P5_AnAssignmentTakesThePlaceOfItsHold) {
  EXPECT_EQ(Ask(OfferOf(1, Item("a", {{"cpu", 4000}}))).verdict, Answered::kAccepted);
  EXPECT_TRUE(ledger_.Admit(AllocationOf(Item("a", {{"cpu", 4000}})), kStart).fits);
  EXPECT_EQ(ledger_.holds(), 0U);
  EXPECT_EQ(AmountOf(ledger_.AllocatedOf("machines"), "cpu"), 4000);
}

TEST_F(LedgerTest, P5_GrowthThatDoesNotFitLeavesTheAllocationAsItWas) {
  EXPECT_TRUE(ledger_.Admit(AllocationOf(Item("a", {{"storage", 60}})), kStart).fits);
  EXPECT_FALSE(ledger_.Admit(AllocationOf(Item("a", {{"storage", 120}})), kStart).fits);
  EXPECT_EQ(AmountOf(ledger_.AllocatedOf("machines"), "storage"), 60);
}

TEST_F(LedgerTest, Seq1_AHoldOfADeadSchedulerEndsByItself) {
  EXPECT_EQ(Ask(OfferOf(1, Item("a", {{"cpu", 4000}}))).verdict, Answered::kAccepted);
  EXPECT_EQ(ledger_.next_expiry(), kStart + kTtl);
  EXPECT_EQ(Ask(OfferOf(2, Item("b", {{"cpu", 1}})), kStart + Duration::Seconds(9)).verdict,
            Answered::kRejected);
  EXPECT_EQ(ledger_.Ask(OfferOf(1, Item("b", {{"cpu", 4000}}), 2), 2, kStart + kTtl).verdict,
            Answered::kAccepted);
}

TEST_F(LedgerTest, Seq2_TheNextSchedulersOfferRefreshesTheHold) {
  EXPECT_EQ(Ask(OfferOf(1, Item("a", {{"cpu", 4000}}))).verdict, Answered::kAccepted);
  EXPECT_EQ(ledger_.Ask(OfferOf(1, Item("a", {{"cpu", 4000}}), 2), 2, kStart).verdict,
            Answered::kAccepted);
  EXPECT_EQ(ledger_.holds(), 1U);
}

TEST_F(LedgerTest, Seq5_ALateAssignmentIsRefusedWhenItsRoomWasGivenAway) {
  EXPECT_EQ(Ask(OfferOf(1, Item("a", {{"cpu", 4000}}))).verdict, Answered::kAccepted);
  const Time later = kStart + Duration::Minutes(1);
  EXPECT_EQ(Ask(OfferOf(2, Item("b", {{"cpu", 3000}})), later).verdict, Answered::kAccepted);
  EXPECT_TRUE(ledger_.Admit(AllocationOf(Item("b", {{"cpu", 3000}})), later).fits);
  EXPECT_FALSE(ledger_.Admit(AllocationOf(Item("a", {{"cpu", 4000}})), later).fits);
  ledger_.Free("b");
  EXPECT_TRUE(ledger_.Admit(AllocationOf(Item("a", {{"cpu", 4000}})), later).fits);
}

TEST_F(LedgerTest, WhatIsHereAlreadyIsSaidWithItsPlacement) {
  auto item = Item("a", {{"cpu", 1}});
  item.placement = 7;
  EXPECT_TRUE(ledger_.Admit(AllocationOf(item), kStart).fits);
  const auto answer = Ask(OfferOf(1, item));
  EXPECT_EQ(answer.verdict, Answered::kAlreadyHere);
  EXPECT_EQ(answer.placement, 7U);
}

TEST_F(LedgerTest, JointItemsAreHeldTogetherOrNotAtAll) {
  auto offer = OfferOf(1, Item("m", {{"cpu", 1000}}));
  offer.joint = {Item("v", {{"storage", 90}}, ObjectKind::kVolume),
                 Item("w", {{"storage", 20}}, ObjectKind::kVolume)};
  const auto answer = Ask(offer);
  EXPECT_EQ(answer.verdict, Answered::kRejected);
  EXPECT_EQ(answer.missing, (Amounts{{"storage", 10}}));
  EXPECT_EQ(ledger_.holds(), 0U);
  EXPECT_TRUE(ledger_.HeldOf("machines").empty());
  offer.joint.pop_back();
  EXPECT_EQ(Ask(offer).verdict, Answered::kAccepted);
  EXPECT_EQ(ledger_.holds(), 2U);
  ledger_.Release(offer.id);
  EXPECT_EQ(ledger_.holds(), 0U);
}

TEST_F(LedgerTest, D2_ClassesOfARuntimeThatOnlyCountsShareOneWhole) {
  // 16 cores: 4 machines of 4 cores or 2 of 8, never both.
  ledger_.SetPool({.uid = "machines",
                   .counting = PoolBudget::Counting::kShares,
                   .limits = {},
                   .classes = {{"small", 4}, {"large", 2}}});
  auto large = Item("l", {{"cpu", 8000}});
  large.class_name = "large";
  EXPECT_EQ(Ask(OfferOf(1, large)).verdict, Answered::kAccepted);
  EXPECT_EQ(Ask(OfferOf(2, Item("a", {}))).verdict, Answered::kAccepted);
  EXPECT_EQ(Ask(OfferOf(3, Item("b", {}))).verdict, Answered::kAccepted);
  const auto answer = Ask(OfferOf(4, Item("c", {})));
  EXPECT_EQ(answer.verdict, Answered::kRejected);
  EXPECT_EQ(answer.missing, (Amounts{{"share", fleet::kShareWhole / 4}}));
  EXPECT_EQ(answer.message, "Machine c does not fit: no room for one more of class small");
  EXPECT_EQ(ledger_.CapacityOf("machines"), (Amounts{{"share", fleet::kShareWhole}}));
}

TEST_F(LedgerTest, D2_AsManyFitAsARuntimeThatOnlyCountsSays) {
  for (const int count : {1, 3, 7, 12, 41, 999}) {
    Ledger ledger("boot");
    ledger.SetPool({.uid = "machines",
                    .counting = PoolBudget::Counting::kShares,
                    .limits = {},
                    .classes = {{"small", count}}});
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(ledger.Admit(AllocationOf(Item(std::to_string(i), {})), kStart).fits) << count;
    }
    EXPECT_FALSE(ledger.Admit(AllocationOf(Item("more", {})), kStart).fits) << count;
  }
}

TEST_F(LedgerTest, AClassThatTheRuntimeDoesNotHaveIsRefused) {
  ledger_.SetPool({.uid = "machines", .counting = {}, .limits = {}, .classes = {{"large", 0}}});
  EXPECT_EQ(Ask(OfferOf(1, Item("a", {{"cpu", 1}}))).reason, "ClassUnknown");
  auto elsewhere = Item("a", {{"cpu", 1}});
  elsewhere.pool_uid = "another";
  EXPECT_EQ(Ask(OfferOf(1, elsewhere)).reason, "PoolUnknown");
}

TEST_F(LedgerTest, AClassOfAnotherSizeThanTheRuntimesIsRefusedBeforeItIsPlaced) {
  ledger_.SetPool({.uid = "machines",
                   .counting = {},
                   .limits = {},
                   .classes = {{"small", 8}},
                   .sizes = {{"small", {{"cpu", 2}, {"memory", 100}}}}});
  const auto answer = Ask(OfferOf(1, Item("a", {{"cpu", 1000}, {"memory", 100}})));
  EXPECT_EQ(answer.reason, "ClassDiffers");
  EXPECT_EQ(answer.message,
            "class \"small\" has cpu 2, memory 100 at the runtime of this pool, and cpu 1, memory "
            "100 in the cluster");
  EXPECT_EQ(Ask(OfferOf(2, Item("b", {{"cpu", 2000}}))).reason, "ClassDiffers");
  // Runtimes count whole cores, and local disks come on top.
  const auto item = Item("c", {{"cpu", 1500}, {"memory", 100}, {"storage", 50}});
  EXPECT_EQ(Ask(OfferOf(3, item)).verdict, Answered::kAccepted);
  // What was placed before goes on.
  EXPECT_TRUE(ledger_.Admit(AllocationOf(Item("d", {{"cpu", 1000}})), kStart).fits);
}

TEST_F(LedgerTest, AReservationIsConsumedByWhoNamesIt) {
  EXPECT_TRUE(
      ledger_.Admit(AllocationOf(Item("r", {{"cpu", 4000}}, ObjectKind::kReservation)), kStart)
          .fits);
  EXPECT_EQ(Ask(OfferOf(1, Item("a", {{"cpu", 1000}}))).verdict, Answered::kRejected);
  auto offer = OfferOf(2, Item("a", {{"cpu", 3000}}));
  offer.reservation_uid = "r";
  EXPECT_EQ(Ask(offer).verdict, Answered::kAccepted);
  auto second = OfferOf(3, Item("b", {{"cpu", 2000}}));
  second.reservation_uid = "r";
  EXPECT_EQ(Ask(second).reason, "ReservationTooSmall");
  EXPECT_TRUE(ledger_.Admit(AllocationOf(Item("a", {{"cpu", 3000}})), kStart).fits);
  EXPECT_EQ(AmountOf(ledger_.AllocatedOf("machines"), "cpu"), 4000) << "counted once";
  ledger_.Free("r");
  EXPECT_EQ(AmountOf(ledger_.AllocatedOf("machines"), "cpu"), 3000);
}

// The server says anew what is to be kept when a machine has used a part. That and the machine's
// own assignment come in any order, and with or without the hold that the machine was bound with.
TEST_F(LedgerTest, R8_6_APartIsCountedOnceInWhateverOrderItsUseIsTold) {
  const auto reserve = [](int64_t cpu, std::set<std::string> consumers) {
    auto allocation = AllocationOf(Item("r", {{"cpu", cpu}}, ObjectKind::kReservation));
    allocation.consumers = std::move(consumers);
    return allocation;
  };
  enum class First : uint8_t { kMachine, kReservation };
  enum class Hold : uint8_t { kHeld, kLost };
  for (const First first : {First::kMachine, First::kReservation}) {
    for (const Hold hold : {Hold::kHeld, Hold::kLost}) {
      Ledger ledger("boot");
      ledger.SetCapacity({{"cpu", 4000}});
      ledger.SetPool({.uid = "machines", .counting = {}, .limits = {}, .classes = {}});
      ASSERT_TRUE(ledger.Admit(reserve(4000, {}), kStart).fits);
      auto offer = OfferOf(1, Item("a", {{"cpu", 1500}}));
      offer.reservation_uid = "r";
      if (hold == Hold::kHeld) {
        ASSERT_EQ(ledger.Ask(offer, 0, kStart).verdict, Answered::kAccepted);
      }
      auto machine = AllocationOf(Item("a", {{"cpu", 1500}}));
      machine.reservation_uid = "r";
      if (first == First::kMachine) ASSERT_TRUE(ledger.Admit(machine, kStart).fits);
      ASSERT_TRUE(ledger.Admit(reserve(2000, {"a"}), kStart).fits);
      if (first == First::kReservation) ASSERT_TRUE(ledger.Admit(machine, kStart).fits);
      EXPECT_EQ(AmountOf(ledger.AllocatedOf("machines"), "cpu"), 3500);
      EXPECT_EQ(AmountOf(ledger.HeldOf("machines"), "cpu"), 0);
      // What is left of its part is everybody's, the other part is not.
      EXPECT_EQ(ledger.Ask(OfferOf(2, Item("b", {{"cpu", 500}})), 0, kStart).verdict,
                Answered::kAccepted);
      EXPECT_EQ(ledger.Ask(OfferOf(3, Item("c", {{"cpu", 1}})), 0, kStart).verdict,
                Answered::kRejected);
    }
  }
}

TEST_F(LedgerTest, AnOrphanThatIsAdoptedIsCountedOnce) {
  ledger_.SetOrphans({{.runtime_id = "r",
                       .uid = "a",
                       .kind = ObjectKind::kMachine,
                       .pool_uid = "machines",
                       .class_name = "small",
                       .amounts = {{"cpu", 4000}}}});
  EXPECT_TRUE(ledger_.Admit(AllocationOf(Item("a", {{"cpu", 4000}})), kStart).fits);
  EXPECT_EQ(AmountOf(ledger_.AllocatedOf("machines"), "cpu"), 4000);
}

TEST_F(LedgerTest, AHostThatShrankAdmitsNothingUntilThereIsRoomAgain) {
  EXPECT_EQ(Ask(OfferOf(1, Item("a", {{"cpu", 3000}}))).verdict, Answered::kAccepted);
  ledger_.SetCapacity({{"cpu", 2000}});
  EXPECT_FALSE(ledger_.Admit(AllocationOf(Item("a", {{"cpu", 3000}})), kStart).fits);
  ledger_.Restore(AllocationOf(Item("b", {{"cpu", 2500}})));
  EXPECT_EQ(Ask(OfferOf(2, Item("c", {{"cpu", 1}}))).missing, (Amounts{{"cpu", 501}}));
}

TEST_F(LedgerTest, AmountsThatAreTooLargeDoNotGoRound) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Ask(OfferOf(1, Item("a", {{"cpu", most}}))).missing, (Amounts{{"cpu", most - 4000}}));
  EXPECT_EQ(Ask(OfferOf(2, Item("a", {{"cpu", -1}}))).reason, "BadRequest");
  EXPECT_EQ(ShareOf(1, 3), 333'333'333'333);
  EXPECT_EQ(ShareOf(most, 1), most);
}

// The same rules, computed from the whole list every time.
class Naive {
 public:
  struct Use {
    Amounts amounts;
    Time expires;
    uint64_t offer = 0;
  };
  Amounts Free(Time now) const {
    Amounts free = {{"cpu", 4000}, {"memory", 1000}, {"storage", 100}};
    for (const auto& [_, use] : allocations) Subtract(free, use.amounts);
    for (const auto& [_, use] : holds) {
      if (use.expires > now) Subtract(free, use.amounts);
    }
    return free;
  }
  bool Fits(const std::string& uid, const Amounts& amounts, Time now) {
    const auto keep = holds.extract(uid);
    const bool fits = Beyond(amounts, Free(now)).empty();
    if (!keep.empty()) holds[keep.key()] = keep.mapped();
    return fits;
  }
  std::map<std::string, Use> holds;
  std::map<std::string, Use> allocations;
};

TEST_F(LedgerTest, AgreesWithANaiveReferenceForRandomHistories) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Ledger ledger("boot");
    ledger.SetCapacity({{"cpu", 4000}, {"memory", 1000}, {"storage", 100}});
    ledger.SetPool({.uid = "machines", .counting = {}, .limits = {}, .classes = {}});
    Naive naive;
    Time now = kStart;
    for (uint64_t step = 1; step <= 150; ++step) {
      now = now + Duration::Seconds(random.Between(0, 3));
      const std::string uid = "u" + std::to_string(random.Below(12));
      const Amounts amounts = {{"cpu", random.Between(1, 1500)},
                               {"memory", random.Between(1, 400)},
                               {"storage", random.Between(1, 30)}};
      std::erase_if(naive.holds, [&](const auto& hold) { return hold.second.expires <= now; });
      switch (random.Below(4)) {
        case 0: {
          const auto answer = ledger.Ask(OfferOf(step, Item(uid, amounts)), 0, now);
          if (naive.allocations.contains(uid)) {
            ASSERT_EQ(answer.verdict, Answered::kAlreadyHere);
          } else if (naive.Fits(uid, amounts, now)) {
            ASSERT_EQ(answer.verdict, Answered::kAccepted) << "seed " << seed << " step " << step;
            naive.holds[uid] = {.amounts = amounts, .expires = now + kTtl, .offer = step};
          } else {
            ASSERT_EQ(answer.verdict, Answered::kRejected) << "seed " << seed << " step " << step;
          }
          break;
        }
        case 1: {
          if (naive.allocations.contains(uid)) break;
          const bool fits = naive.Fits(uid, amounts, now);
          ASSERT_EQ(ledger.Admit(AllocationOf(Item(uid, amounts)), now).fits, fits);
          naive.holds.erase(uid);
          if (fits) {
            naive.allocations[uid] = {.amounts = amounts, .expires = {}, .offer = 0};
          }
          break;
        }
        case 2:
          ledger.Free(uid);
          naive.allocations.erase(uid);
          break;
        default: {
          const auto hold = naive.holds.find(uid);
          if (hold == naive.holds.end()) break;
          ledger.Release({.term = 1, .number = hold->second.offer});
          naive.holds.erase(hold);
        }
      }
      ledger.Expire(now);
      Amounts free = ledger.CapacityOf("machines");
      Subtract(free, ledger.AllocatedOf("machines"));
      Subtract(free, ledger.HeldOf("machines"));
      ASSERT_EQ(free, naive.Free(now)) << "seed " << seed << " step " << step;
      for (const auto& [name, amount] : free) ASSERT_GE(amount, 0) << name;
    }
  }
}

TEST_F(LedgerTest, ReservationsAndOrphansNeverMakeFreeNegative) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    Ledger ledger("boot");
    ledger.SetCapacity({{"cpu", 4000}});
    ledger.SetPool({.uid = "machines", .counting = {}, .limits = {}, .classes = {}});
    for (uint64_t step = 1; step <= 100; ++step) {
      const std::string uid = "u" + std::to_string(random.Below(8));
      const std::string reservation = "r" + std::to_string(random.Below(2));
      const Amounts amounts = {{"cpu", random.Between(1, 1500)}};
      auto item = Item(uid, amounts);
      switch (random.Below(5)) {
        case 0: {
          auto offer = OfferOf(step, item);
          if (random.Chance(0.5)) offer.reservation_uid = reservation;
          ledger.Ask(offer, 0, kStart);
          break;
        }
        case 1: {
          auto allocation = AllocationOf(item);
          if (random.Chance(0.5)) allocation.reservation_uid = reservation;
          const auto ignored = ledger.Admit(allocation, kStart);
          break;
        }
        case 2: {
          const auto reserve = Item(reservation, amounts, ObjectKind::kReservation);
          const auto ignored = ledger.Admit(AllocationOf(reserve), kStart);
          break;
        }
        case 3: ledger.Free(random.Chance(0.7) ? uid : reservation); break;
        default: ledger.Release({.term = 1, .number = random.Below(step) + 1});
      }
      Amounts free = ledger.CapacityOf("machines");
      Subtract(free, ledger.AllocatedOf("machines"));
      Subtract(free, ledger.HeldOf("machines"));
      ASSERT_GE(AmountOf(free, "cpu"), 0) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace berth::poollet
