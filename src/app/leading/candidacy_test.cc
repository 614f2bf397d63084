// SPDX-License-Identifier: Apache-2.0
// Of several servers one leads; who led before writes nothing more, whatever it believes.
#include "app/leading/candidacy.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "apiserver/registry/registry_world.h"
#include "app/leading/server_list.h"
#include "rt/scope.h"
#include "store/fenced/fenced_store.h"

namespace berth::app {
namespace {

struct Candidate {
  Candidate(apiserver::RegistryWorld& the_world, const std::string& id, const std::string& run)
      : world(the_world),
        candidacy({.loop = world.loop(), .store = world.store(), .client = world.client()},
                  {.id = id,
                   .run = run,
                   .url = "https://" + id,
                   .on_leader = [this](const std::string& url) { leader = url; },
                   .on_deposed = [this] { ++deposed; }}),
        scope(world.loop()) {
    Go();
    scope.Spawn("elected", AwaitElection());
  }
  ~Candidate() { Stop(); }
  void Go() { scope.Spawn("candidacy", candidacy.Run()); }
  void Stop() { EXPECT_TRUE(world.Run(scope.Close()).ok()); }
  rt::Task<Status> AwaitElection() {
    const auto elected = co_await candidacy.Elected();
    if (elected.ok()) fence = *elected;
    co_return OkStatus();
  }
  bool Writes() {
    store::FencedStore store(world.store(), *fence, [this] { candidacy.Depose(); });
    store::Txn txn;
    txn.ops.push_back(store::Op::Put("written", Bytes(leader)));
    const auto result = world.Run(store.Commit(std::move(txn)));
    return result.ok() && result->committed;
  }

