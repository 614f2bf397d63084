// SPDX-License-Identifier: Apache-2.0
// Defends ADR 0038 for copies that somebody has made in the store by hand: with the UID of a pool
// nobody gets what is placed there, and the end of a copy ends nothing that runs.
#include <gtest/gtest.h>

#include "apiserver/registry/poison.h"
#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

using apis::compute::MachinePool;

class TwinsTest : public testing::Test {
 protected:
  TwinsTest() {
    world_.Enrol("a");
    world_.Enrol("b");
    alpha_ = a_.Join("alpha");
  }
  meta::Object Place(const std::string& name) {
    const meta::Object machine = world_.MakeMachine(name);
    const size_t before = a_.assigns().size();
    EXPECT_TRUE(world_.Bind(machine, "alpha", alpha_).ok());
    EXPECT_TRUE(a_.WaitAssigns(before + 1)) << name;
    return world_.Read(machine);
  }
  static meta::Object Copy(meta::Object object, const std::string& name) {
    object.metadata().name = name;
    return object;
  }

  GatewayWorld world_;
  TestHost a_{world_, "a"};
  TestHost b_{world_, "b"};
  std::string alpha_;
};

TEST_F(TwinsTest, TheEndOfACopyEndsNothingThatRuns) {
  const meta::Object web = Place("web");
  meta::Object copy = Copy(web, "copy");
  apiserver::PutByHand(world_, copy);
  copy.metadata().deletion_timestamp = world_.loop().WallNow();
  apiserver::PutByHand(world_, copy);
  world_.Pass(Duration::Seconds(2));
  apiserver::RemoveByHand(world_, copy);
  world_.Pass(Duration::Seconds(2));
  EXPECT_EQ(a_.assigns().size(), 1U);
  EXPECT_EQ(a_.deletes().size(), 0U);
  ASSERT_TRUE(world_.Delete(web).ok());
  EXPECT_TRUE(a_.WaitDeletes(1));
}

TEST_F(TwinsTest, ACopyThatWasNeverPlacedIsNotTakenForTheOneThatWas) {
  const meta::Object machine = world_.MakeMachine("web");
  const meta::Object copy = Copy(machine, "copy");
  apiserver::PutByHand(world_, copy);
  ASSERT_TRUE(world_.Bind(machine, "alpha", alpha_).ok());
  ASSERT_TRUE(a_.WaitAssigns(1));
  apiserver::RemoveByHand(world_, copy);
  world_.Pass(Duration::Seconds(2));
  EXPECT_EQ(a_.deletes().size(), 0U);
  ASSERT_TRUE(world_.Delete(world_.Read(machine)).ok());
  EXPECT_TRUE(a_.WaitDeletes(1));
}

TEST_F(TwinsTest, NoHostIsAdmittedToACopyOfAnothersPool) {
  Place("web");
  meta::Object copy = Copy(world_.Pool("alpha"), "beta");
  copy.as<MachinePool>().spec.host_ref.reset();
  apiserver::PutByHand(world_, copy);
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(b_.Join("beta"), "");
  EXPECT_EQ(b_.PoolRefusal("beta"), "its UID is that of pool alpha");
  Place("more");
  EXPECT_EQ(b_.assigns().size(), 0U);
  apiserver::RemoveByHand(world_, copy);
  world_.Pass(Duration::Seconds(1));
  EXPECT_FALSE(a_.end().has_value());
  Place("still");
}

TEST_F(TwinsTest, TheCopyCountsWhenTheFirstIsGone) {
  meta::Object copy = Copy(world_.Pool("alpha"), "beta");
  copy.as<MachinePool>().spec.host_ref.reset();
  apiserver::PutByHand(world_, copy);
  apiserver::RemoveByHand(world_, world_.Pool("alpha"));
  ASSERT_TRUE(world_.Until([this] { return a_.end().has_value(); })) << "its pool is gone";
  EXPECT_EQ(b_.Join("beta"), alpha_);
}

}  // namespace
}  // namespace berth::gateway
