// SPDX-License-Identifier: Apache-2.0
// Defends: what stands in one file is judged together before any of it exists, a group all at once,
// and nothing of that is left on the board.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apis/berth/machine_group.h"
#include "apis/compute/machine_class.h"
#include "apis/core/reservation.h"
#include "apis/storage/volume_snapshot.h"
#include "scheduler/placing/adviser.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

namespace dev = apis::berth_dev;
using apis::core::LocalObjectReference;

class AdviserDraftsTest : public testing::Test {
 protected:
  using Drafts = std::vector<meta::Object>;

  dev::PlacementReviewStatus Review(const meta::Object& object, const Drafts& related) {
    const size_t known = world_.scheduler().board().object_count();
    auto answer = world_.scheduler().advice().Review({.object = object, .related = related});
    EXPECT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(world_.scheduler().board().object_count(), known) << "nothing is left";
    return answer.ok() ? *std::move(answer) : dev::PlacementReviewStatus{};
  }
  static meta::Object Of(apis::compute::Machine machine) {
    return meta::Object::Of(apis::compute::kMachineKind, std::move(machine));
  }
  static meta::Object Volume(const std::string& name, int64_t gigabytes) {
    apis::storage::Volume volume;
    volume.metadata.namespace_ = SchedulerWorld::kNamespace;
    volume.metadata.name = name;
    volume.spec.volume_class_ref = LocalObjectReference{"disk"};
    volume.spec.resources = {{"storage", meta::Quantity(gigabytes << 30)}};
    return meta::Object::Of(apis::storage::kVolumeKind, std::move(volume));
  }
  static meta::Object Class(const std::string& name, const char* cpu) {
    apis::compute::MachineClass size;
    size.metadata.name = name;
    size.capabilities = {{"cpu", *meta::Quantity::Parse(cpu)},
                         {"memory", *meta::Quantity::Parse("1Gi")}};
    return meta::Object::Of(apis::compute::kMachineClassKind, std::move(size));
  }
  static meta::Object Reservation(const std::string& size, int32_t count) {
    apis::core::Reservation reservation;
    reservation.metadata.namespace_ = SchedulerWorld::kNamespace;
    reservation.metadata.name = "rollout";
    reservation.spec.class_ref = LocalObjectReference{size};
    reservation.spec.count = count;
    return meta::Object::Of(apis::core::kReservationKind, std::move(reservation));
  }
  // A machine that names this volume.
  apis::compute::Machine User(const std::string& name, const std::string& volume) {
    auto machine = world_.Machine(name);
    machine.spec.volumes.emplace_back().name = volume;
    machine.spec.volumes[0].volume_ref = LocalObjectReference{volume};
    return machine;
  }
  apis::compute::Machine Reserved(const std::string& name, const std::string& size = "small") {
    auto machine = world_.Machine(name, size);
    machine.spec.placement.emplace().reservation_ref = LocalObjectReference{"rollout"};
    return machine;
  }
  apis::compute::Machine Member(const std::string& name, const std::string& size = "small") {
    auto machine = world_.Machine(name, size);
    machine.spec.placement.emplace().group_ref = LocalObjectReference{"ring"};
    return machine;
  }
  Drafts Members(int count) {
    Drafts members;
    for (int i = 0; i < count; ++i) members.push_back(Of(Member("m-" + std::to_string(i))));
    return members;
  }
  static meta::Object Group(int32_t min_members) {
    dev::MachineGroup group;
    group.metadata.namespace_ = SchedulerWorld::kNamespace;
    group.metadata.name = "ring";
    group.spec.min_members = min_members;
    return meta::Object::Of(dev::kMachineGroupKind, std::move(group));
  }
  static std::map<std::string, std::string> PoolsOf(const dev::PlacementReviewStatus& answer) {
    std::map<std::string, std::string> pools;
    for (const dev::MemberPlace& member : answer.members) pools[member.name] = member.pool;
    return pools;
  }
  void Join(const std::string& pool, int64_t cpus) {
    world_.Join(world_.MakePool(pool, cpus), cpus);
  }

  SchedulerWorld world_{5};
};

