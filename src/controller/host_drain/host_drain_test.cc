// SPDX-License-Identifier: Apache-2.0
// Defends that a host which leaves with a drain is emptied: what can be elsewhere is asked to
// leave, what is tied to the host stays and says why, and the drain ends.
#include "controller/host_drain/host_drain.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/reservation.h"
#include "apiserver/registry/placement_world.h"
#include "apiserver/registry/poison.h"

namespace berth::controller {
namespace {

using apis::compute::Machine;
using apis::core::kReservationKind;
using apis::core::Reservation;
using apiserver::PlacementWorld;

class HostDrainTest : public testing::Test {
 protected:
  HostDrainTest() {
    alpha_ = world_.MakePool("alpha", 100);
    Start();
  }
  ~HostDrainTest() override { Stop(); }
  void Start() {
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    drain_ = std::make_unique<HostDrain>(world_.loop(), world_.client(), world_.scheme());
    scope_->Spawn("drain", drain_->Run());
  }
  void Stop() {
    EXPECT_TRUE(world_.Run(scope_->Close()).ok());
    drain_.reset();
  }

  meta::Object Place(const std::string& name, const std::function<void(Machine&)>& change) {
    meta::Object machine = PlacementWorld::Machine(name);
    change(machine.as<Machine>());
    machine = PlacementWorld::Must(world_.Run(world_.client().Create(machine, {})));
    const auto bound = world_.Bind(machine, "alpha", alpha_);
    EXPECT_TRUE(bound.ok()) << bound.status();
    return machine;
  }
  meta::Object Place(const std::string& name) {
    return Place(name, [](Machine&) {});
  }
  meta::Object PlaceTied(const std::string& name) {
    return Place(name, [](Machine& machine) {
      machine.spec.volumes.push_back({.name = "scratch"});
      machine.spec.volumes[0].local_disk.emplace();
    });
  }
  meta::Object Reserve(const std::string& name) {
    Reservation draft;
    draft.metadata.namespace_ = "default";
    draft.metadata.name = name;
    draft.spec.resources["cpu"] = meta::Quantity(2);
    const meta::Object made = PlacementWorld::Must(world_.Run(
        world_.client().Create(meta::Object::Of(kReservationKind, std::move(draft)), {})));
    EXPECT_TRUE(world_
                    .Bind(PlacementWorld::RequestFor(
                        {PlacementWorld::ItemFor(made, "alpha", alpha_, {{"cpu", 2000}})}))
                    .ok());
    return made;
  }
  meta::Object Pool() {
    return PlacementWorld::Must(
        world_.Run(world_.client().Get(apis::compute::kMachinePoolKind, {"", "alpha"})));
  }
  // What the gateway does when the host says that it leaves, or "null" that it is back.
  void Request(const std::string& when) {
    ASSERT_TRUE(world_
                    .Patch(Pool(),
                           R"({"spec":{"unschedulable":true},"metadata":{"annotations":{)"
                           R"("berth.dev/drain-requested":)" +
                               when + "}}}")
                    .ok());
    Pass();
  }
  void Request() { Request(R"("2026-01-01T00:00:00Z")"); }
  bool IsDone() {
    return Pool().metadata().annotations.contains(std::string(apis::core::kDrainDoneAnnotation));
  }
  std::string Drained() {
    const meta::Object pool = Pool();
    for (const auto& item : pool.as<apis::compute::MachinePool>().status.conditions) {
      if (item.type != "Drained") continue;
      return item.status + ' ' + item.reason + ": " + item.message;
    }
    return "";
  }
  std::string ReleaseOf(const meta::Object& object) {
    return apis::PlacementOf(world_.Read(object))->release;
  }
  std::string Released(const meta::Object& machine) {
    const meta::Object now = world_.Read(machine);
    for (const auto& condition : now.as<Machine>().status.conditions) {
      if (condition.type == "Released") return condition.status + ": " + condition.message;
    }
    return "";
  }
  // Its host says that it is gone.
  void Leave(const meta::Object& object) {
    ASSERT_TRUE(world_.Unbind(object, 1).ok());
    Pass();
  }
  void Pass() { world_.loop().RunFor(Duration::Seconds(2)); }

