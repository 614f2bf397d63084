// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/bulk_placer.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apis/k8s/event.h"
#include "client/passing_client.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

using Verdict = fleet::Answer::Verdict;

class BulkPlacerTest : public testing::Test {
 protected:
  static std::vector<std::string> Names(int count, const apis::compute::Machine& machine) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      names.push_back(machine.metadata.name + "-" + std::to_string(i));
    }
    return names;
  }
  // Starts the scheduler, and lets it know the hosts.
  void Start(const std::vector<std::string>& pools, int64_t cpus) {
    world_.StartScheduler();
    for (const std::string& pool : pools) world_.Join(pool, cpus);
    world_.RunFor(Duration::Millis(50));
  }
  BulkPlacer::Verdicts Create(int count, const apis::compute::Machine& machine) {
    return world_.api().Run(world_.scheduler().bulk().CreateBulk(
        meta::Object::Of(apis::compute::kMachineKind, machine), Names(count, machine)));
  }
  static rt::Task<Status> Store(client::BulkCreator& bulk,
                                int count,
                                apis::compute::Machine machine,
                                std::optional<BulkPlacer::Verdicts>* out) {
    meta::Object model = meta::Object::Of(apis::compute::kMachineKind, machine);
    std::vector<std::string> names = Names(count, machine);
    out->emplace(co_await bulk.CreateBulk(std::move(model), std::move(names)));
    co_return OkStatus();
  }
  // How many of the machines are on each pool; "" without.
  std::map<std::string, int> Places(const std::string& prefix, int count) {
    std::map<std::string, int> places;
    for (int i = 0; i < count; ++i) ++places[world_.PoolOf(prefix + "-" + std::to_string(i))];
    return places;
  }

  // What events say was scheduled, by name.
  std::map<std::string, std::string> Told() {
    std::map<std::string, std::string> told;
    const auto events = world_.api().Run(world_.api().client().List(apis::k8s::kCoreEventKind, {}));
    EXPECT_TRUE(events.ok()) << events.status();
    for (const meta::Object& object : events->items) {
      const auto& event = object.as<apis::k8s::CoreEvent>();
      if (event.reason == "Scheduled") told[event.involved_object.name] = event.message;
    }
    return told;
  }

  SchedulerWorld world_{12};
};

TEST_F(BulkPlacerTest, CopiesExistBoundFromTheirFirstMomentAndEveryHostWasAsked) {
  const std::string alpha = world_.MakePool("alpha", 30);
  const std::string beta = world_.MakePool("beta", 30);
  Start({alpha, beta}, 30);
  apis::compute::Machine machine = world_.Machine("web");
  machine.spec.placement.emplace().policy = "spread";
  const auto made = Create(40, machine);
  ASSERT_EQ(made.size(), 40U);
  std::set<std::string> uids;
  for (int i = 0; i < 40; ++i) {
    const auto& verdict = made[static_cast<size_t>(i)];
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    const apis::compute::Machine copy = world_.GetMachine("web-" + std::to_string(i));
    ASSERT_TRUE(copy.status.placement.has_value());
    EXPECT_EQ(copy.status.placement->epoch, 1);
    EXPECT_EQ(copy.metadata.uid, *verdict);
    uids.insert(copy.metadata.uid);
  }
  // Bound by the same write that made them: nobody had to bind them later.
  EXPECT_EQ(Places("web", 40), (std::map<std::string, int>{{"alpha", 20}, {"beta", 20}}));
  std::set<std::string> asked;
  for (const std::string& pool : {alpha, beta}) {
    for (const fleet::Offer& offer : world_.fleet().offers(pool)) {
      EXPECT_EQ(offer.item.placement, 1U);
      EXPECT_EQ(offer.item.resources, (fleet::Vector{{"cpu", 1000}, {"memory", 1LL << 30}}));
      asked.insert(offer.item.uid);
    }
    EXPECT_TRUE(world_.fleet().releases(pool).empty());
  }
  EXPECT_EQ(asked, uids);
}

TEST_F(BulkPlacerTest, FewCopiesHaveAnEventEachAndManyOneOfTheirSet) {
  const std::string alpha = world_.MakePool("alpha", 100);
  const std::string beta = world_.MakePool("beta", 100);
  Start({alpha, beta}, 100);
  apis::compute::Machine machine = world_.Machine("web");
  machine.spec.placement.emplace().policy = "spread";
  meta::OwnerReference& owner = machine.metadata.owner_references.emplace_back();
  owner.api_version = "berth.dev/v1alpha1";
  owner.kind = "MachineSet";
  owner.name = "shop";
  owner.uid = "uid-of-shop";
  Create(3, machine);
  world_.RunFor(Duration::Seconds(3));
  const auto few = Told();
  ASSERT_EQ(few.size(), 3U);
  for (const auto& [name, message] : few) {
    EXPECT_EQ(message, "placed on pool " + world_.PoolOf(name));
  }
  machine.metadata.name = "many";
  Create(40, machine);
  world_.RunFor(Duration::Seconds(3));
  EXPECT_EQ(Told().at("shop"), "40 machines were placed on 2 pools");
  EXPECT_FALSE(Told().contains("many-0"));
}

