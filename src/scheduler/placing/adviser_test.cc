// SPDX-License-Identifier: Apache-2.0
// Defends: the answer to "where would it go" is what the scheduler would do, it says how many pools
// fail which rule and what is missing, and it leaves no trace.
#include "scheduler/placing/adviser.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "apis/berth/machine_group.h"
#include "apis/berth/machine_set.h"
#include "apis/storage/bucket.h"
#include "rt/sleep.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

namespace dev = apis::berth_dev;

// Hosts have accepted, and the store says no to every binding, or nothing at all.
class IdleBinder final : public client::Binder {
 public:
  enum class Way : uint8_t { kWaits, kConflicts };
  IdleBinder(client::Binder& inner, Way way) : inner_(inner), way_(way) {}

  rt::Task<std::vector<Result<std::vector<meta::Object>>>> BindBatch(
      std::vector<client::BindRequest> requests) override {
    Status verdict = Conflict("somebody was faster");
    if (way_ == Way::kWaits) verdict = co_await rt::Sleep(Duration::Minutes(10));
    std::vector<Result<std::vector<meta::Object>>> verdicts;
    for (size_t i = 0; i < requests.size(); ++i) verdicts.emplace_back(verdict);
    co_return verdicts;
  }
  rt::Task<std::vector<Status>> CreateBoundBatch(meta::Object model,
                                                 std::vector<client::BindItem> items,
                                                 std::string holder,
                                                 int64_t term) override {
    return inner_.CreateBoundBatch(std::move(model), std::move(items), std::move(holder), term);
  }
  rt::Task<std::vector<Status>> UnbindBatch(std::vector<client::UnbindRequest> requests) override {
    return inner_.UnbindBatch(std::move(requests));
  }

 private:
  client::Binder& inner_;
  const Way way_;
};

class AdviserTest : public testing::Test {
 protected:
  dev::PlacementReviewStatus Review(const meta::Object& object, int32_t copies = 1000) {
    auto answer = world_.scheduler().advice().Review({.object = object, .copies = copies});
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : dev::PlacementReviewStatus{};
  }
  dev::PlacementReviewStatus Review(apis::compute::Machine machine, int32_t copies = 1000) {
    return Review(meta::Object::Of(apis::compute::kMachineKind, std::move(machine)), copies);
  }
  dev::PlacementReviewStatus ReviewVolume(const std::string& name) {
    return Review(meta::Object::Of(apis::storage::kVolumeKind, world_.GetVolume(name)));
  }
  dev::MachineSet Set(int32_t replicas) {
    dev::MachineSet set;
    set.metadata.namespace_ = SchedulerWorld::kNamespace;
    set.metadata.name = "web";
    set.spec.replicas = replicas;
    set.spec.machine_template.spec.machine_class_ref.name = "small";
    return set;
  }
  void MakeGroup(const std::string& name, int32_t min_members) {
    dev::MachineGroup group;
    group.metadata.namespace_ = SchedulerWorld::kNamespace;
    group.metadata.name = name;
    group.spec.min_members = min_members;
    const auto made = world_.api().Run(world_.api().client().Create(
        meta::Object::Of(dev::kMachineGroupKind, std::move(group)), {}));
    ASSERT_TRUE(made.ok()) << made.status();
  }
  apis::compute::Machine Member(const std::string& name, const std::string& group) {
    auto machine = world_.Machine(name);
    machine.spec.placement.emplace().group_ref = apis::core::LocalObjectReference{group};
    return machine;
  }
  apis::compute::Machine User(const std::string& name,
                              const std::string& volume,
                              const std::string& size = "small") {
    auto machine = world_.Machine(name, size);
    machine.spec.volumes.emplace_back().name = volume;
    machine.spec.volumes[0].volume_ref = apis::core::LocalObjectReference{volume};
    return machine;
  }
  metrics::Registry metrics_;
  SchedulerWorld world_{5};
};

