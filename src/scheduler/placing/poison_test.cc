// SPDX-License-Identifier: Apache-2.0
// Defends that what decodes and no validation would have let in keeps nobody from a place: the
// scheduler goes on, whether it finds such objects at its start, sees them come, or sees them go.
#include "apiserver/registry/poison.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "apis/core/reservation.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

class PoisonTest : public testing::Test {
 protected:
  PoisonTest() {
    alpha_ = world_.MakePool("alpha", 64);
    disks_ = world_.MakeVolumePool("disks", "host-alpha", "Host");
    poisons_ = apiserver::Poisons(world_.api().scheme(),
                                  SchedulerWorld::kNamespace,
                                  world_.MakePool("taken"),
                                  world_.MakeVolumePool("taken-disks", "host-taken", "Host"));
  }
  void Start() {
    world_.StartScheduler();
    world_.Join(alpha_, 64);
    world_.JoinVolumePool(disks_);
  }
  void PutAll() {
    for (const meta::Object& poison : poisons_) apiserver::PutByHand(world_.api(), poison);
  }
  void RemoveAll() {
    for (const meta::Object& poison : poisons_) apiserver::RemoveByHand(world_.api(), poison);
  }
  // A machine, one with a volume, and one in a reservation get their places.
  void ExpectPlaces(const std::string& prefix) {
    world_.MakeMachine(prefix + "-alone");
    world_.MakeVolume(prefix + "-disk");
    world_.MakeMachine(prefix + "-stores");
    world_.NameVolumes(prefix + "-stores", {prefix + "-disk"});
    apis::core::Reservation room;
    room.metadata.namespace_ = SchedulerWorld::kNamespace;
    room.metadata.name = prefix + "-room";
    room.spec.resources["cpu"] = meta::Quantity(2);
    room.spec.resources["memory"] = meta::Quantity(2LL << 30);
    ASSERT_TRUE(world_.api()
                    .Run(world_.api().client().Create(
                        meta::Object::Of(apis::core::kReservationKind, std::move(room)), {}))
                    .ok());
    auto inside = world_.Machine(prefix + "-inside");
    inside.spec.placement.emplace().reservation_ref =
        apis::core::LocalObjectReference{prefix + "-room"};
    world_.MakeMachine(std::move(inside));
    for (const char* name : {"-alone", "-stores", "-inside"}) {
      EXPECT_TRUE(world_.Until([&] { return world_.PoolOf(prefix + name) == "alpha"; }))
          << prefix << name << ": " << world_.WhyNot(prefix + name);
    }
  }

  // It goes into a group that wants fewer than no members.
  void MakeMember(const std::string& name) {
    auto member = world_.Machine(name);
    member.spec.placement.emplace().group_ref = apis::core::LocalObjectReference{"g-negative"};
    world_.MakeMachine(std::move(member));
  }

  SchedulerWorld world_{11};
  std::string alpha_;
  std::string disks_;
  std::vector<meta::Object> poisons_;
};

TEST_F(PoisonTest, WhatIsThereAtTheStartKeepsNobodyFromAPlace) {
  PutAll();
  Start();
  ExpectPlaces("first");
  MakeMember("member");
  EXPECT_TRUE(world_.IsPlaced("member")) << world_.WhyNot("member");
  world_.RunFor(Duration::Minutes(5));
  ExpectPlaces("second");
  RemoveAll();
  ExpectPlaces("third");
}

TEST_F(PoisonTest, WhatComesAndGoesKeepsNobodyFromAPlace) {
  Start();
  ExpectPlaces("first");
  MakeMember("member");
  PutAll();
  ExpectPlaces("second");
  EXPECT_TRUE(world_.IsPlaced("member")) << world_.WhyNot("member");
  RemoveAll();
  world_.RunFor(Duration::Minutes(5));
  ExpectPlaces("third");
}

}  // namespace
}  // namespace berth::scheduler