TEST_F(AdviserDraftsTest, AMachineIsJudgedWithTheVolumeOfTheSameFile) {
  Join("alpha", 8);
  Join("beta", 8);
  world_.JoinVolumePool(world_.MakeVolumePool("beta-disks", "host-beta", "Host"));
  world_.StartScheduler();
  const meta::Object machine = Of(User("db", "data"));
  const auto alone = Review(machine, {});
  EXPECT_EQ(alone.message, "there is no Volume data");
  const auto answer = Review(machine, {Volume("data", 30)});
  EXPECT_EQ(answer.verdict, "Fits");
  EXPECT_EQ(answer.message, "would be placed on pool beta (1 of 2 pools fit; room for 3)");
  ASSERT_EQ(answer.ranked.size(), 1U);
  EXPECT_EQ(answer.ranked[0].volume_pools, std::vector<std::string>{"beta-disks"});
  const auto too_large = Review(machine, {Volume("data", 300)});
  EXPECT_EQ(too_large.verdict, "NoPool");
  EXPECT_EQ(too_large.failed[0].rule, "JointVolume");
  EXPECT_EQ(Review(machine, {}), alone) << "drafts are forgotten with their question";
}

TEST_F(AdviserDraftsTest, AVolumeOfAFileGoesWhereTheMachineGoesThatNamesIt) {
  Join("alpha", 8);
  world_.JoinVolumePool(world_.MakeVolumePool("alpha-disks", "host-alpha", "Host"));
  world_.JoinVolumePool(world_.MakeVolumePool("far-disks", "host-far", "Host"));
  world_.StartScheduler();
  const auto answer = Review(Volume("data", 30), {Of(User("db", "data")), Volume("data", 30)});
  EXPECT_EQ(answer.verdict, "Fits");
  EXPECT_EQ(answer.message,
            "is placed together with machine db: would be placed on pool alpha (1 of 1 pool fits; "
            "room for 3)");
  const auto nobodys = Review(Volume("data", 30), {Of(User("db", "other"))});
  EXPECT_TRUE(nobodys.message.starts_with("would be placed on pool ")) << nobodys.message;
}

TEST_F(AdviserDraftsTest, WhatExistsCountsAsItIs) {
  Join("alpha", 8);
  world_.JoinVolumePool(world_.MakeVolumePool("alpha-disks", "host-alpha", "Host"));
  world_.StartScheduler();
  world_.MakeVolume("data");
  ASSERT_TRUE(world_.Until([&] { return !world_.VolumePoolOf("data").empty(); }));
  const auto answer = Review(Of(User("db", "data")), {Volume("data", 300), Class("small", "64")});
  EXPECT_EQ(answer.verdict, "Fits") << answer.message;
  EXPECT_TRUE(answer.ranked[0].volume_pools.empty()) << "it has its pool already";
}

TEST_F(AdviserDraftsTest, AVolumeIsNotTiedToAMachineThatExistsAndNamesItInTheFileOnly) {
  Join("alpha", 8);
  world_.JoinVolumePool(world_.MakeVolumePool("alpha-disks", "host-alpha", "Host"));
  world_.JoinVolumePool(world_.MakeVolumePool("far-disks", "host-far", "Host"));
  world_.StartScheduler();
  world_.MakeMachine("db");
  ASSERT_TRUE(world_.IsPlaced("db"));
  const auto answer = Review(Volume("data", 30), {Of(User("db", "data"))});
  EXPECT_EQ(answer.verdict, "Fits");
  EXPECT_TRUE(answer.message.starts_with("would be placed on pool ")) << answer.message;
  EXPECT_NE(answer.message.find("(2 of 2 pools fit;"), std::string::npos) << answer.message;
}

TEST_F(AdviserDraftsTest, AVolumeThatBeginsWithASnapshotOfTheFileWaitsForIt) {
  Join("alpha", 8);
  world_.StartScheduler();
  apis::storage::VolumeSnapshot snapshot;
  snapshot.metadata.namespace_ = SchedulerWorld::kNamespace;
  snapshot.metadata.name = "nightly";
  snapshot.spec.volume_ref.name = "data";
  meta::Object copy = Volume("copy", 1);
  copy.as<apis::storage::Volume>().spec.data_source.emplace().volume_snapshot_ref =
      LocalObjectReference{"nightly"};
  const auto taken = meta::Object::Of(apis::storage::kVolumeSnapshotKind, std::move(snapshot));
  EXPECT_EQ(Review(copy, {taken}).message, "VolumeSnapshot nightly is not ready yet");
}