TEST_F(AdviserTest, ADraftIsToldWhereItWouldGoAndHowManyFit) {
  world_.Join(world_.MakePool("alpha"));
  world_.Join(world_.MakePool("beta", 4), 4);
  world_.StartScheduler();
  const auto answer = Review(world_.Machine("web", "large"));
  EXPECT_EQ(answer.verdict, "Fits");
  EXPECT_EQ(answer.pools, 2);
  EXPECT_EQ(answer.fitting, 2);
  EXPECT_EQ(answer.room, 3);
  EXPECT_FALSE(answer.room_is_more);
  ASSERT_EQ(answer.ranked.size(), 2U);
  EXPECT_EQ(answer.ranked[0].pool, "beta") << "binpack fills the small one first";
  EXPECT_GT(answer.ranked[0].score, answer.ranked[1].score);
  EXPECT_EQ(answer.pool, "beta");
  EXPECT_EQ(answer.policy, "binpack");
  EXPECT_EQ(answer.message, "would be placed on pool beta (2 of 2 pools fit; room for 3)");
  EXPECT_EQ(Review(world_.Machine("web"), 2).message,
            "would be placed on pool beta (2 of 2 pools fit; room for 2 or more)");
  // Nobody was asked, nothing was taken.
  EXPECT_EQ(world_.scheduler().board().object_count(), 0U);
  EXPECT_EQ(Review(world_.Machine("web", "large")), answer);
}

TEST_F(AdviserTest, ScoresAreWhatTheirFieldSays) {
  for (const auto& field : meta::TypeInfoOf<dev::RankedPool>().fields) {
    if (field.name != "score") continue;
    EXPECT_EQ(field.doc, "The policy's score, 1 to " + std::to_string(kLevelMax) + ".");
  }
}

TEST_F(AdviserTest, WhatFitsNowhereIsToldByRuleAndByTheNearestPool) {
  world_.Join(world_.MakePool("alpha", 3), 3);
  world_.Join(world_.MakePool("beta", 1), 1);
  world_.Join(world_.MakePool("gamma"));
  world_.MakePool("delta");
  world_.StartScheduler();
  world_.Cordon("gamma");
  world_.RunFor(Duration::Seconds(1));
  const auto answer = Review(world_.Machine("web", "large"));
  EXPECT_EQ(answer.verdict, "NoPool");
  EXPECT_EQ(answer.pool, "");
  EXPECT_EQ(answer.room, 0);
  EXPECT_TRUE(answer.ranked.empty());
  std::map<std::string, int64_t> failed;
  for (const auto& count : answer.failed) failed[count.rule] = count.pools;
  EXPECT_EQ(failed,
            (std::map<std::string, int64_t>{{"NoSession", 1}, {"Cordoned", 1}, {"Room", 2}}));
  EXPECT_EQ(answer.scarce, (std::map<std::string, int64_t>{{"cpu", 2}, {"memory", 1}}));
  ASSERT_TRUE(answer.nearest.has_value());
  EXPECT_EQ(answer.nearest->pool, "alpha");
  EXPECT_EQ(answer.nearest->rule, "Room");
  EXPECT_EQ(answer.nearest->missing.at("cpu").ToString(), "1");
  EXPECT_NE(answer.message.find("none of 4 pools takes it"), std::string::npos) << answer.message;
}

TEST_F(AdviserTest, APlacedMachineIsExplainedAsIfItHadNoPlace) {
  const std::string alpha = world_.MakePool("alpha", 1);
  world_.Join(alpha, 1);
  world_.StartScheduler();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.IsPlaced("web"));
  world_.RunFor(Duration::Seconds(1));
  const auto answer = Review(world_.GetMachine("web"));
  EXPECT_EQ(answer.verdict, "Placed");
  EXPECT_EQ(answer.pool, "alpha");
  EXPECT_EQ(answer.fitting, 1) << "its own room is its own";
  EXPECT_EQ(answer.room, 0) << "there is none for another";
  EXPECT_EQ(answer.message,
            "is on pool alpha and would go there again (1 of 1 pool fits; room for 0)");
  // A cordon keeps nothing that is there, but nothing would go there anew.
  world_.Cordon("alpha");
  world_.RunFor(Duration::Seconds(1));
  const auto cordoned = Review(world_.GetMachine("web"));
  EXPECT_EQ(cordoned.verdict, "Placed");
  EXPECT_EQ(cordoned.pool, "alpha");
  EXPECT_NE(cordoned.message.find("is on pool alpha; decided anew, none of 1 pools takes it"),
            std::string::npos)
      << cordoned.message;
}

