// SPDX-License-Identifier: Apache-2.0
// Defends the rules of docs/protocol.md §2.3 that are the scheduler's own.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "rt/sleep.h"
#include "scheduler/placing/scheduler.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

using Verdict = fleet::Answer::Verdict;

// One more scheduler on the same store and fleet.
class SecondScheduler {
 public:
  SecondScheduler(SchedulerWorld& world, SchedulerOptions options)
      : SecondScheduler(world, std::move(options), world.api().registry().binder()) {}
  SecondScheduler(SchedulerWorld& world, SchedulerOptions options, client::Binder& binder)
      : world_(world), scope_(world.api().loop()) {
    scheduler_ = std::make_unique<Scheduler>(Scheduler::Deps{.loop = world.api().loop(),
                                                             .client = world.api().client(),
                                                             .binder = binder,
                                                             .fleet = world.fleet(),
                                                             .scheme = world.api().scheme(),
                                                             .metrics = metrics_},
                                             std::move(options));
    scope_.Spawn("scheduler", scheduler_->Run());
  }
  ~SecondScheduler() {
    const Status closed = world_.api().Run(scope_.Close());
    CHECK(closed.ok()) << closed;
  }
  Scheduler& get() { return *scheduler_; }

 private:
  SchedulerWorld& world_;
  metrics::Registry metrics_;
  rt::TaskScope scope_;
  std::unique_ptr<Scheduler> scheduler_;
};

// Writes no binding until it is let go: it is slow, or somebody else was faster.
class StubbornBinder final : public client::Binder {
 public:
  enum class Way : uint8_t { kGood, kSlow, kConflicts } way = Way::kGood;
  int begun = 0;
  explicit StubbornBinder(client::Binder& inner) : inner_(inner) {}

  rt::Task<std::vector<Result<std::vector<meta::Object>>>> BindBatch(
      std::vector<client::BindRequest> requests) override {
    using Verdicts = std::vector<Result<std::vector<meta::Object>>>;
    ++begun;
    if (way == Way::kConflicts) co_return Verdicts(requests.size(), Conflict("it changes"));
    while (way == Way::kSlow) {
      const Status slept = co_await rt::Sleep(Duration::Seconds(1));
      if (!slept.ok()) co_return Verdicts(requests.size(), slept);
    }
    co_return co_await inner_.BindBatch(std::move(requests));
  }
  rt::Task<std::vector<Status>> CreateBoundBatch(meta::Object model,
                                                 std::vector<client::BindItem> items,
                                                 std::string holder,
                                                 int64_t term) override {
    return inner_.CreateBoundBatch(std::move(model), std::move(items), std::move(holder), term);
  }
  rt::Task<std::vector<Status>> UnbindBatch(std::vector<client::UnbindRequest> requests) override {
    return inner_.UnbindBatch(std::move(requests));
  }

 private:
  client::Binder& inner_;
};

// A commit cannot be called back: whoever tried again could bind it twice.
TEST(SchedulerRules, R3_6_S4_ASlowBindIsToldAfterTwoSecondsAndWaitedFor) {
  SchedulerWorld world(5);
  world.Join(world.MakePool("alpha"));
  StubbornBinder binder(world.api().registry().binder());
  binder.way = StubbornBinder::Way::kSlow;
  const SecondScheduler scheduler(world, {.holder = "stubborn"}, binder);
  world.MakeMachine("web");
  ASSERT_TRUE(world.Until([&] { return binder.begun == 1; }));
  const Time begun = world.Now();
  ASSERT_TRUE(world.Until([&] { return !world.WhyNot("web").empty(); }));
  EXPECT_GE(world.Now() - begun, Duration::Millis(1900));
  EXPECT_EQ(world.WhyNot("web"), "pool alpha has accepted it, and the binding is not written yet");
  world.RunFor(Duration::Minutes(1));
  EXPECT_EQ(binder.begun, 1);
  binder.way = StubbornBinder::Way::kGood;
  EXPECT_TRUE(world.IsPlaced("web"));
  EXPECT_EQ(binder.begun, 1);
}

TEST(SchedulerRules, C4_WhatIsBoundAgainAndAgainInVainOrForLongSaysWhyItWaits) {
  for (const auto way : {StubbornBinder::Way::kSlow, StubbornBinder::Way::kConflicts}) {
    SchedulerWorld world(5);
    world.Join(world.MakePool("alpha"));
    StubbornBinder binder(world.api().registry().binder());
    binder.way = way;
    const SecondScheduler scheduler(world, {.holder = "stubborn"}, binder);
    world.MakeMachine("web");
    ASSERT_TRUE(world.Until([&] { return !world.WhyNot("web").empty(); }));
    binder.way = StubbornBinder::Way::kGood;
    EXPECT_TRUE(world.IsPlaced("web"));
  }
}

