// SPDX-License-Identifier: Apache-2.0
// Defends the rules S3 and G4 of placement, and the crash sequences that end in the bind commit.
#include "apiserver/registry/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apis/core/well_known.h"
#include "apiserver/registry/placement_world.h"
#include "rt/join_all.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using client::UnbindProof;

std::string CauseField(const Status& status) {
  return status.causes().empty() ? "" : status.causes()[0].field;
}

TEST(Binding, S3_WritesReferencePlacementFinalizerAndConditionInOneCommit) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 4);
  const meta::Object machine = world.MakeMachine("m");
  const auto bound = world.Bind(machine, "p", pool);
  ASSERT_TRUE(bound.ok()) << bound.status();
  const meta::Object read = world.Read(machine);
  EXPECT_EQ(read, bound->front());
  EXPECT_EQ(apis::PoolRefOf(read)->name, "p");
  const auto& placement = *apis::PlacementOf(read);
  EXPECT_EQ(placement.pool, "p");
  EXPECT_EQ(placement.pool_uid, pool);
  EXPECT_EQ(placement.epoch, 1);
  EXPECT_FALSE(placement.pinned);
  EXPECT_EQ(apis::ToAmounts(placement.resources), (apis::Amounts{{"cpu", kCpuOfMachine}}));
  EXPECT_EQ(read.metadata().finalizers,
            std::vector<std::string>{std::string(apis::kPlacementFinalizer)});
  const auto& conditions = read.as<apis::compute::Machine>().status.conditions;
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(conditions[0].type, "Scheduled");
  EXPECT_EQ(conditions[0].status, "True");
  EXPECT_EQ(world.Guard(pool)->allocated.at("cpu"), kCpuOfMachine);
  EXPECT_EQ(world.Guard(pool)->count, 1);
}

TEST(Binding, S3a_FailsUnlessTheObjectIsTheOneDecidedOn) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 4);
  const meta::Object machine = world.MakeMachine("m");
  struct Case {
    std::string_view what;
    void (*change)(client::BindItem&);
    Reason reason;
  };
  const Case cases[] = {
      {"uid", [](auto& item) { item.uid = "other"; }, Reason::kNotFound},
      {"name", [](auto& item) { item.key.name = "none"; }, Reason::kNotFound},
      {"generation", [](auto& item) { ++item.generation; }, Reason::kConflict},
      {"placement", [](auto& item) { ++item.placement; }, Reason::kConflict},
      {"pool uid", [](auto& item) { item.pool_uid = "other"; }, Reason::kNotFound},
      {"pool name", [](auto& item) { item.pool = "other"; }, Reason::kNotFound},
      {"negative", [](auto& item) { item.resources["cpu"] = -1; }, Reason::kBadRequest},
      {"no pool", [](auto& item) { item.pool_uid = ""; }, Reason::kBadRequest},
  };
  for (const Case& test : cases) {
    client::BindItem item = PlacementWorld::ItemFor(machine, "p", pool);
    test.change(item);
    const auto bound = world.Bind(PlacementWorld::RequestFor({item}));
    EXPECT_EQ(bound.status().reason(), test.reason) << test.what << ": " << bound.status();
    EXPECT_FALSE(apis::PoolRefOf(world.Read(machine))) << test.what;
  }
  EXPECT_TRUE(world.Bind(machine, "p", pool).ok());
  // Twice with what was decided on once.
  EXPECT_EQ(world.Bind(machine, "p", pool).status().reason(), Reason::kConflict);
  EXPECT_EQ(world.Guard(pool)->count, 1);
}

TEST(Binding, S3a_StatusWritesInBetweenDoNotMatter) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 4);
  const meta::Object machine = world.MakeMachine("m");
  ASSERT_TRUE(
      world.Patch(machine, R"({"status":{"machineID":"x://1"}})", client::Subresource::kStatus)
          .ok());
  const auto bound = world.Bind(machine, "p", pool);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(world.Read(machine).as<apis::compute::Machine>().status.machine_id, "x://1");
}

TEST(Binding, S3b_FailsIfThePoolIsDeletingCordonedOrWasNeverAnnounced) {
  PlacementWorld world;
  const meta::Object machine = world.MakeMachine("m");
  const std::string silent = world.MakePool("silent", 4, "");
  EXPECT_EQ(CauseField(world.Bind(machine, "silent", silent).status()), "mode");
  const std::string cordoned = world.MakePool("cordoned", 4);
  world.Cordon("cordoned");
  const Status refused = world.Bind(machine, "cordoned", cordoned).status();
  EXPECT_EQ(refused.reason(), Reason::kForbidden);
  EXPECT_EQ(CauseField(refused), "cordoned");
  world.Cordon("cordoned", false);
  ASSERT_TRUE(world.Bind(machine, "cordoned", cordoned).ok());
  // Something is bound, so the pool stays; nothing new comes.
  const meta::Object pool =
      world.Must(world.Run(world.client().Get(apis::compute::kMachinePoolKind, {"", "cordoned"})));
  ASSERT_TRUE(world.Delete(pool).ok());
  EXPECT_EQ(CauseField(world.Bind(world.MakeMachine("n"), "cordoned", cordoned).status()),
            "deleting");
}