TEST_F(AdviserTest, HostsThatSaidNoAreNamed) {
  const std::string alpha = world_.MakePool("alpha");
  world_.StartScheduler();
  world_.Join(alpha);
  world_.fleet().Answers(alpha, [](const fleet::Offer&) {
    fleet::Answer answer;
    answer.verdict = fleet::Answer::Verdict::kRejected;
    answer.reason = "ImageNotFound";
    return std::optional<fleet::Answer>(answer);
  });
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("web").empty(); }));
  const auto answer = Review(world_.GetMachine("web"));
  ASSERT_EQ(answer.refusals.size(), 1U);
  EXPECT_EQ(answer.refusals[0].pool, "alpha");
  EXPECT_EQ(answer.refusals[0].reason, "ImageNotFound");
  EXPECT_NE(answer.message.find("alpha said ImageNotFound"), std::string::npos) << answer.message;
}

TEST_F(AdviserTest, AMemberThatWaitsForItsGroupIsToldWhatItsConditionSays) {
  world_.Join(world_.MakePool("alpha"));
  world_.StartScheduler();
  MakeGroup("ring", 3);
  world_.MakeMachine(Member("m-0", "ring"));
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("m-0").empty(); }));
  const auto answer = Review(world_.GetMachine("m-0"));
  EXPECT_EQ(answer.verdict, "Waits");
  EXPECT_EQ(answer.message, "group ring has 1 of 3 members");
  EXPECT_EQ(answer.message, world_.WhyNot("m-0"));
  EXPECT_EQ(answer.pool, "");
  ASSERT_EQ(answer.ranked.size(), 1U) << "where it could go is told all the same";
  EXPECT_EQ(answer.ranked[0].pool, "alpha");
}

TEST_F(AdviserTest, AMachineForWhichOthersAreStoppedSaysSo) {
  world_.MakePriorityClass("low", -10, "true");
  world_.MakePriorityClass("high", 1000, "false");
  world_.Join(world_.MakePool("alpha", 1), 1);
  world_.Join(world_.MakePool("beta", 1, "a", {"large"}), 1);
  world_.StartScheduler();
  world_.MakeRanked("cheap", "low");
  ASSERT_TRUE(world_.IsPlaced("cheap"));
  world_.MakeRanked("vip", "high");
  ASSERT_TRUE(world_.Until([&] { return !world_.ReleaseOf("cheap").empty(); }));
  const auto answer = Review(world_.GetMachine("vip"));
  EXPECT_EQ(answer.verdict, "Waits");
  EXPECT_EQ(answer.message,
            "waits for room on pool alpha, where less important machines are stopped for it");
  EXPECT_EQ("Preempting: " + answer.message, world_.ConditionOf("vip", "Scheduled"));
  EXPECT_EQ(answer.failed.size(), 2U) << "what keeps it out until then is told all the same";
}

