// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/cluster_identity.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/registry/registry_world.h"
#include "rt/join_all.h"

namespace berth::apiserver {
namespace {

TEST(ClusterIdentity, R4_4_IsMadeOnceAndCountsStartsAndRestores) {
  RegistryWorld world(7);
  const auto first = world.Run(CountStart(world.loop(), world.store()));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->id.size(), 36U);
  EXPECT_EQ(first->incarnation, 1U);
  EXPECT_EQ(first->start, 1U);
  world.Restart();
  const auto second = world.Run(CountStart(world.loop(), world.store()));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->id, first->id);
  EXPECT_EQ(second->incarnation, 1U);
  EXPECT_EQ(second->start, 2U);
  const auto restored = world.Run(BeginIncarnation(world.loop(), world.store(), std::nullopt));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->id, first->id);
  EXPECT_EQ(restored->incarnation, 2U);
  EXPECT_EQ(world.Run(CountStart(world.loop(), world.store()))->start, 3U);
}

TEST(ClusterIdentity, R4_4_ACopyThatIsRestoredAgainBeginsAnotherIncarnation) {
  RegistryWorld world(7);
  EXPECT_FALSE(world.Run(ReadIdentity(world.store()))->has_value());
  const auto first = world.Run(CountStart(world.loop(), world.store()));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*world.Run(ReadIdentity(world.store())), *first);
  client::ClusterIdentity later = *first;
  later.incarnation = 5;
  later.start = 9;
  const auto restored = world.Run(BeginIncarnation(world.loop(), world.store(), later));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->incarnation, 6U);
  EXPECT_EQ(world.Run(CountStart(world.loop(), world.store()))->start, 10U);
  later.id = "another cluster";
  later.incarnation = 50;
  EXPECT_EQ(world.Run(BeginIncarnation(world.loop(), world.store(), later))->incarnation, 7U);
}

TEST(ClusterIdentity, TwoServersThatStartAtOnceCountBoth) {
  RegistryWorld world(8);
  std::vector<rt::Task<Result<client::ClusterIdentity>>> starts;
  for (int i = 0; i < 4; ++i) starts.push_back(CountStart(world.loop(), world.store()));
  std::set<uint64_t> numbers;
  std::set<std::string> ids;
  for (const auto& identity : world.Run(rt::JoinAll(std::move(starts)))) {
    ASSERT_TRUE(identity.ok()) << identity.status();
    numbers.insert(identity->start);
    ids.insert(identity->id);
  }
  EXPECT_EQ(numbers, (std::set<uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(ids.size(), 1U);
}

}  // namespace
}  // namespace berth::apiserver
