// SPDX-License-Identifier: Apache-2.0
// Defends PROTOCOL 8.6 in the scheduler: reservations get their room from hosts, machines that name
// them go into it, and nobody else does.
#include "apis/core/reservation.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

using apis::core::kReservationKind;
using apis::core::Reservation;
using Verdict = fleet::Answer::Verdict;

class ReservationTest : public testing::Test {
 protected:
  std::string MakePool(const std::string& name, int64_t cpus = 8) {
    const std::string uid = world_.MakePool(name, cpus);
    world_.Join(uid, cpus);
    return uid;
  }
  static Reservation Draft(const std::string& name, const std::string& size, int32_t count = 1) {
    Reservation reservation;
    reservation.metadata.namespace_ = SchedulerWorld::kNamespace;
    reservation.metadata.name = name;
    reservation.spec.class_ref = apis::core::LocalObjectReference{size};
    reservation.spec.count = count;
    return reservation;
  }
  std::string Reserve(Reservation reservation) {
    const auto made = world_.api().Run(world_.api().client().Create(
        meta::Object::Of(kReservationKind, std::move(reservation)), {}));
    CHECK(made.ok()) << made.status();
    return made->metadata().uid;
  }
  // "r" on all of these, with its parts, which are accepted.
  void ReserveOnAll(const std::vector<std::string>& pools) {
    Reservation all = Draft("r", "small");
    all.spec.mode = "All";
    Reserve(std::move(all));
    for (const std::string& pool : pools) {
      Reservation part = Draft("r-" + pool, "small");
      part.metadata.labels[std::string(apis::core::kReservationOfLabel)] = "r";
      part.spec.pools = {pool};
      Reserve(std::move(part));
      ASSERT_TRUE(IsAccepted("r-" + pool));
    }
  }
  Reservation Get(const std::string& name) {
    const auto got = world_.api().Run(
        world_.api().client().Get(kReservationKind, {SchedulerWorld::kNamespace, name}));
    CHECK(got.ok()) << got.status();
    return got->as<Reservation>();
  }
  bool IsAccepted(const std::string& name) {
    return world_.Until([&] { return Get(name).status.state == "Accepted"; });
  }
  std::string MakeUser(const std::string& name,
                       const std::string& reservation,
                       const std::string& size = "small") {
    auto machine = world_.Machine(name, size);
    machine.spec.placement.emplace().reservation_ref =
        apis::core::LocalObjectReference{reservation};
    return world_.MakeMachine(std::move(machine));
  }
  // The pool's host does not answer any more.
  void SayNothingOf(const std::string& pool) {
    world_.fleet().Answers(pool, [](const fleet::Offer&) { return std::nullopt; });
  }
  // The reservation's host says that the machine has used it.
  void NameConsumer(const std::string& reservation,
                    const std::string& machine,
                    const std::string& uid) {
    const auto named = world_.api().Run(world_.api().client().Patch(
        kReservationKind,
        {SchedulerWorld::kNamespace, reservation},
        client::PatchType::kMerge,
        R"({"status":{"consumers":[{"name":")" + machine + R"(","uid":")" + uid + R"("}]}})",
        {.subresource = client::Subresource::kStatus}));
    ASSERT_TRUE(named.ok()) << named.status();
    world_.RunFor(Duration::Millis(100));
  }
  std::string WhyNot(const Reservation& reservation) {
    for (const auto& condition : reservation.status.conditions) {
      if (condition.type == "Scheduled" && condition.status == "False") return condition.message;
    }
    return "";
  }

  SchedulerWorld world_{17};
};