TEST_F(BulkPlacerTest, R2_5_AHostIsAskedForAllItsCopiesTogether) {
  const std::string alpha = world_.MakePool("alpha", 400);
  const std::string beta = world_.MakePool("beta", 400);
  Start({alpha, beta}, 400);
  apis::compute::Machine machine = world_.Machine("web");
  machine.spec.placement.emplace().policy = "spread";
  // More than are decided on in one turn, and more than one wave.
  const auto made = Create(700, machine);
  for (const auto& verdict : made) ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(world_.fleet().offers(alpha).size() + world_.fleet().offers(beta).size(), 700U);
  for (const std::string& pool : {alpha, beta}) {
    const auto& offers = world_.fleet().offers(pool);
    ASSERT_GT(offers.size(), 300U);
    for (size_t i = 1; i < offers.size(); ++i) {
      EXPECT_EQ(offers[i].id.number, offers[i - 1].id.number + 1);
    }
  }
}

TEST_F(BulkPlacerTest, WhatFindsNoRoomIsCreatedAndSaysWhy) {
  const std::string pool = world_.MakePool("alpha", 3);
  Start({pool}, 3);
  const auto made = Create(5, world_.Machine("web"));
  for (const auto& verdict : made) EXPECT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(Places("web", 5), (std::map<std::string, int>{{"", 2}, {"alpha", 3}}));
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("web-4").empty(); }));
}

TEST_F(BulkPlacerTest, C3_CopiesWhoseHostRefusesAreLeftToTheQueueAndGoElsewhere) {
  const std::string alpha = world_.MakePool("alpha", 30);
  const std::string beta = world_.MakePool("beta", 30);
  Start({alpha, beta}, 30);
  world_.fleet().Answers(alpha, [](const fleet::Offer&) {
    fleet::Answer answer;
    answer.verdict = Verdict::kRejected;
    answer.reason = "NoDisk";
    return std::optional(answer);
  });
  apis::compute::Machine machine = world_.Machine("web");
  machine.spec.placement.emplace().policy = "spread";
  const auto made = Create(10, machine);
  for (const auto& verdict : made) ASSERT_TRUE(verdict.ok()) << verdict.status();
  ASSERT_TRUE(world_.Until([&] { return Places("web", 10)["beta"] == 10; }));
}

TEST_F(BulkPlacerTest, C3_ASilentHostDelaysItsOwnCopiesOnly) {
  const std::string alpha = world_.MakePool("alpha", 30);
  const std::string beta = world_.MakePool("beta", 30);
  Start({alpha, beta}, 30);
  world_.fleet().Answers(alpha, [](const fleet::Offer&) { return std::nullopt; });
  apis::compute::Machine machine = world_.Machine("web");
  machine.spec.placement.emplace().policy = "spread";
  const auto made = Create(10, machine);
  for (const auto& verdict : made) ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_GE(Places("web", 10)["beta"], 5);
  ASSERT_TRUE(world_.Until([&] { return Places("web", 10)["beta"] == 10; }));
}

TEST_F(BulkPlacerTest, S3b_ACordonBetweenTheYesAndTheCommitIsSeenByTheCommit) {
  const std::string alpha = world_.MakePool("alpha", 30);
  Start({alpha}, 30);
  // The yes takes its time, and the operator is faster than the commit.
  const auto yes = [](const fleet::Offer&) {
    fleet::Answer answer;
    answer.verdict = Verdict::kAccepted;
    return std::optional(answer);
  };
  world_.fleet().Answers(alpha, yes, Duration::Millis(100));
  std::optional<BulkPlacer::Verdicts> made;
  rt::TaskScope scope(world_.api().loop());
  scope.Spawn("bulk", Store(world_.scheduler().bulk(), 4, world_.Machine("web"), &made));
  world_.RunFor(Duration::Millis(10));
  world_.Cordon("alpha");
  ASSERT_TRUE(world_.Until([&] { return made.has_value(); }));
  for (const auto& verdict : *made) EXPECT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(Places("web", 4), (std::map<std::string, int>{{"", 4}}));
  EXPECT_EQ(world_.fleet().offers(alpha).size(), 4U);
  EXPECT_EQ(world_.fleet().releases(alpha).size(), 4U);
}

