// SPDX-License-Identifier: Apache-2.0
// Defends PROTOCOL 8.4: who is stopped for whom, and whose the room is then.
#include "scheduler/placing/preemptor.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apis/berth/machine_set.h"
#include "client/passing_client.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

// A server that refuses to show machines, at once, as long as it is told to.
class RefusingClient final : public client::PassingClient {
 public:
  explicit RefusingClient(client::Client& inner) : PassingClient(inner) {}
  void RefuseMachines(Status why) { why_ = std::move(why); }
  int refused() const { return refused_; }

  rt::Task<Result<meta::Object>> Get(const meta::KindInfo& kind, client::ObjectKey key) override {
    if (!why_.ok() && &kind == &apis::compute::kMachineKind) {
      ++refused_;
      co_return why_;
    }
    co_return co_await inner().Get(kind, std::move(key));
  }

 private:
  Status why_;
  int refused_ = 0;
};

class PreemptorTest : public testing::Test {
 protected:
  PreemptorTest() {
    world_.MakePriorityClass("low", -10, "true");
    world_.MakePriorityClass("high", 1000, "false");
  }

  // A pool that `names`, of the class low, fill up.
  void Fill(const std::string& pool, const std::vector<std::string>& names) {
    const auto cpus = static_cast<int64_t>(names.size());
    world_.Join(world_.MakePool(pool, cpus), cpus);
    for (const std::string& name : names) {
      world_.MakeRanked(name, "low");
      ASSERT_TRUE(world_.IsPlaced(name)) << name;
    }
  }
  std::vector<std::string> Leaving(const std::vector<std::string>& names) {
    std::vector<std::string> leaving;
    for (const std::string& name : names) {
      if (!world_.ReleaseOf(name).empty()) leaving.push_back(name);
    }
    return leaving;
  }
  std::string NominatedPool(const std::string& name) {
    const auto machine = world_.GetMachine(name);
    return machine.status.placement && machine.status.placement->nominated
               ? machine.status.placement->nominated->pool
               : std::string();
  }

  SchedulerWorld world_{23};
};

TEST_F(PreemptorTest, R8_4_ALessImportantMachineIsStoppedAndWaitsAndNothingIsDeleted) {
  world_.StartScheduler();
  Fill("alpha", {"a", "b"});
  world_.MakeRanked("vip", "high");
  ASSERT_TRUE(world_.Until([&] { return Leaving({"a", "b"}).size() == 1; }));
  world_.RunFor(Duration::Seconds(1));
  ASSERT_EQ(Leaving({"a", "b"}).size(), 1U);  // no more than needed
  const std::string victim = Leaving({"a", "b"})[0];
  EXPECT_EQ(world_.ReleaseOf(victim), "Preempted");
  EXPECT_EQ(world_.ConditionOf(victim, "Released"),
            "Preempted: makes room for machine team/vip of priority 1000 on pool alpha");
  EXPECT_EQ(NominatedPool("vip"), "alpha");
  EXPECT_EQ(world_.ConditionOf("vip", "Scheduled"),
            "Preempting: waits for room on pool alpha, where less important machines are stopped "
            "for it");
  EXPECT_EQ(world_.PoolOf("vip"), "");
  // Its host says that it is gone: the proof.
  world_.LetGo(victim, "Preempted");
  ASSERT_TRUE(world_.IsPlaced("vip"));
  EXPECT_EQ(NominatedPool("vip"), "");
  world_.RunFor(Duration::Seconds(5));
  EXPECT_EQ(world_.PoolOf(victim), "");
  EXPECT_FALSE(world_.GetMachine(victim).metadata.deletion_timestamp.has_value());
  EXPECT_EQ(world_.GetMachine(victim).status.placement->reason, "Preempted");
  EXPECT_EQ(world_.scheduler().placer().preemptor().nominations(), 0U);
  // It comes back when there is room.
  world_.Join(world_.MakePool("beta"));
  ASSERT_TRUE(world_.IsPlaced(victim));
  EXPECT_EQ(world_.PoolOf(victim), "beta");
  EXPECT_EQ(world_.ConditionOf(victim, "Released"), "");
}