TEST_F(AdviserTest, AnUrgentDraftIsToldThatOthersMayBeStoppedForIt) {
  world_.MakePriorityClass("low", -10, "true");
  world_.MakePriorityClass("high", 1000, "false");
  world_.MakePriorityClass("polite", 1000, "false", "Never");
  world_.Join(world_.MakePool("alpha", 1), 1);
  world_.StartScheduler();
  world_.MakeRanked("cheap", "low");
  ASSERT_TRUE(world_.IsPlaced("cheap"));
  world_.RunFor(Duration::Seconds(1));
  const auto draft = [&](const char* priority_class, const char* size) {
    auto machine = world_.Machine("vip", size);
    machine.spec.placement.emplace().priority_class_name = priority_class;
    return Review(std::move(machine));
  };
  const std::string full =
      "none of 1 pools takes it: 1 have too little room (1 cpu); nearest is alpha, which lacks 1 "
      "cpu";
  const auto urgent = draft("high", "small");
  EXPECT_EQ(urgent.verdict, "NoPool") << "there is no room as it is";
  EXPECT_EQ(urgent.message,
            full +
                "; its priority may make room: 1 less important machine on pool alpha would be "
                "stopped for it");
  EXPECT_EQ(draft("polite", "small").message, full);
  EXPECT_EQ(draft("low", "small").message, full);
  EXPECT_EQ(draft("high", "large").message.find("its priority"), std::string::npos)
      << "not even the whole pool is enough";
  EXPECT_EQ(world_.ReleaseOf("cheap"), "") << "nobody was stopped";
}

TEST_F(AdviserTest, ABindingUnderWayIsTold) {
  IdleBinder binder(world_.api().registry().binder(), IdleBinder::Way::kWaits);
  world_.UseBinder(binder);
  world_.Join(world_.MakePool("alpha"));
  world_.StartScheduler();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("web").empty(); }));
  const auto answer = Review(world_.GetMachine("web"));
  EXPECT_EQ(answer.verdict, "Waits");
  EXPECT_EQ(answer.message, "pool alpha has accepted it, and the binding is not written yet");
  EXPECT_EQ(Review(world_.Machine("other")).verdict, "Fits") << "a draft has nothing under way";
  world_.StopScheduler();
}

TEST_F(AdviserTest, BindingsThatFailAgainAndAgainAreTold) {
  IdleBinder binder(world_.api().registry().binder(), IdleBinder::Way::kConflicts);
  world_.UseBinder(binder);
  world_.Join(world_.MakePool("alpha"));
  world_.StartScheduler();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("web").empty(); }));
  const auto answer = Review(world_.GetMachine("web"));
  EXPECT_EQ(answer.verdict, "Waits");
  EXPECT_TRUE(answer.message.starts_with("pools take it, but binding it failed "))
      << answer.message;
  EXPECT_TRUE(answer.message.ends_with("the last time because: somebody was faster"))
      << answer.message;
  world_.StopScheduler();
}

TEST_F(AdviserTest, WhatIsMissingBesidesAPoolIsSaid) {
  world_.Join(world_.MakePool("alpha"));
  world_.StartScheduler();
  EXPECT_EQ(Review(world_.Machine("web", "gigantic")).message, "there is no MachineClass gigantic");
  apis::compute::Machine machine = world_.Machine("db");
  auto& volume = machine.spec.volumes.emplace_back();
  volume.name = "data";
  volume.volume_ref = apis::core::LocalObjectReference{"data"};
  const auto waits = Review(machine);
  EXPECT_EQ(waits.verdict, "Waits");
  EXPECT_EQ(waits.message, "there is no Volume data");
  apis::compute::Machine pinned = world_.Machine("web");
  pinned.spec.machine_pool_ref = apis::core::LocalObjectReference{"omega"};
  EXPECT_EQ(Review(pinned).message, "there is no pool omega");
}