TEST(Binding, S3c_FailsUnlessHolderAndTermAreThoseOfTheLease) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 4);
  const meta::Object machine = world.MakeMachine("m");
  client::BindRequest request =
      PlacementWorld::RequestFor({PlacementWorld::ItemFor(machine, "p", pool)});
  request.term = 2;
  EXPECT_EQ(world.Bind(request).status().reason(), Reason::kConflict);
  request.term = 1;
  request.holder = "s2";
  EXPECT_EQ(world.Bind(request).status().reason(), Reason::kConflict);
  request.holder = "";
  EXPECT_EQ(world.Bind(request).status().reason(), Reason::kConflict);
  // A renewal is no new term.
  world.HoldLease("s1", 1);
  EXPECT_TRUE(world.Bind(machine, "p", pool).ok());
}

TEST(Binding, S3d_NeverPromisesMoreThanThePoolHas) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 2);
  std::vector<client::BindRequest> requests;
  for (const char* name : {"a", "b", "c", "d"}) {
    requests.push_back(
        PlacementWorld::RequestFor({PlacementWorld::ItemFor(world.MakeMachine(name), "p", pool)}));
  }
  int bound = 0;
  for (const auto& verdict : world.Run(world.registry().binder().BindBatch(requests))) {
    if (verdict.ok()) {
      ++bound;
    } else {
      EXPECT_EQ(verdict.status().reason(), Reason::kForbidden) << verdict.status();
      EXPECT_EQ(CauseField(verdict.status()), "cpu");
    }
  }
  EXPECT_EQ(bound, 2);
  EXPECT_EQ(world.Guard(pool)->allocated.at("cpu"), 2 * kCpuOfMachine);
  // A dimension that the pool does not have never fits.
  client::BindItem item =
      PlacementWorld::ItemFor(world.MakeMachine("e"), "p", pool, {{"example.com/gpu", 1}});
  EXPECT_EQ(CauseField(world.Bind(PlacementWorld::RequestFor({item})).status()), "example.com/gpu");
}

TEST(Binding, S3d_LimitsAndShrinkingCapacityCountAtOnce) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 4);
  ASSERT_TRUE(world.Bind(world.MakeMachine("a"), "p", pool).ok());
  const meta::Object object =
      world.Must(world.Run(world.client().Get(apis::compute::kMachinePoolKind, {"", "p"})));
  ASSERT_TRUE(world.Patch(object, R"({"spec":{"limits":{"cpu":"1"}}})").ok());
  EXPECT_EQ(CauseField(world.Bind(world.MakeMachine("b"), "p", pool).status()), "cpu");
  ASSERT_TRUE(world.Patch(object, R"({"spec":{"limits":null}})").ok());
  ASSERT_TRUE(
      world.Patch(object, R"({"status":{"capacity":{"cpu":"500m"}}})", client::Subresource::kStatus)
          .ok());
  EXPECT_EQ(CauseField(world.Bind(world.MakeMachine("c"), "p", pool).status()), "cpu");
}

TEST(Binding, S3_AMachineIsBoundWithItsVolumesOrNotAtAll) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 4);
  const std::string disks = world.MakeVolumePool("d", 15);
  const meta::Object machine = world.MakeMachine("m", {"v", "w"});
  const meta::Object v = world.MakeVolume("v");
  const meta::Object w = world.MakeVolume("w");
  const apis::Amounts size = {{"storage", 10}};
  // Two do not fit.
  const auto refused =
      world.Bind(PlacementWorld::RequestFor({PlacementWorld::ItemFor(machine, "p", pool),
                                             PlacementWorld::ItemFor(v, "d", disks, size),
                                             PlacementWorld::ItemFor(w, "d", disks, size)}));
  EXPECT_EQ(CauseField(refused.status()), "storage");
  EXPECT_FALSE(apis::IsBound(world.Read(machine)));
  EXPECT_FALSE(apis::IsBound(world.Read(v)));
  EXPECT_FALSE(world.Guard(pool));
  // One fits; the other volume, which is elsewhere, is claimed all the same.
  const auto bound = world.Bind(PlacementWorld::RequestFor(
      {PlacementWorld::ItemFor(machine, "p", pool), PlacementWorld::ItemFor(v, "d", disks, size)}));
  ASSERT_TRUE(bound.ok()) << bound.status();
  ASSERT_EQ(bound->size(), 2U);
  for (const meta::Object& volume : {v, w}) {
    const auto claim = world.Read(volume).as<apis::storage::Volume>().spec.claim_ref;
    ASSERT_TRUE(claim);
    EXPECT_EQ(claim->name, "m");
    EXPECT_EQ(claim->uid, machine.metadata().uid);
  }
  EXPECT_TRUE(apis::IsBound(world.Read(v)));
  EXPECT_FALSE(apis::IsBound(world.Read(w)));
  // The claim is exclusive.
  const Status taken = world.Bind(world.MakeMachine("n", {"w"}), "p", pool).status();
  EXPECT_EQ(taken.reason(), Reason::kConflict);
  EXPECT_EQ(world.Guard(pool)->count, 1);
}

