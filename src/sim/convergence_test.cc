// SPDX-License-Identifier: Apache-2.0
// A world that is not what is wanted of it is said to be so.
#include "sim/convergence.h"

#include "iri/labels.h"
#include "sim/quiet_world.h"

namespace berth::sim {
namespace {

class ConvergenceTest : public QuietWorld {
 protected:
  static void Plant(HostProcess& host, const std::string& uid) {
    iri::Machine machine;
    machine.metadata.labels[std::string(iri::kMachineUidLabel)] = uid;
    machine.spec.class_name = "small";
    const auto planted = host.state().CreateMachine(host.fake().clock(), std::move(machine));
    CHECK(planted.ok()) << planted.status();
  }
};

TEST_F(ConvergenceTest, ANewWorldIsAsItIsWanted) {
  AddHost("own", {});
  CreateMachine("one", "small");
  EXPECT_EQ(WhyNot(), "");
}

TEST_F(ConvergenceTest, AHostHasNothingThatIsNotItsOwn) {
  Plant(AddHost("own", {}), "nobody's");
  EXPECT_EQ(WhyNot(), "host-own still has nobody's, which is not its own");
}

// What it has lost may run on: it is an orphan. That excuses nothing else.
TEST_F(ConvergenceTest, R4_4_AfterARestoreAHostMayHaveOnlyWhatTheStoreHasLost) {
  HostProcess& host = AddHost("own", {});
  world_.TakeBackup();
  EXPECT_EQ(CreateMachine("lost", "small").pool, "own");
  world_.RestoreBackup();
  world_.StartServer(*world_.seats().front());
  Settle();
  EXPECT_EQ(host.poollet().host().orphans(), 1U);
  EXPECT_EQ(WhyNot(), "");
  Plant(host, "nobody's");
  EXPECT_EQ(WhyNot(), "host-own still has nobody's, which is not its own");
}

}  // namespace
}  // namespace berth::sim