TEST_F(ReservationTest, R8_6_AHostIsAskedAndKeepsTheRoom) {
  const std::string pool = MakePool("alpha");
  world_.StartScheduler();
  const std::string uid = Reserve(Draft("r", "large", 2));
  ASSERT_TRUE(IsAccepted("r"));
  EXPECT_EQ(Get("r").spec.machine_pool_ref->name, "alpha");
  ASSERT_EQ(world_.fleet().offers(pool).size(), 1U);
  const fleet::OfferItem& item = world_.fleet().offers(pool)[0].item;
  EXPECT_EQ(item.kind, fleet::ObjectKind::kReservation);
  EXPECT_EQ(item.uid, uid);
  EXPECT_EQ(item.resources.at("cpu"), 8000) << "both parts";
  // Nobody else gets it, however empty the pool is.
  world_.MakeMachine("stranger");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("stranger").empty(); }));
  EXPECT_EQ(world_.PoolOf("stranger"), "");
}

TEST_F(ReservationTest, R8_6_WhoNamesItGoesIntoItsRoomAndTheHostIsTold) {
  const std::string pool = MakePool("alpha", 4);
  MakePool("beta", 64);
  world_.StartScheduler();
  Reservation draft = Draft("r", "large");
  draft.spec.pools = {"alpha"};
  const std::string uid = Reserve(std::move(draft));
  ASSERT_TRUE(IsAccepted("r"));
  const std::string machine = MakeUser("m", "r");
  ASSERT_TRUE(world_.IsPlaced("m"));
  EXPECT_EQ(world_.PoolOf("m"), "alpha") << "not where most is free";
  EXPECT_EQ(world_.fleet().offers(pool).back().item.uid, machine);
  EXPECT_EQ(world_.fleet().offers(pool).back().reservation_uid, uid);
  EXPECT_EQ(Get("r").status.state, "Bound");
  EXPECT_EQ(Get("r").status.consumers.at(0).uid, machine);
  // What it did not need is free again: three more of its size.
  for (const char* name : {"a", "b", "c"}) {
    auto other = world_.Machine(name);
    other.spec.machine_pool_ref = apis::core::LocalObjectReference{"alpha"};
    world_.MakeMachine(std::move(other));
    EXPECT_TRUE(world_.IsPlaced(name)) << name;
  }
}

TEST_F(ReservationTest, R8_6_AMachineWaitsForItsReservationAndSaysSo) {
  world_.StartScheduler();
  MakeUser("m", "r");
  const auto says = [&](const std::string& text) {
    return world_.Until([&] { return world_.WhyNot("m") == text; });
  };
  EXPECT_TRUE(says("there is no Reservation r")) << world_.WhyNot("m");
  Reserve(Draft("r", "small"));
  EXPECT_TRUE(says("no pool has accepted Reservation r yet")) << world_.WhyNot("m");
  ASSERT_TRUE(world_.Until([&] { return Get("r").status.state == "Rejected"; }));
  EXPECT_EQ(WhyNot(Get("r")), "there is no pool of this kind");
  MakePool("alpha");
  ASSERT_TRUE(world_.IsPlaced("m"));
  MakeUser("late", "r");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("late").empty(); }));
  EXPECT_EQ(world_.WhyNot("late"), "others have used all of Reservation r");
}

TEST_F(ReservationTest, R8_6_AMachineThatIsLargerWaits) {
  MakePool("alpha", 64);
  world_.StartScheduler();
  Reserve(Draft("r", "small"));
  ASSERT_TRUE(IsAccepted("r"));
  MakeUser("m", "r", "large");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("m").empty(); }));
  EXPECT_EQ(world_.WhyNot("m"),
            "none of 1 pools takes it: 1 have no room of the reservation; nearest is alpha "
            "(Reservation)");
}

TEST_F(ReservationTest, R8_6_PartsAreUsedOneByOne) {
  MakePool("alpha", 4);
  world_.StartScheduler();
  Reserve(Draft("r", "small", 4));
  ASSERT_TRUE(IsAccepted("r"));
  for (const char* name : {"a", "b", "c", "d", "e"}) MakeUser(name, "r");
  ASSERT_TRUE(world_.Until([&] { return Get("r").status.state == "Bound"; }));
  int placed = 0;
  for (const char* name : {"a", "b", "c", "d", "e"}) placed += world_.PoolOf(name).empty() ? 0 : 1;
  EXPECT_EQ(placed, 4);
  EXPECT_EQ(world_.scheduler().board().object_count(), 4U) << "nothing is left of the reservation";
}