TEST_F(AdviserTest, VolumesOfTheMachineAreRankedWithIt) {
  world_.Join(world_.MakePool("alpha"));
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "host-alpha", "Host"));
  world_.StartScheduler();
  // One that exists, and one that its template only describes.
  world_.MakeVolume("data");
  world_.RunFor(Duration::Seconds(1));
  apis::compute::Machine machine = world_.Machine("db");
  auto& made = machine.spec.volumes.emplace_back();
  made.name = "data";
  made.volume_ref = apis::core::LocalObjectReference{"data"};
  auto& unmade = machine.spec.volumes.emplace_back();
  unmade.name = "scratch";
  auto& described = unmade.ephemeral.emplace().volume_template.emplace();
  described.spec.volume_class_ref = apis::core::LocalObjectReference{"disk"};
  described.spec.resources = {{"storage", meta::Quantity(30LL << 30)}};
  const auto answer = Review(machine);
  EXPECT_EQ(answer.verdict, "Fits") << answer.message;
  ASSERT_EQ(answer.ranked.size(), 1U);
  EXPECT_EQ(answer.ranked[0].volume_pools.back(), "disks");
  described.spec.resources = {{"storage", meta::Quantity(300LL << 30)}};
  const auto too_large = Review(machine);
  EXPECT_EQ(too_large.verdict, "NoPool");
  ASSERT_EQ(too_large.failed.size(), 1U);
  EXPECT_EQ(too_large.failed[0].rule, "JointVolume");
}

TEST_F(AdviserTest, R6_2_AVolumeThatPinsTheMachineIsToldByNameWithItsPoolAndItsHost) {
  world_.Join(world_.MakePool("alpha", 1), 1);
  world_.Join(world_.MakePool("beta"));
  world_.JoinVolumePool(world_.MakeVolumePool("alpha-disks", "host-alpha", "Host"));
  world_.StartScheduler();
  world_.MakeVolume("data");
  ASSERT_TRUE(world_.Until([&] { return !world_.VolumePoolOf("data").empty(); }));
  world_.MakeMachine(User("db", "data", "large"));
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("db").empty(); }));
  const auto answer = Review(world_.GetMachine("db"));
  const std::string tie = "volume data is on pool alpha-disks, which only host host-alpha reaches";
  EXPECT_EQ(answer.message,
            "none of 2 pools takes it: 1 have too little room (1 cpu, 1 memory), 1 cannot reach a "
            "volume of the machine; " +
                tie + "; nearest is alpha, which lacks 3 cpu, 4Gi memory");
  EXPECT_EQ(world_.WhyNot("db"), answer.message) << "the condition names it too";
  ASSERT_EQ(answer.failed.size(), 2U);
  EXPECT_EQ(answer.failed[1].rule, "VolumeReach");
  EXPECT_EQ(answer.failed[1].message, "cannot reach a volume of the machine: " + tie);
}

TEST_F(AdviserTest, R6_2_AVolumeThatNobodyReachesSaysWhy) {
  world_.Join(world_.MakePool("alpha"));
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "host-disks", "Zone"));
  world_.StartScheduler();
  world_.MakeVolume("data");
  ASSERT_TRUE(world_.Until([&] { return !world_.VolumePoolOf("data").empty(); }));
  EXPECT_EQ(
      Review(User("db", "data")).message,
      "none of 1 pools takes it: 1 cannot reach a volume of the machine; volume data is on "
      "pool disks, which no machine reaches: it names no zone; nearest is alpha (VolumeReach)");
}

TEST_F(AdviserTest, AVolumeThatGoesWithAMachineSaysSo) {
  world_.StartScheduler();
  world_.MakeVolume("data");
  apis::compute::Machine machine = world_.Machine("db");
  auto& volume = machine.spec.volumes.emplace_back();
  volume.name = "data";
  volume.volume_ref = apis::core::LocalObjectReference{"data"};
  world_.MakeMachine(machine);
  world_.RunFor(Duration::Seconds(1));
  const auto answer = ReviewVolume("data");
  EXPECT_EQ(answer.verdict, "Waits");
  EXPECT_EQ(answer.message,
            "is placed together with machine db, which has no place yet; by itself, there is no "
            "volume pool");
}