TEST(SchedulerRules, C4_AMachineWhoseVolumeIsBeingBoundForLongSaysSo) {
  SchedulerWorld world(5);
  world.Join(world.MakePool("alpha"));
  world.JoinVolumePool(world.MakeVolumePool("disks", "host-d", "Any"));
  StubbornBinder binder(world.api().registry().binder());
  binder.way = StubbornBinder::Way::kSlow;
  const SecondScheduler scheduler(world, {.holder = "stubborn"}, binder);
  world.MakeVolume("data");
  ASSERT_TRUE(world.Until([&] { return binder.begun == 1; }));
  apis::compute::Machine machine = world.Machine("web");
  machine.spec.volumes.emplace_back().name = "data";
  machine.spec.volumes[0].volume_ref = apis::core::LocalObjectReference{.name = "data"};
  world.MakeMachine(machine);
  ASSERT_TRUE(world.Until([&] { return !world.WhyNot("web").empty(); }));
  EXPECT_EQ(world.WhyNot("web"), "its volume data is being bound already");
  binder.way = StubbornBinder::Way::kGood;
  EXPECT_TRUE(world.IsPlaced("web"));
}

std::set<uint64_t> Terms(const std::vector<fleet::Offer>& offers) {
  std::set<uint64_t> terms;
  for (const fleet::Offer& offer : offers) terms.insert(offer.id.term);
  return terms;
}

TEST(SchedulerRules, S1_OnlyWhoHoldsTheLeaseAsksHosts) {
  SchedulerWorld world(5);
  const std::string pool = world.MakePool("alpha", 64);
  world.Join(pool, 64);
  world.StartScheduler();
  SecondScheduler second(world, {.holder = "second"});
  for (int i = 0; i < 10; ++i) world.MakeMachine("m-" + std::to_string(i));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(world.IsPlaced("m-" + std::to_string(i)));
  EXPECT_EQ(Terms(world.fleet().offers(pool)).size(), 1U) << "one asks, with one term";
  EXPECT_EQ(world.fleet().offers(pool).size(), 10U) << "nobody asks twice";
  world.StopScheduler();
  world.MakeMachine("late");
  ASSERT_TRUE(world.Until([&] { return !world.PoolOf("late").empty(); }, Duration::Minutes(2)));
  EXPECT_EQ(Terms(world.fleet().offers(pool)).size(), 2U);
  EXPECT_GT(world.fleet().offers(pool).back().id.term, world.fleet().offers(pool)[0].id.term);
}

TEST(SchedulerRules, S2_WhatIsOfferedIsTakenOnTheBoardAtOnce) {
  SchedulerWorld world(6);
  const std::string pool = world.MakePool("alpha", 2);
  world.Join(pool, 2);
  // The host thinks about each offer; meanwhile its room is nobody else's.
  world.fleet().Answers(
      pool,
      [](const fleet::Offer&) {
        fleet::Answer answer;
        answer.verdict = Verdict::kAccepted;
        return std::optional(answer);
      },
      Duration::Millis(200));
  world.StartScheduler();
  for (int i = 0; i < 6; ++i) world.MakeMachine("m-" + std::to_string(i));
  world.RunFor(Duration::Millis(150));
  EXPECT_EQ(world.fleet().offers(pool).size(), 2U);
  world.RunFor(Duration::Seconds(5));
  int placed = 0;
  for (int i = 0; i < 6; ++i) placed += world.PoolOf("m-" + std::to_string(i)).empty() ? 0 : 1;
  EXPECT_EQ(placed, 2);
  EXPECT_EQ(world.fleet().offers(pool).size(), 2U) << "nobody was asked in vain";
}

TEST(SchedulerRules, S5_AHoldIsNotUsedInTheSecondHalfOfItsTime) {
  SchedulerWorld world(7);
  const std::string pool = world.MakePool("alpha");
  world.Join(pool);
  SchedulerOptions options{.holder = "patient", .take_over = client::TakeOver::kAtOnce};
  options.placer.answer_limit = Duration::Seconds(20);
  options.placer.hold_ttl = Duration::Seconds(10);
  SecondScheduler scheduler(world, std::move(options));
  ASSERT_TRUE(world.Until([&] { return scheduler.get().ready(); }));
  const auto yes = [](const fleet::Offer&) {
    fleet::Answer answer;
    answer.verdict = Verdict::kAccepted;
    return std::optional(answer);
  };
  world.fleet().Answers(pool, yes, Duration::Seconds(6));
  world.MakeMachine("web");
  ASSERT_TRUE(world.Until([&] { return !world.fleet().releases(pool).empty(); }))
      << "a hold that may end before the commit does is given back";
  EXPECT_EQ(world.fleet().releases(pool)[0], world.fleet().offers(pool)[0].id);
  EXPECT_EQ(world.PoolOf("web"), "");
  world.fleet().Answers(pool, yes, Duration::Seconds(1));
  EXPECT_TRUE(world.IsPlaced("web")) << "asked again, it is placed";
}

}  // namespace
}  // namespace berth::scheduler
