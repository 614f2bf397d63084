// SPDX-License-Identifier: Apache-2.0
// What hosts are said to have room for is what they would take, and no more.
#include "sim/rooms.h"

#include <vector>

#include "sim/quiet_world.h"

namespace berth::sim {
namespace {

PlacedFact MachineOf(const std::string& class_name) {
  PlacedFact fact;
  fact.kind = &apis::compute::kMachineKind;
  fact.uid = "wanted";
  fact.class_name = class_name;
  fact.needs = ClassAmounts(class_name);
  return fact;
}

class RoomsTest : public QuietWorld {
 protected:
  Rooms Look() { return {world_, troubles_}; }
};

TEST_F(RoomsTest, AHostHasRoomForWhatFitsByItsAmounts) {
  AddHost("own", {});
  const PlacedFact small = MachineOf("small");
  const PlacedFact huge = MachineOf("huge");
  EXPECT_EQ(Look().For(huge), "own");
  EXPECT_TRUE(Look().ForAll(std::vector(kCpus, &small)));
  EXPECT_FALSE(Look().ForAll(std::vector(kCpus + 1, &small)));
  EXPECT_TRUE(Look().ForAll({&huge, &small, &small, &small, &small}));
  EXPECT_FALSE(Look().ForAll({&huge, &huge}));
  CreateMachine("one", "large");
  EXPECT_EQ(Look().For(huge), "own");
  CreateMachine("two", "small");
  EXPECT_EQ(Look().For(huge), "");
}

// One huge machine is all that fits, so it is the whole of the host, and twelve small ones are.
TEST_F(RoomsTest, R5_6_AForeignHostHasRoomInSharesOfAWhole) {
  AddHost("foreign", {.is_foreign = true});
  const PlacedFact small = MachineOf("small");
  const PlacedFact huge = MachineOf("huge");
  EXPECT_EQ(Look().For(huge), "foreign");
  EXPECT_TRUE(Look().ForAll(std::vector(kCpus, &small)));
  EXPECT_FALSE(Look().ForAll(std::vector(kCpus + 1, &small)));
  EXPECT_FALSE(Look().ForAll({&huge, &small}));
  EXPECT_EQ(CreateMachine("one", "small").pool, "foreign");
  EXPECT_EQ(Look().For(huge), "");
  EXPECT_TRUE(Look().ForAll(std::vector(kCpus - 1, &small)));
  EXPECT_FALSE(Look().ForAll(std::vector(kCpus, &small)));
}

TEST_F(RoomsTest, R3_2_AForeignHostHasNoneForWhatDiesWithContact) {
  AddHost("foreign", {.is_foreign = true});
  PlacedFact small = MachineOf("small");
  small.needs_fence = true;
  EXPECT_EQ(Look().For(small), "");
}

TEST_F(RoomsTest, R8_4_OnlyWhatIsLessImportantAndMayBeStoppedCouldLeave) {
  AddHost("own", {});
  CreateMachine("kept", "small");
  CreateMachine("spare", "large", kSpare);
  PlacedFact huge = MachineOf("huge");
  EXPECT_EQ(Look().For(huge), "");
  EXPECT_EQ(Look().IfOthersLeft(huge), "own");
  huge.priority = -10;  // as the spare one
  EXPECT_EQ(Look().IfOthersLeft(huge), "");
  huge.priority = 1000;
  EXPECT_EQ(Look().IfOthersLeft(huge), "own");
  CreateMachine("another", "large");
  EXPECT_EQ(Look().IfOthersLeft(huge), "");
}

}  // namespace
}  // namespace berth::sim
