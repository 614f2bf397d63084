// SPDX-License-Identifier: Apache-2.0
#include "client/leader/leader_lease.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/registry/registry_world.h"
#include "rt/scope.h"

namespace berth::client {
namespace {

constexpr char kNamespace[] = "berth-system";

// One server that wants to lead.
struct Candidate {
  Candidate(apiserver::RegistryWorld& world, std::string name, TakeOver take_over)
      : world(world),
        scope(world.loop()),
        lease(world.loop(),
              world.client(),
              LeaderOptions{.lease = {.namespace_ = kNamespace, .name = "scheduler"},
                            .holder = std::move(name),
                            .take_over = take_over},
              [this](std::optional<int64_t> term) { changes.push_back(term); }) {
    scope.Spawn("candidate", lease.Run());
  }
  ~Candidate() { Stop(); }
  void Stop() { EXPECT_TRUE(world.Run(scope.Close()).ok()); }

  apiserver::RegistryWorld& world;
  rt::TaskScope scope;
  std::vector<std::optional<int64_t>> changes;
  LeaderLease lease;
};

class LeaderLeaseTest : public testing::Test {
 protected:
  LeaderLeaseTest() { world_.MakeNamespace(kNamespace); }
  bool RunUntilLeads(const Candidate& candidate, Duration limit) {
    return world_.loop().RunUntil([&] { return candidate.lease.term().has_value(); }, limit);
  }
  apiserver::RegistryWorld world_{7};
};

TEST_F(LeaderLeaseTest, TheFirstCandidateLeadsAtOnce) {
  Candidate a(world_, "a", TakeOver::kWhenExpired);
  ASSERT_TRUE(RunUntilLeads(a, Duration::Seconds(1)));
  EXPECT_EQ(a.lease.term(), 1);
}

TEST_F(LeaderLeaseTest, ASecondOneWaitsWhileTheFirstRenews) {
  Candidate a(world_, "a", TakeOver::kWhenExpired);
  ASSERT_TRUE(RunUntilLeads(a, Duration::Seconds(1)));
  Candidate b(world_, "b", TakeOver::kWhenExpired);
  world_.loop().RunFor(Duration::Minutes(5));
  EXPECT_EQ(a.lease.term(), 1);
  EXPECT_EQ(b.lease.term(), std::nullopt);
  EXPECT_EQ(a.changes.size(), 1U);
}

TEST_F(LeaderLeaseTest, S1_ASilentLeaderIsFollowedByTheNextOneWithALargerTerm) {
  Candidate a(world_, "a", TakeOver::kWhenExpired);
  ASSERT_TRUE(RunUntilLeads(a, Duration::Seconds(1)));
  Candidate b(world_, "b", TakeOver::kWhenExpired);
  world_.loop().RunFor(Duration::Seconds(3));
  a.Stop();
  EXPECT_FALSE(RunUntilLeads(b, Duration::Seconds(5)));  // the lease is not over yet
  ASSERT_TRUE(RunUntilLeads(b, Duration::Seconds(10)));
  EXPECT_EQ(b.lease.term(), 2);
}

TEST_F(LeaderLeaseTest, ItIsKnownHowLongAnotherOneHoldsIt) {
  Candidate a(world_, "a", TakeOver::kWhenExpired);
  ASSERT_TRUE(RunUntilLeads(a, Duration::Seconds(1)));
  EXPECT_EQ(a.lease.other_until(), std::nullopt);
  Candidate b(world_, "b", TakeOver::kWhenExpired);
  world_.loop().RunFor(Duration::Minutes(1));
  ASSERT_TRUE(b.lease.other_until().has_value());
  EXPECT_GT(*b.lease.other_until(), world_.loop().Now() + Duration::Seconds(5));
  EXPECT_EQ(b.lease.other(), "a");
  // Who renews no more is not believed in for longer than the lease lasts.
  a.Stop();
  world_.loop().RunFor(Duration::Seconds(7));
  EXPECT_LT(*b.lease.other_until(), world_.loop().Now() + Duration::Seconds(2));
  ASSERT_TRUE(RunUntilLeads(b, Duration::Seconds(10)));
  EXPECT_EQ(b.lease.other_until(), std::nullopt);
}

TEST_F(LeaderLeaseTest, TheOnlyServerOfAStoreDoesNotWaitForItsOwnPast) {
  {
    Candidate before(world_, "a-1", TakeOver::kAtOnce);
    ASSERT_TRUE(RunUntilLeads(before, Duration::Seconds(1)));
  }
  Candidate after(world_, "a-2", TakeOver::kAtOnce);
  ASSERT_TRUE(RunUntilLeads(after, Duration::Millis(100)));
  EXPECT_EQ(after.lease.term(), 2);
}

TEST_F(LeaderLeaseTest, S1_ALeaderThatCannotRenewStopsBeforeAnotherMayBegin) {
  Candidate a(world_, "a", TakeOver::kWhenExpired);
  ASSERT_TRUE(RunUntilLeads(a, Duration::Seconds(1)));
  const Time began = world_.loop().Now();
  world_.SetFaults({.refuse = 1.0});
  const bool stopped =
      world_.loop().RunUntil([&] { return !a.lease.term().has_value(); }, Duration::Seconds(20));
  ASSERT_TRUE(stopped);
  EXPECT_LE(world_.loop().Now() - began, Duration::Seconds(8));
  world_.SetFaults({});
  ASSERT_TRUE(RunUntilLeads(a, Duration::Seconds(20)));
  EXPECT_EQ(a.lease.term(), 1);  // nobody came between: it is the same term still
}

}  // namespace
}  // namespace berth::client