  PlacementWorld world_{7};
  std::string alpha_;
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<HostDrain> drain_;
};

TEST_F(HostDrainTest, C19_MachinesAndThenReservationsAreAskedToLeave) {
  const meta::Object one = Place("one");
  const meta::Object two = Place("two");
  const meta::Object room = Reserve("room");
  Pass();
  EXPECT_EQ(ReleaseOf(one), "");
  EXPECT_EQ(drain_->watched(), 0U);
  Request();
  EXPECT_EQ(ReleaseOf(one), "Drain");
  EXPECT_EQ(ReleaseOf(two), "Drain");
  EXPECT_EQ(Released(one),
            "True: the host of pool alpha leaves: it is stopped and looks for another place");
  EXPECT_EQ(ReleaseOf(room), "") << "who uses it leaves first";
  Leave(one);
  EXPECT_EQ(ReleaseOf(room), "");
  Leave(two);
  EXPECT_EQ(ReleaseOf(room), "Drain");
  EXPECT_FALSE(IsDone());
  Leave(room);
  EXPECT_TRUE(IsDone());
  EXPECT_EQ(Drained(), "True Empty: everything has left");
  EXPECT_EQ(drain_->watched(), 0U);
}

TEST_F(HostDrainTest, C19_WhatIsTiedToTheHostStaysAndTheDrainEndsAllTheSame) {
  const meta::Object tied = PlaceTied("tied");
  const meta::Object free = Place("free");
  Request();
  EXPECT_EQ(ReleaseOf(tied), "");
  EXPECT_EQ(Released(tied),
            "False: the host of pool alpha leaves, but it stays: its disk scratch is on this host "
            "only");
  EXPECT_FALSE(IsDone());
  Leave(free);
  EXPECT_TRUE(IsDone());
  EXPECT_EQ(Drained(),
            "False SomeStay: 1 stays with the host: machine default/tied, its disk scratch is on "
            "this host only");
}

TEST_F(HostDrainTest, C19_AnEmptyPoolIsDrainedAtOnce) {
  Request();
  EXPECT_TRUE(IsDone());
}

TEST_F(HostDrainTest, C19_WhoIsBeingDeletedIsWaitedFor) {
  const meta::Object going = Place("going");
  ASSERT_TRUE(world_.Delete(going).ok());
  Request();
  EXPECT_FALSE(IsDone());
  EXPECT_EQ(Released(going), "");
  Leave(going);
  EXPECT_TRUE(IsDone());
}

// Somebody has copied it in the store, with its UID, and removed the copy again.
TEST_F(HostDrainTest, C19_TheEndOfACopyIsNotThatOfWhoIsWaitedFor) {
  const meta::Object machine = Place("web");
  Request();
  meta::Object copy = world_.Read(machine);
  copy.metadata().name = "web-copy";
  apiserver::PutByHand(world_, copy);
  Pass();
  apiserver::RemoveByHand(world_, copy);
  Pass();
  EXPECT_FALSE(IsDone());
  Leave(machine);
  EXPECT_TRUE(IsDone());
}

TEST_F(HostDrainTest, C19_AHostThatIsBackIsLeftAlone) {
  const meta::Object before = Place("before");
  Request();
  EXPECT_EQ(ReleaseOf(before), "Drain");
  Request("null");
  EXPECT_EQ(drain_->watched(), 0U);
  world_.Cordon("alpha", false);
  const meta::Object after = Place("after");
  Pass();
  EXPECT_EQ(ReleaseOf(after), "");
  EXPECT_FALSE(IsDone());
}

TEST_F(HostDrainTest, C19_ADrainThatIsOverAsksNobodyAndALaterOneAsksAnew) {
  const meta::Object tied = PlaceTied("tied");
  Request();
  ASSERT_TRUE(IsDone());
  ASSERT_TRUE(world_.Patch(tied, R"({"spec":{"volumes":null}})").ok());
  world_.loop().RunFor(Duration::Minutes(1));
  EXPECT_EQ(ReleaseOf(tied), "") << "its host is away";
  Request(R"("2026-01-02T00:00:00Z")");
  EXPECT_EQ(ReleaseOf(tied), "Drain");
  EXPECT_EQ(drain_->watched(), 1U);
}

TEST_F(HostDrainTest, ARestartGoesOnWhereTheDrainWas) {
  const meta::Object machine = Place("one");
  const meta::Object tied = PlaceTied("tied");
  Request();
  Stop();
  ASSERT_TRUE(world_.Unbind(machine, 1).ok());
  Start();
  Pass();
  EXPECT_TRUE(IsDone());
  EXPECT_EQ(ReleaseOf(tied), "");
}

}  // namespace
}  // namespace berth::controller