TEST(Binding, R4_6_AVolumeWhoseDeletionWaitsForItsMachineGoesWithItToAnotherHost) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 4);
  const std::string disks = world.MakeVolumePool("d", 15);
  const meta::Object machine = world.MakeMachine("m", {"v"});
  const meta::Object v = world.MakeVolume("v");
  const auto both =
      PlacementWorld::RequestFor({PlacementWorld::ItemFor(machine, "p", pool),
                                  PlacementWorld::ItemFor(v, "d", disks, {{"storage", 10}})});
  ASSERT_TRUE(world.Bind(both).ok());
  ASSERT_TRUE(world.Run(world.client().Delete(v.kind(), {"default", "v"}, {})).ok());
  ASSERT_TRUE(world.Unbind(machine, 1, UnbindProof::kFenced).ok());
  // Whoever has not claimed it does not get it.
  const Status other = world.Bind(world.MakeMachine("n", {"v"}), "p", pool).status();
  EXPECT_EQ(other.message(), "volume \"v\" is being deleted");
  const auto again = world.Bind(world.Read(machine), "p", pool);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(world.Read(v).metadata().deletion_timestamp);
  // A volume that has no place gets none.
  ASSERT_TRUE(world.Unbind(v, 1, UnbindProof::kHostReleased).ok());
  EXPECT_FALSE(world.Bind(world.Read(v), "d", disks).ok());
}

TEST(Binding, R4_1_OfApiPoolsLeavesFinalizersAndClaimsToTheirPoollets) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 4, apis::core::kPoolModeApi);
  world.MakeVolume("v");
  const meta::Object machine = world.MakeMachine("m", {"v"});
  const auto bound = world.Bind(machine, "p", pool);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_TRUE(bound->front().metadata().finalizers.empty());
  const auto volume = world.Run(world.client().Get(apis::storage::kVolumeKind, {"default", "v"}));
  EXPECT_FALSE(volume->as<apis::storage::Volume>().spec.claim_ref);
  // Its poollet would run the machine for ever.
  const Status fenced = world.Unbind(machine, 1, UnbindProof::kFenced);
  EXPECT_EQ(fenced.reason(), Reason::kForbidden);
  EXPECT_EQ(CauseField(fenced), "mode");
  EXPECT_TRUE(world.Unbind(machine, 1, UnbindProof::kOperatorFenced).ok());
}

TEST(Binding, Seq03_TheOutcomeOfALostCommitIsInTheStore) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 4);
  ASSERT_TRUE(world.Bind(world.MakeMachine("first"), "p", pool).ok());
  const meta::Object machine = world.MakeMachine("m");
  world.SetFaults({.lose_answer = 1});
  EXPECT_EQ(world.Bind(machine, "p", pool).status().reason(), Reason::kUnavailable);
  world.SetFaults({});
  world.Restart();
  world.HoldLease("s2", 2);
  // The commit happened, and wholly.
  const meta::Object read = world.Read(machine);
  EXPECT_TRUE(apis::IsBound(read));
  EXPECT_FALSE(read.metadata().finalizers.empty());
  EXPECT_EQ(world.Guard(pool)->count, 2);
  client::BindRequest again =
      PlacementWorld::RequestFor({PlacementWorld::ItemFor(machine, "p", pool)});
  again.holder = "s2";
  again.term = 2;
  EXPECT_EQ(world.Bind(again).status().reason(), Reason::kConflict);
}

TEST(Binding, Seq04_AfterAnUnknownOutcomeReadingBackTells) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 1);
  const meta::Object first = world.MakeMachine("warm");
  ASSERT_TRUE(world.Bind(first, "p", pool).ok());
  ASSERT_TRUE(world.Unbind(first, 1).ok());
  const meta::Object machine = world.MakeMachine("m");
  world.SetFaults({.lose_answer = 1});
  EXPECT_EQ(world.Bind(machine, "p", pool).status().reason(), Reason::kUnavailable);
  world.SetFaults({});
  EXPECT_TRUE(apis::IsBound(world.Read(machine)));
  EXPECT_EQ(world.Bind(machine, "p", pool).status().reason(), Reason::kConflict);
  EXPECT_EQ(world.Guard(pool)->count, 1);
  // The commit never happened: the same P does.
  ASSERT_TRUE(world.Unbind(machine, 1).ok());
  const meta::Object again = world.Read(machine);
  world.SetFaults({.refuse = 1});
  EXPECT_EQ(world.Bind(again, "p", pool).status().reason(), Reason::kUnavailable);
  world.SetFaults({});
  EXPECT_FALSE(apis::IsBound(world.Read(machine)));
  EXPECT_TRUE(world.Bind(again, "p", pool).ok());
}