TEST_F(ReservationTest, R8_6_ThePoolsThatItNamesAreTriedAndNoOthers) {
  const std::string alpha = MakePool("alpha");
  const std::string beta = MakePool("beta");
  MakePool("gamma", 64);
  world_.fleet().Answers(alpha, [](const fleet::Offer&) {
    return fleet::Answer{.verdict = Verdict::kRejected, .reason = "Insufficient"};
  });
  world_.StartScheduler();
  Reservation draft = Draft("r", "small");
  draft.spec.pools = {"alpha", "beta"};
  Reserve(std::move(draft));
  ASSERT_TRUE(IsAccepted("r"));
  EXPECT_EQ(Get("r").spec.machine_pool_ref->name, "beta");
}

TEST_F(ReservationTest, R8_6_ASelectorChoosesThePool) {
  MakePool("alpha", 64);
  const std::string beta = world_.MakePool("beta", 8, "b");
  world_.Join(beta);
  world_.StartScheduler();
  Reservation draft = Draft("r", "small");
  draft.spec.selector = {{"zone", "b"}};
  Reserve(std::move(draft));
  ASSERT_TRUE(IsAccepted("r"));
  EXPECT_EQ(Get("r").spec.machine_pool_ref->name, "beta");
}

TEST_F(ReservationTest, R8_6_ItIsStillThereForTheNextScheduler) {
  MakePool("alpha", 4);
  world_.StartScheduler();
  Reserve(Draft("r", "small", 4));
  ASSERT_TRUE(IsAccepted("r"));
  MakeUser("a", "r");
  ASSERT_TRUE(world_.IsPlaced("a"));
  world_.StopScheduler();
  world_.StartScheduler();
  world_.MakeMachine("stranger");
  for (const char* name : {"b", "c", "d"}) MakeUser(name, "r");
  for (const char* name : {"b", "c", "d"}) EXPECT_TRUE(world_.IsPlaced(name)) << name;
  EXPECT_EQ(world_.PoolOf("stranger"), "");
}

TEST_F(ReservationTest, R8_6_AMachineThatHasUsedItsPartGoesWhereAnyOtherWould) {
  MakePool("alpha");
  world_.StartScheduler();
  Reserve(Draft("r", "small"));
  ASSERT_TRUE(IsAccepted("r"));
  MakeUser("m", "r");
  ASSERT_TRUE(world_.IsPlaced("m"));
  MakePool("beta");
  world_.Cordon("alpha");
  world_.LetGo("m", "Drain");
  ASSERT_TRUE(world_.IsPlaced("m"));
  EXPECT_EQ(world_.PoolOf("m"), "beta");
  EXPECT_EQ(Get("r").status.consumers.size(), 1U);
}

// After a restore a host names who has used a reservation. Of a machine that another host is asked
// about that says nothing: what is assumed of it ends with the answer.
TEST_F(ReservationTest, R8_6_Seq20_AUserThatIsOnAnotherPoolIsLeftAlone) {
  MakePool("alpha", 1);
  const std::string beta = MakePool("beta", 1);
  world_.StartScheduler();
  ReserveOnAll({"alpha", "beta"});
  world_.Cordon("alpha");
  world_.RunFor(Duration::Millis(100));
  SayNothingOf(beta);
  const std::string uid = MakeUser("m", "r");
  ASSERT_TRUE(world_.Until([&] { return world_.fleet().offers(beta).size() == 2; }));
  NameConsumer("r-alpha", "m", uid);
  const ObjectKey key = ObjectKey::FromUid(uid);
  EXPECT_TRUE(world_.scheduler().board().PoolOf(key).has_value()) << "beta is still asked";
  EXPECT_FALSE(world_.scheduler().board().IsConfirmed(key));
}