TEST_F(PreemptorTest, R8_4_ANominationThatIsRefusedAtOnceStopsNobodyAndIsTriedAgain) {
  RefusingClient client(world_.api().client());
  world_.UseClient(client);
  world_.StartScheduler();
  Fill("alpha", {"a", "b"});
  client.RefuseMachines(Unavailable("not now"));
  world_.MakeRanked("vip", "high");
  ASSERT_TRUE(world_.Until([&] { return client.refused() > 0; }));
  world_.RunFor(Duration::Seconds(5));
  EXPECT_TRUE(Leaving({"a", "b"}).empty());
  EXPECT_EQ(NominatedPool("vip"), "");
  client.RefuseMachines(OkStatus());
  EXPECT_TRUE(world_.Until([&] { return Leaving({"a", "b"}).size() == 1; }));
  EXPECT_EQ(NominatedPool("vip"), "alpha");
  world_.StopScheduler();
}

TEST_F(PreemptorTest, R8_4_NobodyIsStoppedWhoMayNotBe) {
  world_.MakePriorityClass("firm", -20, "false");
  world_.MakePriorityClass("same", 1000, "true");
  world_.MakePriorityClass("meek", 2000, "false", "Never");
  struct Case {
    std::string what;
    std::string victim_class;
    std::string preemptor_class;
    std::function<void(apis::compute::Machine&)> change;
  };
  const auto nothing = [](apis::compute::Machine&) {};
  const std::vector<Case> cases = {
      {"its class is not preemptible", "firm", "high", nothing},
      {"it has no class", "", "high", nothing},
      {"it is as important", "same", "high", nothing},
      {"the other may not preempt", "low", "meek", nothing},
      {"it has state on its host",
       "low",
       "high",
       [](auto& machine) {
         machine.spec.volumes.push_back({.name = "scratch", .device = "oda"});
         machine.spec.volumes[0].empty_disk.emplace();
       }},
  };
  world_.StartScheduler();
  int number = 0;
  for (const Case& one : cases) {
    const std::string n = std::to_string(++number);
    const std::string pool = "pool-" + n;
    world_.Join(world_.MakePool(pool, 1, n), 1);
    auto victim = world_.Machine("victim-" + n);
    if (!one.victim_class.empty()) {
      victim.spec.placement.emplace().priority_class_name = one.victim_class;
    }
    one.change(victim);
    victim.spec.machine_pool_selector["zone"] = n;
    world_.MakeMachine(victim);
    ASSERT_TRUE(world_.IsPlaced("victim-" + n)) << one.what;
    auto vip = world_.Machine("vip-" + n);
    vip.spec.placement.emplace().priority_class_name = one.preemptor_class;
    vip.spec.machine_pool_selector["zone"] = n;
    world_.MakeMachine(vip);
    world_.RunFor(Duration::Seconds(3));
    EXPECT_EQ(world_.ReleaseOf("victim-" + n), "") << one.what;
    EXPECT_EQ(NominatedPool("vip-" + n), "") << one.what;
    EXPECT_NE(world_.WhyNot("vip-" + n), "") << one.what;
  }
}

TEST_F(PreemptorTest, R8_4_TheRoomOfVictimsIsKeptForWhomItWasMade) {
  world_.StartScheduler();
  Fill("alpha", {"a", "b", "c", "d"});
  world_.MakeRanked("waiting", "low");  // has been there for longer
  world_.MakeRanked("vip", "high", "large");
  const std::vector<std::string> all = {"a", "b", "c", "d"};
  ASSERT_TRUE(world_.Until([&] { return Leaving(all).size() == 4; }));
  for (const char* name : {"a", "b", "c"}) world_.LetGo(name, "Preempted");
  world_.MakeRanked("later", "low");
  world_.RunFor(Duration::Seconds(20));
  for (const char* name : {"a", "b", "c", "waiting", "later"}) {
    EXPECT_EQ(world_.PoolOf(name), "") << name;
  }
  world_.LetGo("d", "Preempted");
  ASSERT_TRUE(world_.IsPlaced("vip"));
}