TEST(Binding, Seq05_APausedSchedulerFindsTheRoomTakenOrFree) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 1);
  const meta::Object a = world.MakeMachine("a");
  const meta::Object b = world.MakeMachine("b");
  ASSERT_TRUE(world.Bind(b, "p", pool).ok());
  EXPECT_EQ(CauseField(world.Bind(a, "p", pool).status()), "cpu");
  ASSERT_TRUE(world.Unbind(b, 1).ok());
  EXPECT_TRUE(world.Bind(a, "p", pool).ok());
}

TEST(Binding, Seq06_TheOldLeaderBindsNothingAnyMore) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 4);
  const meta::Object machine = world.MakeMachine("m");
  world.HoldLease("s2", 2);
  EXPECT_EQ(world.Bind(machine, "p", pool).status().reason(), Reason::kConflict);
  client::BindRequest request =
      PlacementWorld::RequestFor({PlacementWorld::ItemFor(machine, "p", pool)});
  request.holder = "s2";
  request.term = 2;
  EXPECT_TRUE(world.Bind(request).ok());
}

TEST(Binding, Seq07_AMachineThatWasEditedOrDeletedMeanwhileIsNotBound) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 4);
  const meta::Object edited = world.MakeMachine("edited");
  ASSERT_TRUE(world.Patch(edited, R"({"spec":{"power":"Off"}})").ok());
  EXPECT_EQ(world.Bind(edited, "p", pool).status().reason(), Reason::kConflict);
  EXPECT_TRUE(world.Bind(world.Read(edited), "p", pool).ok());

  const meta::Object deleted = world.MakeMachine("deleted");
  ASSERT_TRUE(world.Delete(deleted).ok());
  EXPECT_EQ(world.Bind(deleted, "p", pool).status().reason(), Reason::kNotFound);

  const meta::Object going = world.MakeMachine("going");
  ASSERT_TRUE(world.Patch(going, R"({"metadata":{"finalizers":["example.com/a"]}})").ok());
  ASSERT_TRUE(world.Delete(going).ok());
  EXPECT_EQ(world.Bind(world.Read(going), "p", pool).status().reason(), Reason::kConflict);
  EXPECT_EQ(world.Guard(pool)->count, 1);
}

// A cordon and many binds race; whatever was acknowledged after the cordon was is refused.
TEST(Binding, Seq08_AfterACordonReturnedNothingNewLands) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    PlacementWorld world(seed);
    const std::string pool = world.MakePool("p", 1000);
    std::vector<meta::Object> machines;
    for (int i = 0; i < 30; ++i) machines.push_back(world.MakeMachine("m" + std::to_string(i)));
    world.SetFaults({.delay = 0.5, .delay_max = Duration::Millis(3)});
    rt::TaskScope scope(world.loop());
    bool cordoned = false;
    int bound = 0;
    struct Race {
      static rt::Task<Status> Bind(PlacementWorld* world,
                                   client::BindRequest request,
                                   bool* cordoned,
                                   int* bound) {
        const bool late = *cordoned;
        std::vector<client::BindRequest> requests = {std::move(request)};
        const auto verdicts = co_await world->registry().binder().BindBatch(std::move(requests));
        if (verdicts[0].ok()) {
          EXPECT_FALSE(late) << "bound after the cordon";
          ++*bound;
        }
        co_return OkStatus();
      }
      static rt::Task<Status> Cordon(PlacementWorld* world, bool* cordoned, int* at, int* bound) {
        const client::ObjectKey key{"", "p"};
        CO_TRY_STATUS(co_await world->client().Patch(apis::compute::kMachinePoolKind,
                                                     key,
                                                     client::PatchType::kMerge,
                                                     R"({"spec":{"unschedulable":true}})",
                                                     {}));
        *cordoned = true;
        *at = *bound;
        co_return OkStatus();
      }
    };
    int at = -1;
    for (size_t i = 0; i < machines.size(); ++i) {
      if (i == seed) scope.Spawn("cordon", Race::Cordon(&world, &cordoned, &at, &bound));
      scope.Spawn(
          "bind",
          Race::Bind(&world,
                     PlacementWorld::RequestFor({PlacementWorld::ItemFor(machines[i], "p", pool)}),
                     &cordoned,
                     &bound));
      world.loop().RunFor(Duration::Micros(200));
    }
    CHECK(rt::RunTask(world.loop(), scope.Join()).ok());
    world.SetFaults({});
    EXPECT_TRUE(cordoned);
    EXPECT_EQ(world.Guard(pool)->count, bound);
    EXPECT_TRUE(world.Guard(pool)->cordoned);
    EXPECT_EQ(CauseField(world.Bind(world.MakeMachine("late"), "p", pool).status()), "cordoned");
  }
}