TEST_F(AdviserDraftsTest, AClassOfTheSameFileSaysHowLargeTheMachineIs) {
  world_.Join(world_.MakePool("alpha", 8, "a", {"huge"}), 8);
  world_.StartScheduler();
  const meta::Object machine = Of(world_.Machine("web", "huge"));
  EXPECT_EQ(Review(machine, {}).message, "there is no MachineClass huge");
  EXPECT_EQ(Review(machine, {Class("huge", "4")}).message,
            "would be placed on pool alpha (1 of 1 pool fits; room for 2)");
  EXPECT_EQ(Review(machine, {Class("huge", "16")}).verdict, "NoPool");
}

TEST_F(AdviserDraftsTest, AMachineGoesIntoTheReservationOfTheSameFile) {
  Join("alpha", 3);
  Join("beta", 2);
  world_.StartScheduler();
  EXPECT_EQ(Review(Of(Reserved("web")), {}).message, "there is no Reservation rollout");
  const auto answer = Review(Of(Reserved("web")), {Reservation("small", 3)});
  EXPECT_EQ(answer.message, "would be placed on pool alpha (1 of 2 pools fit; room for 3)")
      << "only there is room for three, and a fourth has to go elsewhere";
  const auto larger = Review(Of(Reserved("web", "large")), {Reservation("small", 3)});
  EXPECT_EQ(larger.verdict, "NoPool");
  EXPECT_EQ(larger.failed[0].rule, "Reservation");
  EXPECT_EQ(Review(Of(Reserved("web")), {Reservation("large", 3)}).message,
            "no pool has accepted Reservation rollout yet");
}

TEST_F(AdviserDraftsTest, AReservationForAllPoolsIsWaitedFor) {
  Join("alpha", 3);
  world_.StartScheduler();
  meta::Object all = Reservation("small", 1);
  all.as<apis::core::Reservation>().spec.mode = apis::core::kReserveAll;
  EXPECT_EQ(Review(Of(Reserved("web")), {all}).message,
            "no pool has accepted Reservation rollout yet");
}

TEST_F(AdviserDraftsTest, AReservationForAllPoolsIsJudgedPoolByPool) {
  Join("alpha", 4);
  Join("beta", 2);
  Join("gamma", 4);
  Join("delta", 4);
  world_.StartScheduler();
  meta::Object all = Reservation("small", 2);
  auto& spec = all.as<apis::core::Reservation>().spec;
  spec.mode = apis::core::kReserveAll;
  const auto fits = Review(all, {});
  EXPECT_EQ(fits.verdict, "Fits");
  EXPECT_EQ(fits.message, "all 4 pools would keep it");
  EXPECT_EQ(fits.pools, 4);
  EXPECT_EQ(fits.fitting, 4);
  spec.count = 3;
  world_.Cordon("delta");
  world_.RunFor(Duration::Seconds(1));
  const auto partly = Review(all, {});
  EXPECT_EQ(partly.verdict, "FitsPartly");
  EXPECT_EQ(partly.message,
            "2 of 4 pools would keep it; not beta, which lacks 1 cpu; not delta (Cordoned)");
  EXPECT_EQ(partly.fitting, 2);
  ASSERT_EQ(partly.failed.size(), 2U);
  EXPECT_EQ(partly.failed[0].rule, "Cordoned");
  EXPECT_EQ(partly.failed[1].rule, "Room");
  EXPECT_EQ(partly.scarce, (std::map<std::string, int64_t>{{"cpu", 1}}));
  ASSERT_TRUE(partly.nearest.has_value());
  EXPECT_EQ(partly.nearest->pool, "beta");
  spec.pools = {"alpha", "omega"};
  EXPECT_EQ(Review(all, {}).message, "its one pool would keep it; there is no pool omega");
  spec.pools = {"omega"};
  EXPECT_EQ(Review(all, {}).verdict, "Waits");
  EXPECT_EQ(Review(all, {}).message, "there is none of the pools that it names");
  spec.pools.clear();
  spec.selector = {{"tier", "fast"}};
  EXPECT_EQ(Review(all, {}).verdict, "NoPool");
  EXPECT_EQ(Review(all, {}).message, "no pool has the labels that it asks for");
}