TEST_F(PreemptorTest, R8_4_TheRoomIsKeptWhileAnotherPoolIsAsked) {
  world_.StartScheduler();
  Fill("alpha", {"a"});
  const std::string beta = world_.MakePool("beta", 1);
  world_.Join(beta, 1);
  world_.fleet().Answers(
      beta, [](const fleet::Offer&) -> std::optional<fleet::Answer> { return std::nullopt; });
  world_.MakeRanked("vip", "high");
  ASSERT_TRUE(world_.Until([&] { return Leaving({"a"}).size() == 1; }));
  world_.RunFor(Duration::Seconds(3));  // beta is not avoided any more, and is asked first
  world_.LetGo("a", "Preempted");
  ASSERT_TRUE(world_.IsPlaced("vip"));
  world_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(world_.PoolOf("a"), "");
}

TEST_F(PreemptorTest, R8_4_RoomThatNobodyNeedsAnyMoreIsEverybodys) {
  world_.StartScheduler();
  Fill("alpha", {"a"});
  world_.MakeRanked("vip", "high");
  ASSERT_TRUE(world_.Until([&] { return Leaving({"a"}).size() == 1; }));
  world_.DeleteMachine("vip");
  world_.LetGo("a", "Preempted");
  EXPECT_TRUE(world_.IsPlaced("a"));
  EXPECT_EQ(world_.scheduler().placer().preemptor().nominations(), 0U);
}

TEST_F(PreemptorTest, R8_4_WhoWaitsForSomethingElseThanRoomKeepsNone) {
  world_.StartScheduler();
  Fill("alpha", {"a"});
  world_.MakeRanked("vip", "high");
  ASSERT_TRUE(world_.Until([&] { return Leaving({"a"}).size() == 1; }));
  auto vip = world_.GetMachine("vip");
  apis::compute::MachineVolume volume;
  volume.name = "root";
  volume.volume_ref = apis::core::LocalObjectReference{"missing"};
  vip.spec.volumes.push_back(std::move(volume));
  world_.ChangeMachine(std::move(vip));
  ASSERT_TRUE(world_.Until([&] { return world_.WhyNot("vip") == "there is no Volume missing"; }));
  world_.LetGo("a", "Preempted");
  EXPECT_TRUE(world_.IsPlaced("a"));
}

TEST_F(PreemptorTest, R8_4_APlanThatLeadsNowhereIsOverAndAnotherOneIsMade) {
  world_.StartScheduler();
  Fill("alpha", {"a"});
  world_.MakeRanked("vip", "high");
  ASSERT_TRUE(world_.Until([&] { return NominatedPool("vip") == "alpha"; }));
  // Its pool takes nothing new any more, and the victim does not leave.
  world_.Cordon("alpha");
  Fill("beta", {"b"});
  ASSERT_TRUE(world_.Until([&] { return NominatedPool("vip") == "beta"; }, Duration::Minutes(5)));
  ASSERT_TRUE(world_.Until([&] { return !world_.ReleaseOf("b").empty(); }));
  world_.LetGo("b", "Preempted");
  EXPECT_TRUE(world_.IsPlaced("vip"));
}

TEST_F(PreemptorTest, R8_4_WhoWasStoppedInVainIsNotStoppedAgainAndAgain) {
  world_.StartScheduler();
  const std::string alpha = world_.MakePool("alpha", 1);
  world_.Join(alpha, 1);
  world_.MakeRanked("a", "low");
  ASSERT_TRUE(world_.IsPlaced("a"));
  const std::string vip = world_.MakeRanked("vip", "high");
  // Its host never takes the one for whom room is made, and nobody can know.
  world_.fleet().Answers(alpha, [vip](const fleet::Offer& offer) -> std::optional<fleet::Answer> {
    using Verdict = fleet::Answer::Verdict;
    if (offer.item.uid != vip) return fleet::Answer{.verdict = Verdict::kAccepted};
    return fleet::Answer{.verdict = Verdict::kRejected, .reason = "Unwilling"};
  });
  ASSERT_TRUE(world_.Until([&] { return !world_.ReleaseOf("a").empty(); }));
  world_.LetGo("a", "Preempted");
  ASSERT_TRUE(world_.Until([&] { return world_.PoolOf("a") == "alpha"; }, Duration::Minutes(5)));
  world_.RunFor(Duration::Minutes(20));
  EXPECT_EQ(world_.ReleaseOf("a"), "");
  EXPECT_EQ(world_.PoolOf("vip"), "");
  // Not for ever: what was wrong with the host may be over.
  EXPECT_TRUE(world_.Until([&] { return !world_.ReleaseOf("a").empty(); }, Duration::Minutes(15)));
}