TEST_F(AdviserTest, AVolumeThatHoldsItsMachineUpIsExplainedByItself) {
  world_.Join(world_.MakePool("alpha"));
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "host-alpha", "Host"));
  world_.JoinVolumePool(world_.MakeVolumePool("more", "host-alpha", "Host"));
  world_.StartScheduler();
  world_.MakeVolume("data", 370);
  world_.MakeMachine(User("db", "data"));
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("db").empty(); }));
  const std::string why =
      "none of 2 volume pools takes it: 2 have too little room (2 storage); nearest is disks, "
      "which lacks 270Gi storage";
  EXPECT_EQ(world_.WhyNot("db"),
            "none of 1 pools takes it: 1 have no room for a volume of the machine within reach; "
            "nearest is alpha (JointVolume); volume data: " +
                why);
  EXPECT_EQ(Review(world_.GetMachine("db")).message, world_.WhyNot("db"));
  const auto volume = ReviewVolume("data");
  EXPECT_EQ(volume.verdict, "Waits");
  EXPECT_EQ(volume.message,
            "is placed together with machine db, which has no place yet; by itself, " + why);
  ASSERT_EQ(volume.failed.size(), 1U);
  EXPECT_EQ(volume.failed[0].rule, "Room");
  ASSERT_TRUE(volume.nearest.has_value());
  EXPECT_EQ(volume.nearest->missing.at("storage").ToString(), "270Gi");
}

TEST_F(AdviserTest, AVolumeThatWaitsForItsMachineIsToldWhereItCouldGo) {
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "", "Any"));
  world_.StartScheduler();
  world_.MakeVolume("data");
  world_.MakeMachine(User("db", "data"));
  world_.RunFor(Duration::Seconds(1));
  const auto answer = ReviewVolume("data");
  EXPECT_EQ(answer.verdict, "Waits");
  EXPECT_EQ(answer.message, "is placed together with machine db, which has no place yet");
  EXPECT_EQ(answer.pool, "");
  ASSERT_EQ(answer.ranked.size(), 1U);
  EXPECT_EQ(answer.ranked[0].pool, "disks");
}

TEST_F(AdviserTest, AVolumeThatFitsOnlyWhereTheMachineCannotBeSaysWhoReachesIt) {
  world_.Join(world_.MakePool("alpha"));
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "host-alpha", "Host"));
  world_.JoinVolumePool(world_.MakeVolumePool("far", "host-far", "Host"));
  world_.StartScheduler();
  // It takes what its host has, and nobody else can.
  world_.MakeVolume("other", 99);
  world_.MakeMachine(User("first", "other"));
  ASSERT_TRUE(world_.Until([&] { return !world_.VolumePoolOf("other").empty(); }));
  apis::compute::Machine machine = world_.Machine("db");
  auto& volume = machine.spec.volumes.emplace_back();
  volume.name = "data";
  auto& described = volume.ephemeral.emplace().volume_template.emplace();
  described.spec.volume_class_ref = apis::core::LocalObjectReference{"disk"};
  described.spec.resources = {{"storage", meta::Quantity(50LL << 30)}};
  EXPECT_EQ(Review(machine).message,
            "none of 1 pools takes it: 1 have no room for a volume of the machine within reach; "
            "nearest is alpha (JointVolume); volume db-data: 1 of 2 volume pools would take it by "
            "itself: far, which only host host-far reaches");
}

TEST_F(AdviserTest, OfManyVolumesThatHoldAMachineUpAFewAreNamed) {
  world_.Join(world_.MakePool("alpha"));
  world_.JoinVolumePool(world_.MakeVolumePool("disks", "host-alpha", "Host"));
  world_.StartScheduler();
  apis::compute::Machine machine = world_.Machine("db");
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    auto& volume = machine.spec.volumes.emplace_back();
    volume.name = name;
    auto& described = volume.ephemeral.emplace().volume_template.emplace();
    described.spec.volume_class_ref = apis::core::LocalObjectReference{"gold"};
    described.spec.resources = {{"storage", meta::Quantity(1LL << 30)}};
  }
  const std::string why =
      ": none of 1 volume pools takes it: 1 do not offer the class; nearest is disks (Class)";
  EXPECT_EQ(Review(machine).message,
            "none of 1 pools takes it: 1 have no room for a volume of the machine within reach; "
            "nearest is alpha (JointVolume); volume db-a" +
                why + "; volume db-b" + why + "; volume db-c" + why + "; and 2 more volumes");
}