TEST_F(BulkPlacerTest, CopiesWithVolumesAreMadeAsAnybodyWould) {
  const std::string alpha = world_.MakePool("alpha", 30);
  Start({alpha}, 30);
  apis::compute::Machine machine = world_.Machine("db");
  auto& volume = machine.spec.volumes.emplace_back();
  volume.name = "data";
  volume.volume_ref = apis::core::LocalObjectReference{"missing"};
  const auto made = Create(2, machine);
  for (const auto& verdict : made) ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_TRUE(world_.fleet().offers(alpha).empty());
  EXPECT_EQ(Places("db", 2), (std::map<std::string, int>{{"", 2}}));
}

TEST_F(BulkPlacerTest, ANameThatIsTakenIsReportedAndItsRoomGivenBack) {
  const std::string alpha = world_.MakePool("alpha", 30);
  Start({alpha}, 30);
  world_.MakeMachine("web-1");
  ASSERT_TRUE(world_.IsPlaced("web-1"));
  const auto made = Create(3, world_.Machine("web"));
  EXPECT_TRUE(made[0].ok());
  EXPECT_TRUE(made[1].status().Is(Reason::kAlreadyExists)) << made[1].status();
  EXPECT_TRUE(made[2].ok());
  EXPECT_EQ(world_.fleet().releases(alpha).size(), 1U);
  EXPECT_EQ(world_.scheduler().board().object_count(), 3U);
}

TEST_F(BulkPlacerTest, WhoWaitsForTheRoomOfACopyThatIsNotMadeIsPlacedAtOnce) {
  const std::string alpha = world_.MakePool("alpha", 5);
  Start({alpha}, 5);
  world_.MakeMachine("web-0");  // its name is taken
  ASSERT_TRUE(world_.IsPlaced("web-0"));
  const auto yes = [](const fleet::Offer&) {
    fleet::Answer answer;
    answer.verdict = Verdict::kAccepted;
    return std::optional(answer);
  };
  world_.fleet().Answers(alpha, yes, Duration::Millis(1900));
  std::optional<BulkPlacer::Verdicts> made;
  rt::TaskScope scope(world_.api().loop());
  scope.Spawn("bulk", Store(world_.scheduler().bulk(), 1, world_.Machine("web"), &made));
  world_.RunFor(Duration::Millis(10));
  world_.MakeMachine("waits", "large");  // all but what the copy and its namesake take
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("waits").empty(); }));
  EXPECT_FALSE(made.has_value());
  world_.fleet().Answers(alpha, yes);
  ASSERT_TRUE(world_.Until([&] { return made.has_value(); }));
  EXPECT_TRUE((*made)[0].status().Is(Reason::kAlreadyExists)) << (*made)[0].status();
  EXPECT_TRUE(world_.Until([&] { return world_.PoolOf("waits") == "alpha"; }, Duration::Seconds(5)))
      << world_.WhyNot("waits");
}

// The same of a host's no, when the store takes no machine either.
TEST_F(BulkPlacerTest, WhoWaitsForTheRoomOfARefusedCopyIsPlacedAtOnce) {
  class NoCopies final : public client::PassingClient {
   public:
    explicit NoCopies(client::Client& inner) : PassingClient(inner) {}
    rt::Task<std::vector<Result<meta::Object>>> CreateBatch(std::vector<meta::Object> objects,
                                                            client::WriteOptions) override {
      std::vector<Result<meta::Object>> refused;
      for (size_t i = 0; i < objects.size(); ++i) refused.emplace_back(Forbidden("full"));
      co_return refused;
    }
  } no_copies(world_.api().client());
  world_.UseClient(no_copies);
  const std::string alpha = world_.MakePool("alpha", 4);
  Start({alpha}, 4);
  world_.fleet().Answers(
      alpha,
      [](const fleet::Offer& offer) {
        fleet::Answer answer;
        answer.verdict = offer.item.class_name == "small" ? Verdict::kRejected : Verdict::kAccepted;
        return std::optional(answer);
      },
      Duration::Millis(1900));
  std::optional<BulkPlacer::Verdicts> made;
  rt::TaskScope scope(world_.api().loop());
  scope.Spawn("bulk", Store(world_.scheduler().bulk(), 1, world_.Machine("web"), &made));
  world_.RunFor(Duration::Millis(10));
  world_.MakeMachine("waits", "large");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("waits").empty(); }));
  EXPECT_FALSE(made.has_value());
  world_.fleet().Answers(alpha, [](const fleet::Offer&) {
    return std::optional(fleet::Answer{.verdict = Verdict::kAccepted});
  });
  ASSERT_TRUE(world_.Until([&] { return made.has_value(); }));
  EXPECT_TRUE((*made)[0].status().Is(Reason::kForbidden)) << (*made)[0].status();
  EXPECT_TRUE(world_.Until([&] { return world_.PoolOf("waits") == "alpha"; }, Duration::Seconds(5)))
      << world_.WhyNot("waits");
  world_.StopScheduler();
}

}  // namespace
}  // namespace berth::scheduler