TEST(Binding, R4_2_Seq19_APoolOfTheSameNameIsAnotherPool) {
  PlacementWorld world;
  const std::string old_pool = world.MakePool("p", 4);
  const meta::Object machine = world.MakeMachine("m");
  const meta::Object other = world.MakeMachine("other");
  ASSERT_TRUE(world.Bind(machine, "p", old_pool).ok());
  const meta::Object pool =
      world.Must(world.Run(world.client().Get(apis::compute::kMachinePoolKind, {"", "p"})));
  ASSERT_TRUE(world.Delete(pool).ok());
  ASSERT_TRUE(world.Exists(pool)) << "the pool stays while anything is bound";
  // Nobody but the server says that the pool is not in use.
  ASSERT_TRUE(world.Patch(pool, R"({"metadata":{"finalizers":null}})").ok());
  ASSERT_TRUE(world.Exists(pool));
  ASSERT_TRUE(world.Unbind(machine, 1).ok());
  EXPECT_FALSE(world.Exists(pool)) << "it goes with the last one";
  EXPECT_FALSE(world.Guard(old_pool));
  const std::string new_pool = world.MakePool("p", 4);
  EXPECT_EQ(world.Bind(other, "p", old_pool).status().reason(), Reason::kNotFound);
  EXPECT_TRUE(world.Bind(other, "p", new_pool).ok());
}

TEST(Binding, G2_UnbindingGivesBackAndCountsOn) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 1);
  const meta::Object machine = world.MakeMachine("m");
  ASSERT_TRUE(world.Bind(machine, "p", pool).ok());
  EXPECT_EQ(world.Unbind(machine, 0).reason(), Reason::kConflict);
  EXPECT_EQ(world.Unbind(machine, 2).reason(), Reason::kConflict);
  ASSERT_TRUE(world.Unbind(machine, 1).ok());
  const meta::Object read = world.Read(machine);
  EXPECT_FALSE(apis::PoolRefOf(read));
  EXPECT_FALSE(apis::IsBound(read));
  EXPECT_EQ(apis::EpochOf(read), 2);
  EXPECT_EQ(apis::PlacementOf(read)->reason, "Refused");
  EXPECT_TRUE(read.metadata().finalizers.empty());
  EXPECT_EQ(read.as<apis::compute::Machine>().status.conditions[0].status, "False");
  EXPECT_EQ(world.Guard(pool)->count, 0);
  EXPECT_TRUE(world.Guard(pool)->allocated.empty());
  // A late word of the old placement changes nothing.
  EXPECT_EQ(world.Unbind(machine, 1).reason(), Reason::kConflict);
  ASSERT_TRUE(world.Bind(read, "p", pool).ok());
  EXPECT_EQ(apis::EpochOf(world.Read(machine)), 3);
  // What is gone needs no unbinding.
  const meta::Object gone = world.MakeMachine("gone");
  ASSERT_TRUE(world.Delete(gone).ok());
  EXPECT_TRUE(world.Unbind(gone, 0).ok());
}

TEST(Binding, G4_APoolThatTheOwnerNamedStaysNamed) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 1);
  const std::string other = world.MakePool("q", 1);
  meta::Object wish = PlacementWorld::Machine("m");
  apis::PoolRefOf(wish) = apis::core::LocalObjectReference{.name = "p"};
  const meta::Object machine =
      PlacementWorld::Must(world.Run(world.client().Create(std::move(wish), {})));
  EXPECT_EQ(world.Bind(machine, "q", other).status().reason(), Reason::kConflict);
  EXPECT_EQ(world.Unbind(machine, 0).reason(), Reason::kConflict);
  ASSERT_TRUE(world.Bind(machine, "p", pool).ok());
  EXPECT_EQ(world.Read(machine).metadata().generation, machine.metadata().generation);
  EXPECT_EQ(world.Unbind(machine, 1, UnbindProof::kNeverBound).reason(), Reason::kConflict);
  ASSERT_TRUE(world.Unbind(machine, 1).ok());
  EXPECT_EQ(apis::PoolRefOf(world.Read(machine))->name, "p");
  ASSERT_TRUE(world.Unbind(machine, 2, UnbindProof::kNeverBound).ok());
  EXPECT_FALSE(apis::PoolRefOf(world.Read(machine)));
}

TEST(Binding, R4_1_TheReferenceIsSetOnceForEveryWriter) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 1);
  const meta::Object machine = world.MakeMachine("m");
  ASSERT_TRUE(world.Bind(machine, "p", pool).ok());
  EXPECT_EQ(world.Patch(machine, R"({"spec":{"machinePoolRef":{"name":"q"}}})").reason(),
            Reason::kInvalid);
  EXPECT_EQ(world.Patch(machine, R"({"spec":{"machinePoolRef":null}})").reason(), Reason::kInvalid);
}