TEST_F(PreemptorTest, R8_4_AHostThatRefusesWhomItHasRoomForIsAskedLessAndLess) {
  const std::string alpha = world_.MakePool("alpha", 1);
  world_.StartScheduler();
  world_.Join(alpha, 1);
  world_.MakeRanked("a", "low");
  ASSERT_TRUE(world_.IsPlaced("a"));
  const std::string vip = world_.MakeRanked("vip", "high");
  world_.fleet().Answers(alpha, [](const fleet::Offer&) -> std::optional<fleet::Answer> {
    return fleet::Answer{.verdict = fleet::Answer::Verdict::kRejected, .reason = "Busy"};
  });
  ASSERT_TRUE(world_.Until([&] { return !world_.ReleaseOf("a").empty(); }));
  world_.LetGo("a", "Preempted");
  world_.RunFor(Duration::Seconds(10));
  const size_t asked = world_.fleet().offers(alpha).size();
  EXPECT_GT(asked, 3U);
  EXPECT_LT(asked, 20U);
  world_.fleet().Answers(alpha, [](const fleet::Offer&) -> std::optional<fleet::Answer> {
    return fleet::Answer{.verdict = fleet::Answer::Verdict::kAccepted};
  });
  EXPECT_TRUE(world_.IsPlaced("vip"));
}

TEST_F(PreemptorTest, R2_4_22_ANewLeaderKeepsTheRoomThatWasBeingMade) {
  world_.StartScheduler();
  Fill("alpha", {"a", "b", "c", "d"});
  world_.MakeRanked("waiting", "low");
  world_.MakeRanked("vip", "high", "large");
  const std::vector<std::string> all = {"a", "b", "c", "d"};
  ASSERT_TRUE(world_.Until([&] { return Leaving(all).size() == 4; }));
  world_.StopScheduler();
  for (const char* name : {"a", "b"}) world_.LetGo(name, "Preempted");
  world_.StartScheduler();
  world_.RunFor(Duration::Seconds(10));
  EXPECT_EQ(world_.PoolOf("waiting"), "");
  for (const char* name : {"c", "d"}) world_.LetGo(name, "Preempted");
  ASSERT_TRUE(world_.IsPlaced("vip"));
  for (const char* name : {"a", "b", "c", "d", "waiting"}) EXPECT_EQ(world_.PoolOf(name), "");
}

TEST_F(PreemptorTest, R2_4_22_ANewLeaderAsksTheVictimsThatTheLastOneDidNotComeTo) {
  world_.StartScheduler();
  Fill("alpha", {"a"});
  Fill("beta", {"b"});
  world_.StopScheduler();
  world_.MakeRanked("vip", "high");
  // The last thing that the old leader did.
  auto vip =
      world_.api().Run(world_.api().client().Get(apis::compute::kMachineKind, {"team", "vip"}));
  ASSERT_TRUE(vip.ok());
  const std::string pool = world_.PoolOf("b");
  vip->as<apis::compute::Machine>().status.placement.emplace().nominated = apis::core::Nomination{
      .pool = pool,
      .pool_uid = world_.GetMachine("b").status.placement->pool_uid,
      .until = WallTime::FromSeconds(world_.api().loop().WallNow().seconds() + 60)};
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  ASSERT_TRUE(world_.api().Run(world_.api().client().Update(*vip, options)).ok());
  world_.StartScheduler();
  ASSERT_TRUE(world_.Until([&] { return !world_.ReleaseOf("b").empty(); }));
  EXPECT_EQ(world_.ReleaseOf("a"), "");
  world_.LetGo("b", "Preempted");
  ASSERT_TRUE(world_.IsPlaced("vip"));
  EXPECT_EQ(world_.PoolOf("vip"), pool);
}

