// SPDX-License-Identifier: Apache-2.0
// Defends that an object whose binds conflict again and again is told why it waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apis/k8s/event.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

// Something else is always faster, until it is not.
class SlowBinder final : public client::Binder {
 public:
  explicit SlowBinder(client::Binder& binder) : binder_(binder) {}

  rt::Task<std::vector<Result<std::vector<meta::Object>>>> BindBatch(
      std::vector<client::BindRequest> requests) override {
    if (conflicts_left == 0) co_return co_await binder_.BindBatch(std::move(requests));
    --conflicts_left;
    std::vector<Result<std::vector<meta::Object>>> verdicts;
    for (const client::BindRequest& request : requests) {
      verdicts.emplace_back(Conflict("machine \"" + request.items[0].key.name + "\" changed"));
    }
    co_return verdicts;
  }
  rt::Task<std::vector<Status>> CreateBoundBatch(meta::Object model,
                                                 std::vector<client::BindItem> items,
                                                 std::string holder,
                                                 int64_t term) override {
    co_return co_await binder_.CreateBoundBatch(
        std::move(model), std::move(items), std::move(holder), term);
  }
  rt::Task<std::vector<Status>> UnbindBatch(std::vector<client::UnbindRequest> requests) override {
    co_return co_await binder_.UnbindBatch(std::move(requests));
  }

  int conflicts_left = 0;

 private:
  client::Binder& binder_;
};

class ConflictTest : public testing::Test {
 protected:
  ConflictTest() : binder_(world_.api().registry().binder()) {
    world_.UseBinder(binder_);
    const std::string pool = world_.MakePool("alpha");
    world_.Join(pool);
    world_.StartScheduler();
  }
  ~ConflictTest() override { world_.StopScheduler(); }

  SchedulerWorld world_{23};
  SlowBinder binder_;
};

TEST_F(ConflictTest, S3_WhatConflictsAgainAndAgainIsToldWhyItWaits) {
  binder_.conflicts_left = 1000;
  world_.MakeMachine("m");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("m").empty(); }));
  const std::string why = world_.ConditionOf("m", "Scheduled");
  EXPECT_TRUE(why.starts_with("BindConflict: pools take it, but binding it failed ")) << why;
  EXPECT_TRUE(why.ends_with("the last time because: machine \"m\" changed")) << why;
  client::ListOptions options;
  options.namespace_ = SchedulerWorld::kNamespace;
  const auto has_event = [&] {
    const auto events =
        world_.api().Run(world_.api().client().List(apis::k8s::kEventKind, options));
    CHECK(events.ok()) << events.status();
    return std::ranges::any_of(events->items, [](const meta::Object& event) {
      return event.as<apis::k8s::Event>().reason == "FailedScheduling";
    });
  };
  EXPECT_TRUE(world_.Until(has_event));
  binder_.conflicts_left = 0;
  ASSERT_TRUE(world_.Until([&] { return !world_.PoolOf("m").empty(); }, Duration::Minutes(10)));
  EXPECT_EQ(world_.WhyNot("m"), "");
}

TEST_F(ConflictTest, S3_OneConflictIsNothingToTell) {
  binder_.conflicts_left = 2;
  world_.MakeMachine("m");
  ASSERT_TRUE(world_.IsPlaced("m"));
  for (const auto& condition : world_.GetMachine("m").status.conditions) {
    if (condition.type == "Scheduled") EXPECT_EQ(condition.reason, "Bound");
  }
}

}  // namespace
}  // namespace berth::scheduler