TEST_F(ReservationTest, R8_6_Seq20_AMachineThatDoesNotNameItIsLeftAlone) {
  const std::string alpha = MakePool("alpha", 2);
  world_.StartScheduler();
  Reserve(Draft("r", "small"));
  ASSERT_TRUE(IsAccepted("r"));
  SayNothingOf(alpha);
  const std::string uid = world_.MakeMachine("m");
  ASSERT_TRUE(world_.Until([&] { return world_.fleet().offers(alpha).size() == 2; }));
  NameConsumer("r", "m", uid);
  const ObjectKey key = ObjectKey::FromUid(uid);
  EXPECT_TRUE(world_.scheduler().board().PoolOf(key).has_value()) << "alpha is still asked";
  EXPECT_FALSE(world_.scheduler().board().IsConfirmed(key));
}

// The machine was asked about while its reservation lost its place and looks for another: that one
// is not there before it is written down.
TEST_F(ReservationTest, R8_6_S3_NobodyGoesIntoAReservationThatIsOnlyAssumed) {
  const std::string alpha = MakePool("alpha", 1);
  world_.StartScheduler();
  const std::string reserved = Reserve(Draft("r", "small"));
  ASSERT_TRUE(IsAccepted("r"));
  SayNothingOf(alpha);
  MakeUser("m", "r");
  ASSERT_TRUE(world_.Until([&] { return world_.fleet().offers(alpha).size() == 2; }));
  const std::string beta = MakePool("beta", 1);
  world_.fleet().Answers(beta, [reserved](const fleet::Offer& offer) {
    if (offer.item.uid == reserved) return std::optional<fleet::Answer>();
    return std::optional(fleet::Answer{.verdict = fleet::Answer::Verdict::kAccepted});
  });
  world_.Cordon("alpha");
  world_.RunFor(Duration::Millis(200));
  world_.LetGo(kReservationKind, "r", "NoDisk");
  ASSERT_TRUE(world_.Until([&] { return !world_.fleet().offers(beta).empty(); }));
  world_.RunFor(Duration::Millis(200));
  EXPECT_EQ(world_.PoolOf("m"), "");
  world_.fleet().Answers(beta, [](const fleet::Offer&) {
    return std::optional(fleet::Answer{.verdict = fleet::Answer::Verdict::kAccepted});
  });
  ASSERT_TRUE(world_.IsPlaced("m"));
  EXPECT_EQ(Get("r").status.consumers.size(), 1U);
}

TEST_F(ReservationTest, R8_6_WhatIsReleasedOrDeletedIsFreeAgain) {
  MakePool("alpha", 1);
  world_.StartScheduler();
  const std::string uid = Reserve(Draft("r", "small"));
  ASSERT_TRUE(IsAccepted("r"));
  world_.MakeMachine("m");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("m").empty(); }));
  const client::ObjectKey key{SchedulerWorld::kNamespace, "r"};
  ASSERT_TRUE(world_.api().Run(world_.api().client().Delete(kReservationKind, key, {})).ok());
  world_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(world_.PoolOf("m"), "") << "its host keeps the room still";
  client::UnbindRequest gone{.kind = &kReservationKind, .key = key, .uid = uid, .placement = 1};
  gone.reason = "HostReleased";
  const auto verdicts = world_.api().Run(world_.api().registry().binder().UnbindBatch({gone}));
  ASSERT_TRUE(verdicts[0].ok()) << verdicts[0];
  EXPECT_TRUE(world_.IsPlaced("m"));
}

TEST_F(ReservationTest, R8_6_AClassThatComesLaterIsWaitedFor) {
  MakePool("alpha");
  world_.StartScheduler();
  Reserve(Draft("r", "huge"));
  ASSERT_TRUE(world_.Until([&] { return !WhyNot(Get("r")).empty(); }));
  EXPECT_EQ(WhyNot(Get("r")), "there is no MachineClass huge");
  const std::string pool = world_.MakePool("beta", 64, "a", {"huge"});
  world_.Join(pool, 64);
  world_.MakeClass("huge", "32", "64Gi");
  EXPECT_TRUE(IsAccepted("r"));
}