TEST_F(AdviserTest, R5_6_OfAPoolThatCountsPerClassOneMoreOfTheClassIsMissing) {
  world_.Join(world_.MakePool("alpha"));
  world_.CountPerClass("alpha", {{"small", 1}, {"large", 1}});
  world_.StartScheduler();
  world_.MakeMachine("web");
  ASSERT_TRUE(world_.IsPlaced("web"));
  world_.MakeMachine("more");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("more").empty(); }));
  EXPECT_EQ(world_.WhyNot("more"),
            "none of 1 pools takes it: 1 have too little room (1 class small); nearest is alpha, "
            "which lacks room for one more of class small");
  const auto answer = Review(world_.GetMachine("more"));
  EXPECT_EQ(answer.message, world_.WhyNot("more"));
  EXPECT_EQ(answer.scarce, (std::map<std::string, int64_t>{{"class small", 1}}));
  ASSERT_TRUE(answer.nearest.has_value());
  EXPECT_EQ(answer.nearest->missing.at("class small").ToString(), "1");
  const auto room = world_.scheduler().rooms().RoomOf(apis::compute::kMachinePoolKind, "alpha");
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->objects, 1);
  EXPECT_TRUE(room->capacity.empty() && room->allocated.empty() && room->free.empty())
      << "parts of a whole are no amounts of anything";
}

TEST_F(AdviserTest, ASetIsToldHowManyOfItsMachinesFit) {
  world_.Join(world_.MakePool("alpha"));
  world_.StartScheduler();
  const auto all = Review(meta::Object::Of(dev::kMachineSetKind, Set(8)), 1);
  EXPECT_EQ(all.verdict, "Fits");
  EXPECT_EQ(all.wanted, 8);
  EXPECT_EQ(all.message,
            "all 8 machines fit, the first on pool alpha (1 of 1 pool fits; room for 8 or more)");
  const auto some = Review(meta::Object::Of(dev::kMachineSetKind, Set(20)));
  EXPECT_EQ(some.verdict, "FitsPartly");
  EXPECT_EQ(some.room, 8);
  EXPECT_EQ(some.message,
            "8 of 20 machines fit, the first on pool alpha (1 of 1 pool fits; room for 8)");
}

TEST_F(AdviserTest, ABucketNeedsABucketPool) {
  world_.StartScheduler();
  apis::storage::Bucket bucket;
  bucket.metadata.namespace_ = SchedulerWorld::kNamespace;
  bucket.metadata.name = "logs";
  EXPECT_EQ(Review(meta::Object::Of(apis::storage::kBucketKind, bucket)).verdict, "NotNeeded");
  bucket.spec.bucket_class_ref = apis::core::LocalObjectReference{"cold"};
  const auto answer = Review(meta::Object::Of(apis::storage::kBucketKind, bucket));
  EXPECT_EQ(answer.verdict, "NoPool");
  EXPECT_EQ(answer.message, "there is no pool of this kind");
}

TEST_F(AdviserTest, OtherKindsAreRefusedAndSoIsEverythingWithoutALeader) {
  world_.StartScheduler();
  const meta::Object pool(apis::compute::kMachinePoolKind);
  const auto refused = world_.scheduler().advice().Review({.object = pool});
  EXPECT_TRUE(refused.status().Is(Reason::kBadRequest)) << refused.status();
  Scheduler follower(Scheduler::Deps{.loop = world_.api().loop(),
                                     .client = world_.api().client(),
                                     .binder = world_.api().registry().binder(),
                                     .fleet = world_.fleet(),
                                     .scheme = world_.api().scheme(),
                                     .metrics = metrics_},
                     {.holder = "another"});
  const auto web = meta::Object::Of(apis::compute::kMachineKind, world_.Machine("web"));
  const auto unavailable = follower.advice().Review({.object = web});
  EXPECT_TRUE(unavailable.status().Is(Reason::kUnavailable)) << unavailable.status();
}

}  // namespace
}  // namespace berth::scheduler