TEST(Binding, R4_1_NoStatusWriteTouchesAPlacement) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 1);
  const meta::Object machine = world.MakeMachine("m");
  ASSERT_TRUE(world.Bind(machine, "p", pool).ok());
  const auto placement = apis::PlacementOf(world.Read(machine));
  for (const char* body : {R"({"status":{"placement":{"pool":"q","poolUID":"x","epoch":9}}})",
                           R"({"status":{"placement":null}})",
                           R"({"status":null})"}) {
    ASSERT_TRUE(world.Patch(machine, body, client::Subresource::kStatus).ok());
    ASSERT_TRUE(world.Patch(machine, body).ok());
    EXPECT_EQ(apis::PlacementOf(world.Read(machine)), placement) << body;
  }
}

TEST(Binding, R4_5_D8_ADeletedMachineStaysUntilItsHostIsRidOfIt) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 1);
  const meta::Object machine = world.MakeMachine("m");
  ASSERT_TRUE(world.Bind(machine, "p", pool).ok());
  ASSERT_TRUE(world.Delete(machine).ok());
  ASSERT_TRUE(world.Exists(machine));
  EXPECT_EQ(world.Guard(pool)->count, 1);
  ASSERT_TRUE(world.Unbind(machine, 1).ok());
  EXPECT_FALSE(world.Exists(machine));
  EXPECT_EQ(world.Guard(pool)->count, 0);
  EXPECT_TRUE(world.Run(world.registry().tombstones().ListTombstones(pool))->empty());
}

TEST(Binding, R4_3_R4_5_D8_ForceLeavesATombstoneUntilTheHostHasConfirmed) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 2);
  const meta::Object machine = world.MakeMachine("m");
  const meta::Object other = world.MakeMachine("other");
  ASSERT_TRUE(world.Bind(machine, "p", pool).ok());
  ASSERT_TRUE(world.Bind(other, "p", pool).ok());
  ASSERT_TRUE(world.Delete(machine, client::Force::kYes).ok());
  EXPECT_FALSE(world.Exists(machine));
  EXPECT_EQ(world.Guard(pool)->count, 1);
  client::Tombstones& tombstones = world.registry().tombstones();
  const client::Tombstone grave{
      .pool_uid = pool, .uid = machine.metadata().uid, .kind = "Machine", .placement = 1};
  EXPECT_EQ(*world.Run(tombstones.ListTombstones(pool)), std::vector{grave});
  world.Restart();
  client::Tombstones& after = world.registry().tombstones();
  EXPECT_EQ(*world.Run(after.ListTombstones(pool)), std::vector{grave});
  EXPECT_TRUE(world.Run(after.ListTombstones("other"))->empty());
  const std::vector<std::string> confirmed = {grave.uid, grave.uid, "unknown"};
  ASSERT_TRUE(world.Run(after.ClearTombstones(pool, confirmed)).ok());
  EXPECT_TRUE(world.Run(after.ListTombstones(pool))->empty());
  // Whoever removes the finalizer by hand says the same.
  ASSERT_TRUE(world.Delete(other).ok());
  ASSERT_TRUE(world.Patch(other, R"({"metadata":{"finalizers":null}})").ok());
  EXPECT_EQ(world.Run(after.ListTombstones(pool))->size(), 1U);
  EXPECT_EQ(world.Guard(pool)->count, 0);
  // They go with the pool.
  const meta::Object object =
      world.Must(world.Run(world.client().Get(apis::compute::kMachinePoolKind, {"", "p"})));
  ASSERT_TRUE(world.Delete(object).ok());
  EXPECT_FALSE(world.Exists(object));
  EXPECT_TRUE(world.Run(after.ListTombstones(pool))->empty());
}

// The object may be gone by the time that the host returns: what is left must tell it to let go.
TEST(Binding, R4_3_Seq17_WhatIsTakenFromAHostWithoutItsWordLeavesATombstone) {
  for (const client::UnbindProof proof :
       {client::UnbindProof::kFenced, client::UnbindProof::kOperatorFenced}) {
    PlacementWorld world;
    const std::string pool = world.MakePool("p", 1);
    const meta::Object machine = world.MakeMachine("m");
    ASSERT_TRUE(world.Bind(machine, "p", pool).ok());
    ASSERT_TRUE(world.Unbind(machine, 1, proof).ok());
    ASSERT_TRUE(world.Delete(machine).ok());
    ASSERT_FALSE(world.Exists(machine));
    const client::Tombstone grave{
        .pool_uid = pool, .uid = machine.metadata().uid, .kind = "Machine", .placement = 1};
    EXPECT_EQ(*world.Run(world.registry().tombstones().ListTombstones(pool)), std::vector{grave});
  }
}