TEST_F(ReservationTest, R8_6_WhyAnswersForReservationsAndForWhoNamesThem) {
  MakePool("alpha", 4);
  world_.StartScheduler();
  const auto review = [&](meta::Object object) {
    const auto answer = world_.scheduler().advice().Review({.object = object, .copies = 10});
    CHECK(answer.ok()) << answer.status();
    return answer->verdict + ": " + answer->message;
  };
  const auto draft = [&](int32_t count) {
    return meta::Object::Of(kReservationKind, Draft("r", "small", count));
  };
  EXPECT_TRUE(review(draft(4)).starts_with("Fits: would be placed on pool alpha"));
  EXPECT_TRUE(review(draft(5)).starts_with("NoPool: none of 1 pools takes it"));
  Reservation all = Draft("r", "small");
  all.spec.mode = "All";
  EXPECT_EQ(review(meta::Object::Of(kReservationKind, std::move(all))),
            "Fits: its one pool would keep it");
  auto machine = world_.Machine("m");
  machine.spec.placement.emplace().reservation_ref = apis::core::LocalObjectReference{"r"};
  const meta::Object user = meta::Object::Of(apis::compute::kMachineKind, std::move(machine));
  EXPECT_EQ(review(user), "Waits: there is no Reservation r");
  Reserve(Draft("r", "small"));
  ASSERT_TRUE(IsAccepted("r"));
  EXPECT_TRUE(review(user).starts_with("Fits: would be placed on pool alpha (1 of 1 pool fits"));
}

TEST_F(ReservationTest, R8_6_WhyOfOneForAllPoolsSaysWhoKeepsItAndWhoDoesNot) {
  MakePool("alpha", 4);
  MakePool("beta", 1);
  MakePool("gamma", 4);
  world_.StartScheduler();
  Reservation all = Draft("r", "small", 2);
  all.spec.mode = "All";
  Reserve(all);
  const auto why = [&] {
    const meta::Object object = meta::Object::Of(kReservationKind, Get("r"));
    const auto answer = world_.scheduler().advice().Review({.object = object, .copies = 10});
    CHECK(answer.ok()) << answer.status();
    return answer->verdict + ": " + answer->message;
  };
  world_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(why(), "FitsPartly: 0 of 3 pools keep it, 2 more would; not beta, which lacks 1 cpu");
  for (const char* pool : {"alpha", "beta"}) {
    Reservation part = Draft(std::string("r-") + pool, "small", 2);
    part.metadata.labels[std::string(apis::core::kReservationOfLabel)] = "r";
    part.spec.pools = {pool};
    Reserve(std::move(part));
  }
  ASSERT_TRUE(IsAccepted("r-alpha"));
  ASSERT_TRUE(world_.Until([&] { return !WhyNot(Get("r-beta")).empty(); }));
  EXPECT_EQ(why(), "FitsPartly: 1 of 3 pools keep it, 1 more would; not beta, which lacks 1 cpu");
  world_.DeletePool("beta");
  world_.DeletePool("gamma");
  world_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(why(), "Placed: 1 of 1 pools keep it");
}

TEST_F(ReservationTest, R8_6_PartsOfOneForAllPoolsAreUsedByItsName) {
  MakePool("alpha", 1);
  MakePool("beta", 1);
  world_.StartScheduler();
  ReserveOnAll({"alpha", "beta"});
  EXPECT_FALSE(Get("r").spec.machine_pool_ref) << "it has no place itself";
  for (const char* name : {"a", "b", "c"}) MakeUser(name, "r");
  ASSERT_TRUE(world_.Until([&] {
    return Get("r-alpha").status.state == "Bound" && Get("r-beta").status.state == "Bound";
  }));
  world_.RunFor(Duration::Seconds(5));
  int placed = 0;
  for (const char* name : {"a", "b", "c"}) placed += world_.PoolOf(name).empty() ? 0 : 1;
  EXPECT_EQ(placed, 2);
}

}  // namespace
}  // namespace berth::scheduler