  apiserver::RegistryWorld& world;
  std::string leader;
  int deposed = 0;
  std::optional<store::Condition> fence;
  Candidacy candidacy;
  rt::TaskScope scope;
};

class CandidacyTest : public testing::Test {
 protected:
  CandidacyTest() { world_.MakeNamespace(kServerNamespace); }
  bool RunUntilLeads(const Candidate& candidate, Duration limit) {
    return world_.loop().RunUntil([&] { return candidate.candidacy.leads(); }, limit);
  }
  apiserver::RegistryWorld world_{3};
};

TEST_F(CandidacyTest, TheFirstLeadsAndTheOthersKnowWhere) {
  Candidate a(world_, "a", "1");
  ASSERT_TRUE(RunUntilLeads(a, Duration::Seconds(1)));
  Candidate b(world_, "b", "1");
  world_.loop().RunFor(Duration::Minutes(1));
  EXPECT_TRUE(a.candidacy.leads());
  EXPECT_FALSE(b.candidacy.leads());
  EXPECT_EQ(b.leader, "https://a");
  EXPECT_TRUE(a.Writes());
}

TEST_F(CandidacyTest, WhoWaitsKnowsWhoLeadsAsLongAsTheLeaseLasts) {
  Candidate a(world_, "a_1", "1");
  ASSERT_TRUE(RunUntilLeads(a, Duration::Seconds(1)));
  EXPECT_FALSE(a.candidacy.other().has_value());
  Candidate b(world_, "b", "1");
  world_.loop().RunFor(Duration::Minutes(1));
  const auto other = b.candidacy.other();
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->id, "a_1");
  EXPECT_EQ(other->holder, "a_1_1");
  EXPECT_GT(other->until, world_.loop().Now() + Duration::Seconds(1));
  // The store is away: by its own clock nobody leads after the lease.
  world_.SetFaults({.refuse = 1.0});
  world_.loop().RunFor(Duration::Seconds(3));
  EXPECT_FALSE(b.candidacy.other().has_value());
  world_.SetFaults({});
}

TEST_F(CandidacyTest, S1_ALeaderThatDiesIsFollowedWithinThreeSeconds) {
  Candidate a(world_, "a", "1");
  ASSERT_TRUE(RunUntilLeads(a, Duration::Seconds(1)));
  Candidate b(world_, "b", "1");
  world_.loop().RunFor(Duration::Seconds(5));
  a.Stop();
  ASSERT_TRUE(RunUntilLeads(b, Duration::Seconds(3)));
  // It was only paused: it holds nothing by its own clock, and the store takes nothing from it.
  EXPECT_FALSE(a.candidacy.leads());
  EXPECT_FALSE(a.Writes());
  EXPECT_EQ(a.deposed, 1);
  EXPECT_TRUE(b.Writes());
}

TEST_F(CandidacyTest, S1_OneThatWakesUpSeesThatAnotherLeads) {
  Candidate a(world_, "a", "1");
  ASSERT_TRUE(RunUntilLeads(a, Duration::Seconds(1)));
  Candidate b(world_, "b", "1");
  world_.loop().RunFor(Duration::Seconds(1));
  EXPECT_EQ(a.deposed, 0);
  // As if its process had been stopped: its tasks go on later.
  auto stopped = std::make_unique<rt::TaskScope>(world_.loop());
  a.Stop();
  ASSERT_TRUE(RunUntilLeads(b, Duration::Seconds(3)));
  stopped->Spawn("candidacy", a.candidacy.Run());
  EXPECT_TRUE(world_.loop().RunUntil([&] { return a.deposed == 1; }, Duration::Seconds(1)));
  world_.loop().RunFor(Duration::Minutes(1));
  EXPECT_FALSE(a.candidacy.leads());
  EXPECT_TRUE(b.candidacy.leads());
  EXPECT_TRUE(world_.Run(stopped->Close()).ok());
}

TEST_F(CandidacyTest, AStoreThatIsAwayForAWhileDeposesNobody) {
  Candidate a(world_, "a", "1");
  ASSERT_TRUE(RunUntilLeads(a, Duration::Seconds(1)));
  world_.SetFaults({.refuse = 1.0});
  world_.loop().RunFor(Duration::Seconds(10));
  EXPECT_FALSE(a.candidacy.leads());
  world_.SetFaults({});
  EXPECT_TRUE(RunUntilLeads(a, Duration::Seconds(2)));
  EXPECT_EQ(a.deposed, 0);
  EXPECT_TRUE(a.Writes());
}

TEST_F(CandidacyTest, AServerThatWasKilledDoesNotWaitForItself) {
  {
    Candidate before(world_, "a", "1");
    ASSERT_TRUE(RunUntilLeads(before, Duration::Seconds(1)));
  }
  Candidate after(world_, "a", "2");
  EXPECT_TRUE(RunUntilLeads(after, Duration::Millis(500)));
}

TEST_F(CandidacyTest, WhoLeavesMakesRoomAtOnce) {
  Candidate a(world_, "a", "1");
  ASSERT_TRUE(RunUntilLeads(a, Duration::Seconds(1)));
  Candidate b(world_, "b", "1");
  world_.loop().RunFor(Duration::Seconds(1));
  a.Stop();
  EXPECT_TRUE(world_.Run(a.candidacy.Leave()).ok());
  EXPECT_TRUE(RunUntilLeads(b, Duration::Millis(500)));
}

TEST_F(CandidacyTest, TheWayToTheLeaderIsKnownOnceItAnswersForAllNames) {
  ServerList leader(world_.loop(),
                    world_.client(),
                    {.id = "l",
                     .url = "https://l",
                     .gateways = {"l.example:1", "all.example:1"},
                     .names = {"l.example", "all.example", "10.0.0.1", "172.17.0.1"}});
  ServerList other(world_.loop(),
                   world_.client(),
                   {.id = "o",
                    .url = "https://o",
                    .gateways = {"all.example:1"},
                    .names = {"all.example", "10.0.0.2", "172.17.0.1", "no name"}});
  EXPECT_EQ(world_.Run(other.WayToLeader("l")).status().reason(), Reason::kNotFound);
  rt::TaskScope scope(world_.loop());
  scope.Spawn("l", leader.Run());
  scope.Spawn("o", other.Run());
  world_.loop().RunFor(Duration::Seconds(1));
  EXPECT_TRUE(world_.Run(other.WayToLeader("l"))->empty()) << "its certificate lacks 10.0.0.2";
  const auto names = world_.Run(leader.Names());
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(
      *names,
      (std::vector<std::string>{"l.example", "all.example", "10.0.0.1", "172.17.0.1", "10.0.0.2"}));
  ASSERT_TRUE(world_.Run(leader.AnswerFor(*names)).ok());
  // Not by the name that all have, nor by the address of a bridge that each machine has.
  EXPECT_EQ(*world_.Run(other.WayToLeader("l")),
            (std::vector<std::string>{"l.example:1", "10.0.0.1:1"}));
  world_.loop().RunFor(Duration::Minutes(1));
  EXPECT_EQ(world_.Run(other.WayToLeader("l"))->size(), 2U) << "it says so again and again";
  EXPECT_TRUE(world_.Run(scope.Close()).ok());
  // Whoever begins anew answers for nobody at first.
  ServerList again(world_.loop(), world_.client(), {.id = "l", .url = "", .gateways = {"l:1"}});
  rt::TaskScope anew(world_.loop());
  anew.Spawn("l", again.Run());
  world_.loop().RunFor(Duration::Seconds(1));
  EXPECT_TRUE(world_.Run(other.WayToLeader("l"))->empty());
  EXPECT_TRUE(world_.Run(anew.Close()).ok());
}

TEST_F(CandidacyTest, HostsAreToldOfServersThatWereThereLately) {
  ServerList a(
      world_.loop(), world_.client(), {.id = "a", .url = "https://a", .gateways = {"a:1"}});
  ServerList b(
      world_.loop(), world_.client(), {.id = "b", .url = "https://b", .gateways = {"b:1", "c:1"}});
  rt::TaskScope scope(world_.loop());
  rt::TaskScope other(world_.loop());
  scope.Spawn("a", a.Run());
  other.Spawn("b", b.Run());
  world_.loop().RunFor(Duration::Seconds(30));
  const auto all = world_.Run(a.Gateways());
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(*all, (std::vector<std::string>{"a:1", "b:1", "c:1"}));
  EXPECT_TRUE(world_.Run(other.Close()).ok());
  world_.loop().RunFor(Duration::Minutes(3));
  EXPECT_EQ(world_.Run(a.Gateways())->size(), 1U);
  EXPECT_TRUE(world_.Run(scope.Close()).ok());
  EXPECT_TRUE(world_.Run(a.Leave()).ok());
  EXPECT_EQ(world_.Run(b.Gateways())->size(), 2U);
}

}  // namespace
}  // namespace berth::app