// What is told of the loss follows from the proof: the words of others are for whoever gave it.
TEST(Binding, G4_TheWordOfALossIsTheProofs) {
  struct Case {
    client::UnbindProof proof;
    std::string_view said;
    std::string_view kept;
  };
  constexpr auto kOperator = client::UnbindProof::kOperatorFenced;
  constexpr auto kHost = client::UnbindProof::kHostReleased;
  for (const Case& one : {Case{kOperator, "OperatorFenced", "OperatorFenced"},
                          Case{kOperator, "PoolLost", "OperatorFenced"},
                          Case{kOperator, "DiskFull", "OperatorFenced"},
                          Case{client::UnbindProof::kFenced, "PoolLost", "PoolLost"},
                          Case{client::UnbindProof::kFenced, "DiskFull", "PoolLost"},
                          Case{kHost, "DiskFull", "DiskFull"},
                          Case{kHost, "OperatorFenced", "Refused"},
                          Case{kHost, "PoolLost", "Refused"}}) {
    PlacementWorld world;
    const std::string pool = world.MakePool("p", 1);
    const meta::Object machine = world.MakeMachine("m");
    ASSERT_TRUE(world.Bind(machine, "p", pool).ok());
    const client::UnbindRequest request{.kind = &machine.kind(),
                                        .key = {"default", "m"},
                                        .uid = machine.metadata().uid,
                                        .placement = 1,
                                        .proof = one.proof,
                                        .reason = std::string(one.said),
                                        .message = "why"};
    ASSERT_TRUE(world.Run(world.registry().binder().UnbindBatch({request})).front().ok());
    const auto status = world.Read(machine).as<apis::compute::Machine>().status;
    EXPECT_EQ(status.placement->reason, one.kept) << one.said;
    EXPECT_EQ(status.conditions.at(0).reason, one.kept) << one.said;
  }
}

TEST(Binding, R4_5_D8_ForceDoesNotWaitForPoolletsOfTheApiEither) {
  PlacementWorld world;
  const std::string pool = world.MakePool("p", 1, apis::core::kPoolModeApi);
  const meta::Object machine = world.MakeMachine("m");
  ASSERT_TRUE(world.Bind(machine, "p", pool).ok());
  const std::string finalizer(apis::core::kMachineFinalizer);
  ASSERT_TRUE(world.Patch(machine, R"({"metadata":{"finalizers":[")" + finalizer + R"("]}})").ok());
  ASSERT_TRUE(world.Delete(machine).ok());
  ASSERT_TRUE(world.Exists(machine));
  ASSERT_TRUE(world.Delete(machine, client::Force::kYes).ok());
  EXPECT_FALSE(world.Exists(machine));
  EXPECT_EQ(world.Guard(pool)->count, 0);
  EXPECT_TRUE(world.Run(world.registry().tombstones().ListTombstones(pool))->empty());
}

TEST(Binding, ACopyGetsTheUidThatItsHostWasAskedWith) {
  PlacementWorld world;
  const std::string p = world.MakePool("p", 30);
  const meta::Object machine = PlacementWorld::Machine("m");
  client::BindItem item = PlacementWorld::ItemFor(machine, "p", p);
  item.uid = "0d1e2f30-4152-4637-8495-a6b7c8d9eafb";
  const auto made = world.Run(world.registry().binder().CreateBoundBatch(machine, {item}, "s1", 1));
  ASSERT_TRUE(made.front().ok()) << made.front();
  EXPECT_EQ(world.Read(machine).metadata().uid, item.uid);
}

TEST(Binding, AMachineThatClaimsVolumesIsNotCreatedBound) {
  PlacementWorld world;
  const std::string p = world.MakePool("p", 30);
  meta::Object machine = PlacementWorld::Machine("m");
  auto& volume = machine.as<apis::compute::Machine>().spec.volumes.emplace_back();
  volume.name = "data";
  volume.volume_ref = apis::core::LocalObjectReference{"data"};
  const client::BindItem item = PlacementWorld::ItemFor(machine, "p", p);
  const auto made = world.Run(world.registry().binder().CreateBoundBatch(machine, {item}, "s1", 1));
  EXPECT_EQ(made.front().reason(), Reason::kBadRequest);
  EXPECT_FALSE(world.Exists(machine));
}