TEST_F(PreemptorTest, R8_4_ASetLosesNoMoreThanItsBudget) {
  apis::berth_dev::MachineSet set;
  set.metadata.namespace_ = SchedulerWorld::kNamespace;
  set.metadata.name = "web";
  set.spec.selector.match_labels["app"] = "web";
  set.spec.machine_template.metadata.labels["app"] = "web";
  set.spec.machine_template.spec.machine_class_ref.name = "small";
  set.spec.disruption_budget.emplace().max_unavailable = 1;
  const auto made = world_.api().Run(world_.api().client().Create(
      meta::Object::Of(apis::berth_dev::kMachineSetKind, std::move(set)), {}));
  ASSERT_TRUE(made.ok()) << made.status();
  world_.StartScheduler();
  world_.Join(world_.MakePool("alpha", 2), 2);
  for (const char* name : {"web-0", "web-1"}) {
    auto machine = world_.Machine(name);
    machine.spec.placement.emplace().priority_class_name = "low";
    machine.metadata.owner_references.push_back({.api_version = "berth.dev/v1alpha1",
                                                 .kind = "MachineSet",
                                                 .name = "web",
                                                 .uid = made->metadata().uid,
                                                 .controller = true});
    world_.MakeMachine(machine);
    ASSERT_TRUE(world_.IsPlaced(name));
  }
  world_.MakeRanked("vip-1", "high");
  ASSERT_TRUE(world_.Until([&] { return Leaving({"web-0", "web-1"}).size() == 1; }));
  world_.MakeRanked("vip-2", "high");
  world_.RunFor(Duration::Seconds(5));
  ASSERT_EQ(Leaving({"web-0", "web-1"}).size(), 1U);
  world_.LetGo(Leaving({"web-0", "web-1"})[0], "Preempted");
  world_.RunFor(Duration::Seconds(5));
  // One has lost its place and has none yet: the other one stays.
  EXPECT_TRUE(Leaving({"web-0", "web-1"}).empty());
  EXPECT_NE(world_.PoolOf("web-0") + world_.PoolOf("web-1"), "");
}

TEST_F(PreemptorTest, R8_4_AClassThatBecomesPreemptibleCountsFromThenOn) {
  world_.MakePriorityClass("firm", -20, "false");
  world_.StartScheduler();
  world_.Join(world_.MakePool("alpha", 1), 1);
  world_.MakeRanked("a", "firm");
  ASSERT_TRUE(world_.IsPlaced("a"));
  world_.MakeRanked("vip", "high");
  world_.RunFor(Duration::Seconds(2));
  ASSERT_EQ(world_.ReleaseOf("a"), "");
  const auto patched = world_.api().Run(world_.api().client().Patch(
      apis::k8s::kPriorityClassKind,
      {"", "firm"},
      client::PatchType::kMerge,
      R"({"metadata":{"annotations":{"berth.dev/preemptible":"true"}}})",
      {}));
  ASSERT_TRUE(patched.ok()) << patched.status();
  EXPECT_TRUE(world_.Until([&] { return world_.ReleaseOf("a") == "Preempted"; }));
}

TEST_F(PreemptorTest, R4_1_NobodyIsStoppedOnAPoolThatSpeaksTheApi) {
  world_.MakePool("legacy", 1, "a", {"small"}, "API");
  world_.StartScheduler();
  world_.MakeRanked("a", "low");
  ASSERT_TRUE(world_.IsPlaced("a"));
  world_.MakeRanked("vip", "high");
  world_.RunFor(Duration::Seconds(5));
  EXPECT_EQ(world_.ReleaseOf("a"), "");
  EXPECT_NE(world_.WhyNot("vip"), "");
}

}  // namespace
}  // namespace berth::scheduler
