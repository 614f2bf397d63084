// SPDX-License-Identifier: Apache-2.0
// Defends what happens to reservations when their host falls silent (PROTOCOL 8.6): the room is
// looked for elsewhere, unless the host came back in time or somebody deletes it.
#include "controller/pool_loss/pool_loss.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "apis/core/reservation.h"
#include "apiserver/registry/placement_world.h"
#include "fleet/fake/fake_fleet.h"

namespace berth::controller {
namespace {

using apis::core::kReservationKind;
using apis::core::Reservation;

class PoolLossTest : public testing::Test {
 protected:
  PoolLossTest() : fleet_(world_.loop()) {
    for (const char* name : {"alpha", "beta", "gamma", "delta"}) {
      uids_[name] = world_.MakePool(name, 100);
      fleet_.Join({.pool_uid = uids_[name], .ledger = {}, .capacity = {{"cpu", 100'000}}});
    }
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    loss_ = std::make_unique<PoolLoss>(PoolLoss::Deps{.loop = world_.loop(),
                                                      .client = world_.client(),
                                                      .binder = world_.registry().binder(),
                                                      .fleet = fleet_,
                                                      .scheme = world_.scheme()});
    scope_->Spawn("loss", loss_->Run());
    RunFor(Duration::Seconds(2));
  }
  ~PoolLossTest() override { EXPECT_TRUE(world_.Run(scope_->Close()).ok()); }

  // One on alpha.
  meta::Object Reserve(const std::string& name) {
    Reservation reservation;
    reservation.metadata.namespace_ = "default";
    reservation.metadata.name = name;
    reservation.spec.resources["cpu"] = meta::Quantity(2);
    const meta::Object made = apiserver::PlacementWorld::Must(world_.Run(
        world_.client().Create(meta::Object::Of(kReservationKind, std::move(reservation)), {})));
    EXPECT_TRUE(world_
                    .Bind(apiserver::PlacementWorld::RequestFor({apiserver::PlacementWorld::ItemFor(
                        made, "alpha", uids_["alpha"], {{"cpu", 2000}})}))
                    .ok());
    return made;
  }
  apis::core::ReservationStatus StatusOf(const meta::Object& object) {
    return world_.Read(object).as<Reservation>().status;
  }
  void RunFor(Duration duration) { world_.loop().RunFor(duration); }

  apiserver::PlacementWorld world_{9};
  fleet::FakeFleet fleet_;
  std::map<std::string, std::string> uids_;
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<PoolLoss> loss_;
};

TEST_F(PoolLossTest, R8_6_ReservationsOfALostPoolAreLostAndLookForAnother) {
  const meta::Object reservation = Reserve("r");
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(8));
  EXPECT_EQ(StatusOf(reservation).state, "Accepted") << "silence is not loss";
  RunFor(Duration::Seconds(4));
  const auto status = StatusOf(reservation);
  EXPECT_EQ(status.state, "Lost");
  EXPECT_EQ(status.placement->pool, "");
  EXPECT_EQ(status.placement->epoch, 2) << "its host is told to forget it when it returns";
  EXPECT_FALSE(world_.Guard(uids_["alpha"])->allocated.contains("cpu"));
}

TEST_F(PoolLossTest, R8_6_Seq18_AHostThatIsBackInTimeKeepsIt) {
  const meta::Object reservation = Reserve("r");
  fleet_.Leave(uids_["alpha"]);
  RunFor(Duration::Seconds(8));
  fleet_.Join({.pool_uid = uids_["alpha"], .ledger = {}, .capacity = {{"cpu", 100'000}}});
  ASSERT_TRUE(fleet_.Confirm(uids_["alpha"], reservation.metadata().uid, 1));
  RunFor(Duration::Seconds(30));
  EXPECT_EQ(StatusOf(reservation).state, "Accepted");
}

TEST_F(PoolLossTest, R8_6_OneThatIsBeingDeletedWaitsForItsHost) {
  const meta::Object reservation = Reserve("r");
  fleet_.Leave(uids_["alpha"]);
  ASSERT_TRUE(world_.Delete(reservation).ok());
  RunFor(Duration::Minutes(1));
  EXPECT_TRUE(world_.Exists(reservation));
}

}  // namespace
}  // namespace berth::controller