TEST_F(AdviserDraftsTest, OfManyPoolsThatCannotKeepAReservationAFewAreNamed) {
  for (int i = 0; i < 6; ++i) Join("p-" + std::to_string(i), 1);
  world_.StartScheduler();
  meta::Object all = Reservation("small", 2);
  all.as<apis::core::Reservation>().spec.mode = apis::core::kReserveAll;
  const auto answer = Review(all, {});
  EXPECT_EQ(answer.verdict, "NoPool");
  EXPECT_EQ(answer.message,
            "0 of 6 pools would keep it; not p-0, which lacks 1 cpu; not p-1, which lacks 1 cpu; "
            "not p-2, which lacks 1 cpu; not p-3, which lacks 1 cpu; and 2 more");
}

TEST_F(AdviserDraftsTest, AGroupFitsIfAllMembersOfTheFileFitAtOnce) {
  Join("alpha", 2);
  Join("beta", 1);
  world_.StartScheduler();
  const auto answer = Review(Group(3), Members(3));
  EXPECT_EQ(answer.verdict, "Fits");
  EXPECT_EQ(answer.message, "all 3 members fit at once");
  EXPECT_EQ(answer.wanted, 3);
  EXPECT_EQ(answer.room, 3);
  std::map<std::string, int> on;
  for (const auto& [name, pool] : PoolsOf(answer)) ++on[pool];
  EXPECT_EQ(on, (std::map<std::string, int>{{"alpha", 2}, {"beta", 1}}));
  EXPECT_EQ(Review(Group(3), Members(3)), answer);
}

TEST_F(AdviserDraftsTest, AGroupWithoutRoomForEnoughSaysForHowManyThereIs) {
  Join("alpha", 2);
  world_.StartScheduler();
  const auto none = Review(Group(3), Members(4));
  EXPECT_EQ(none.verdict, "NoPool");
  EXPECT_EQ(none.message, "room for 2 of 4 members at once; none gets a pool before 3 can");
  EXPECT_EQ(none.room, 2);
  EXPECT_EQ(PoolsOf(none).at("m-0"), "");
  const auto some = Review(Group(2), Members(4));
  EXPECT_EQ(some.verdict, "FitsPartly");
  EXPECT_EQ(some.message, "room for 2 of 4 members at once");
  EXPECT_EQ(PoolsOf(some),
            (std::map<std::string, std::string>{
                {"m-0", "alpha"}, {"m-1", "alpha"}, {"m-2", ""}, {"m-3", ""}}));
  Drafts large = {Of(Member("m-0", "large")), Of(Member("m-1", "large"))};
  EXPECT_EQ(Review(Group(2), large).message,
            "room for 0 of 2 members at once; none gets a pool before 2 can; none of 1 pools takes "
            "it: 1 have too little room (1 cpu); nearest is alpha, which lacks 2 cpu");
}

TEST_F(AdviserDraftsTest, MembersThatExistCountAndThoseOfTheFileAreAdded) {
  Join("alpha", 8);
  world_.StartScheduler();
  const auto few = Review(Group(3), Members(1));
  EXPECT_EQ(few.verdict, "Waits");
  EXPECT_EQ(few.message,
            "has 1 of 3 members, counting those that exist and those that come with it");
  EXPECT_EQ(few.wanted, 1);
  world_.MakeMachine(Member("m-0"));
  world_.MakeMachine(Member("n-0"));
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("n-0").empty(); }));
  const auto all = Review(Group(3), Members(2));
  EXPECT_EQ(all.message, "all 3 members fit at once") << "m-0 of the file exists already";
  EXPECT_EQ(
      PoolsOf(all),
      (std::map<std::string, std::string>{{"m-0", "alpha"}, {"m-1", "alpha"}, {"n-0", "alpha"}}));
}

TEST_F(AdviserDraftsTest, MembersThatHaveAPoolNeedNoOther) {
  Join("alpha", 2);
  world_.StartScheduler();
  const auto made = world_.api().Run(world_.api().client().Create(Group(1), {}));
  ASSERT_TRUE(made.ok()) << made.status();
  world_.MakeMachine(Member("m-0"));
  ASSERT_TRUE(world_.IsPlaced("m-0"));
  world_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(Review(*made, {}).message, "its one member fits");
  EXPECT_EQ(Review(*made, Members(2)).message, "all 2 members fit at once");
  const auto more = Review(*made, Members(4));
  EXPECT_EQ(more.verdict, "FitsPartly");
  EXPECT_EQ(more.room, 2);
  EXPECT_EQ(PoolsOf(more).at("m-0"), "alpha");
}