TEST(Binding, CopiesAreCreatedAlreadyBound) {
  PlacementWorld world;
  const std::string p = world.MakePool("p", 30);
  const std::string q = world.MakePool("q", 30);
  std::vector<meta::Object> objects;
  std::vector<client::BindItem> items;
  for (int i = 0; i < 80; ++i) {
    objects.push_back(PlacementWorld::Machine("m" + std::to_string(i)));
    items.push_back(
        PlacementWorld::ItemFor(objects.back(), i % 2 == 0 ? "p" : "q", i % 2 == 0 ? p : q));
  }
  const auto made =
      world.Run(world.registry().binder().CreateBoundBatch(objects[0], items, "s1", 1));
  ASSERT_EQ(made.size(), 80U);
  int bound = 0;
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i].ok()) {
      EXPECT_EQ(CauseField(made[i]), "cpu") << made[i];
      EXPECT_FALSE(world.Exists(objects[i]));
      continue;
    }
    ++bound;
    const meta::Object copy = world.Read(objects[i]);
    EXPECT_EQ(copy.metadata().name, objects[i].metadata().name);
    EXPECT_EQ(copy.metadata().generation, 1);
    EXPECT_EQ(apis::EpochOf(copy), 1);
    EXPECT_EQ(apis::PoolRefOf(copy)->name, items[i].pool);
    EXPECT_FALSE(copy.metadata().finalizers.empty());
  }
  EXPECT_EQ(bound, 60);
  EXPECT_EQ(world.Guard(p)->count, 30);
  EXPECT_EQ(world.Guard(q)->count, 30);
  // Not in another term, and not over what exists.
  EXPECT_EQ(world.Run(world.registry().binder().CreateBoundBatch(objects[79], {items[79]}, "s1", 2))
                .front()
                .reason(),
            Reason::kConflict);
  EXPECT_TRUE(world.Unbind(world.Read(objects[0]), 1).ok());
  EXPECT_EQ(world.Run(world.registry().binder().CreateBoundBatch(objects[2], {items[2]}, "s1", 1))
                .front()
                .reason(),
            Reason::kAlreadyExists);
  EXPECT_EQ(world.Guard(p)->count, 29);
}

// What copies share is checked once, what is each one's own for each of them.
TEST(Binding, ACopyWithABadNameIsRefusedAloneAndABadModelForAll) {
  PlacementWorld world;
  const std::string p = world.MakePool("p", 30);
  const meta::Object model = PlacementWorld::Machine("model");
  std::vector<client::BindItem> items;
  for (const char* name : {"Not_A_Name", "a", "b", "also bad", "c"}) {
    client::BindItem item = PlacementWorld::ItemFor(model, "p", p);
    item.uid.clear();
    item.key.name = name;
    items.push_back(std::move(item));
  }
  std::ranges::rotate(items, items.begin() + 1);  // once in front, once behind
  for (int turn = 0; turn < 2; ++turn) {
    const auto made = world.Run(world.registry().binder().CreateBoundBatch(model, items, "s1", 1));
    for (size_t i = 0; i < items.size(); ++i) {
      const bool is_bad = items[i].key.name.size() > 2;
      EXPECT_EQ(made[i].reason(), is_bad ? Reason::kInvalid : Reason::kOk) << made[i];
      if (is_bad) {
        EXPECT_THAT(std::string(made[i].message()), testing::HasSubstr(items[i].key.name));
      }
      items[i].key.name += is_bad ? "" : "2";
    }
    std::ranges::rotate(items, items.begin() + 4);
  }
  EXPECT_NE(world.Read(PlacementWorld::Machine("a")).metadata().uid,
            world.Read(PlacementWorld::Machine("b")).metadata().uid);

  meta::Object bad = model;
  bad.metadata().labels["no label"] = "x";
  items[0].key.name = "d";
  items[1].key.name = "e";
  items.resize(2);
  const auto refused = world.Run(world.registry().binder().CreateBoundBatch(bad, items, "s1", 1));
  EXPECT_THAT(std::string(refused[0].message()), testing::HasSubstr("\"d\""));
  EXPECT_THAT(std::string(refused[1].message()), testing::HasSubstr("\"e\""));
  EXPECT_EQ(world.Guard(p)->count, 6);
}

TEST(Binding, R2_5_ManyRequestsOfOnePoolAndOfManyPoolsAllGetTheirVerdict) {
  PlacementWorld world;
  std::vector<client::BindRequest> requests;
  std::vector<std::string> pools;
  for (int p = 0; p < 20; ++p) pools.push_back(world.MakePool("p" + std::to_string(p), 100));
  for (int i = 0; i < 300; ++i) {
    const int p = i < 150 ? 0 : i % 20;
    requests.push_back(PlacementWorld::RequestFor({PlacementWorld::ItemFor(
        world.MakeMachine("m" + std::to_string(i)), "p" + std::to_string(p), pools[p])}));
  }
  const auto verdicts = world.Run(world.registry().binder().BindBatch(requests));
  int64_t bound = 0;
  for (const auto& verdict : verdicts) bound += verdict.ok() ? 1 : 0;
  int64_t counted = 0;
  for (const std::string& pool : pools) counted += world.Guard(pool)->count;
  EXPECT_EQ(world.Guard(pools[0])->count, 100);
  EXPECT_EQ(bound, counted);
  EXPECT_EQ(bound, 300 - 50 - 7) << "157 asked for the first pool";
}

}  // namespace
}  // namespace berth::apiserver