TEST_F(AdviserDraftsTest, AMemberThatWaitsForSomethingElseIsNamed) {
  Join("alpha", 8);
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "host-alpha", "Host"));
  world_.StartScheduler();
  auto machine = User("m-2", "data");
  machine.spec.placement.emplace().group_ref = LocalObjectReference{"ring"};
  Drafts members = Members(2);
  members.push_back(Of(machine));
  const auto waits = Review(Group(3), members);
  EXPECT_EQ(waits.verdict, "Waits");
  EXPECT_EQ(waits.message,
            "2 of 3 members that are needed can be placed; m-2: there is no Volume data");
  EXPECT_EQ(waits.members.at(2).message, "there is no Volume data");
  const auto partly = Review(Group(2), members);
  EXPECT_EQ(partly.verdict, "FitsPartly");
  EXPECT_EQ(partly.message, "room for 2 of 3 members at once; m-2: there is no Volume data");
  members.push_back(Volume("data", 1));
  const auto fits = Review(Group(3), members);
  EXPECT_EQ(fits.message, "all 3 members fit at once");
  EXPECT_EQ(fits.members.at(2).volume_pools, std::vector<std::string>{"disks"});
}

TEST_F(AdviserDraftsTest, VolumesThatAreMadeForMembersAreEachTheirOwn) {
  Join("alpha", 8);
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "host-alpha", "Host"));
  world_.StartScheduler();
  Drafts members;
  for (int i = 0; i < 3; ++i) {
    auto machine = Member("m-" + std::to_string(i));
    auto& volume = machine.spec.volumes.emplace_back();
    volume.name = "scratch";
    auto& described = volume.ephemeral.emplace().volume_template.emplace();
    described.spec.volume_class_ref = LocalObjectReference{"disk"};
    described.spec.resources = {{"storage", meta::Quantity(40LL << 30)}};
    members.push_back(Of(std::move(machine)));
  }
  EXPECT_EQ(Review(Group(2), members).message, "room for 2 of 3 members at once");
}

TEST_F(AdviserDraftsTest, MembersShareTheReservationOfTheirFile) {
  Join("alpha", 2);
  world_.StartScheduler();
  Drafts drafts = {Reservation("small", 2)};
  for (int i = 0; i < 2; ++i) {
    auto machine = Member("m-" + std::to_string(i));
    machine.spec.placement->reservation_ref = LocalObjectReference{"rollout"};
    drafts.push_back(Of(std::move(machine)));
  }
  EXPECT_EQ(Review(Group(2), drafts).message, "all 2 members fit at once");
}

TEST_F(AdviserDraftsTest, SoManyPartsOfReservationsAreSupposedAndNoMore) {
  Join("alpha", 2000);
  world_.StartScheduler();
  Drafts drafts;
  for (int i = 0; i < 5; ++i) {
    const std::string number = std::to_string(i);
    meta::Object reservation = Reservation("small", apis::core::kReservationCountMax);
    reservation.metadata().name = "r-" + number;
    drafts.push_back(std::move(reservation));
    auto machine = Member("m-" + number);
    machine.spec.placement->reservation_ref = LocalObjectReference{"r-" + number};
    drafts.push_back(Of(std::move(machine)));
  }
  EXPECT_EQ(Review(Group(4), drafts).message,
            "room for 4 of 5 members at once; m-4: no pool has accepted Reservation r-4 yet");
}

TEST_F(AdviserDraftsTest, OfAVeryLargeGroupOnlyWhetherItFitsIsTold) {
  Join("alpha", 300);
  world_.StartScheduler();
  EXPECT_EQ(Review(Group(10), Members(300)).message, "all 300 members fit at once");
  const auto more = Review(Group(10), Members(301));
  EXPECT_EQ(more.verdict, "FitsPartly");
  EXPECT_EQ(more.message, "room for at least 10 of 301 members at once");
  EXPECT_TRUE(more.room_is_more);
}

}  // namespace
}  // namespace berth::scheduler
