// SPDX-License-Identifier: Apache-2.0
// Defends: a stop or destroy that the store refuses has changed nothing. Whoever called is told
// that it may try again, everybody else still hears that the machine runs, and trying again is
// enough.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "apiserver/scheduling/scheduling_service.h"
#include "apiserver/scheduling/scheduling_world.h"
#include "net/status_map.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using proto::WorkloadStatus;

constexpr store::StoreFaults kRefusesEverything = {.refuse = 1};

class RefusedChanges : public testing::Test {
 protected:
  // A machine "web" that its host has reported as running.
  void SetUp() override {
    auto request = RequestFor<proto::ScheduleRequest>();
    request.set_manifest(R"({"spec":{"machineClassRef":{"name":"small"}}})");
    const auto scheduled = Begin("Schedule", request);
    const std::string pool_uid = world_.MakePool("p", 8);
    ASSERT_TRUE(world_.Bind(Machine(), "p", pool_uid).ok());
    const Status reported =
        world_.Patch(Machine(), R"({"status":{"state":"Running"}})", client::Subresource::kStatus);
    ASSERT_TRUE(reported.ok()) << reported;
    watched_ = Begin("Attach", RequestFor<proto::AttachRequest>());
    ASSERT_EQ(StateOf(*watched_), WorkloadStatus::RUNNING);
  }
  void TearDown() override { watched_.reset(); }

  template <class T>
  static T RequestFor() {
    T request;
    request.set_namespace_("default");
    request.set_instance_id("web");
    return request;
  }
  // The stream, once it has said something or ended.
  template <class R>
  std::unique_ptr<TestStream<WorkloadStatus>> Begin(const char* method, const R& request) {
    auto stream = world_.Open<WorkloadStatus>(*admin_, method, request);
    EXPECT_TRUE(world_.Until([&] { return !stream->received.empty() || stream->end.has_value(); }));
    return stream;
  }
  static WorkloadStatus::State StateOf(const TestStream<WorkloadStatus>& stream) {
    if (stream.received.empty()) return WorkloadStatus::STATE_UNSPECIFIED;
    return stream.received.back().state();
  }
  // What somebody is told who attaches now.
  WorkloadStatus::State AttachedState() {
    return StateOf(*Begin("Attach", RequestFor<proto::AttachRequest>()));
  }
  // Who was attached all the time has heard nothing new, and listens on.
  bool NobodyWasTold() const { return watched_->received.size() == 1 && !watched_->end; }
  net::GrpcCode CodeOf(const Result<WorkloadStatus>& answer) {
    return net::GrpcCodeOf(answer.status().reason());
  }
  meta::Object Machine() {
    return SchedulingWorld::Must(world_.Run(world_.client().Get(kMachineKind, {"default", "web"})));
  }

  SchedulingWorld world_;
  TestCaller* admin_ = &world_.Admin();
  std::unique_ptr<TestStream<WorkloadStatus>> watched_;
};

TEST_F(RefusedChanges, C26_AfterAnErrorOfStopTheMachineCountsAsRunningAndStoppingAgainIsEnough) {
  const auto stop = RequestFor<proto::StopRequest>();
  world_.SetFaults(kRefusesEverything);
  const auto refused = world_.Call(*admin_, "Stop", stop);
  EXPECT_EQ(CodeOf(refused), net::GrpcCode::kUnavailable) << refused.status();
  world_.SetFaults({});
  EXPECT_EQ(AttachedState(), WorkloadStatus::RUNNING);
  EXPECT_TRUE(NobodyWasTold());
  EXPECT_EQ(Machine().as<apis::compute::Machine>().spec.power, "On");
  const auto stopped = world_.Call(*admin_, "Stop", stop);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(Machine().as<apis::compute::Machine>().spec.power, "Off");
}

TEST_F(RefusedChanges,
       C26_AfterAnErrorOfDestroyTheMachineCountsAsRunningAndDestroyingAgainIsEnough) {
  const auto destroy = RequestFor<proto::DestroyRequest>();
  world_.SetFaults(kRefusesEverything);
  const auto refused = world_.Call(*admin_, "Destroy", destroy);
  EXPECT_EQ(CodeOf(refused), net::GrpcCode::kUnavailable) << refused.status();
  world_.SetFaults({});
  EXPECT_EQ(AttachedState(), WorkloadStatus::RUNNING);
  EXPECT_TRUE(NobodyWasTold());
  EXPECT_FALSE(Machine().metadata().deletion_timestamp.has_value());
  const auto destroyed = world_.Call(*admin_, "Destroy", destroy);
  ASSERT_TRUE(destroyed.ok()) << destroyed.status();
  EXPECT_EQ(destroyed->state(), WorkloadStatus::TERMINATING) << "its host has yet to confirm";
}

// The store has done what was asked, and the word of it was lost.
TEST_F(RefusedChanges, C26_AnAnswerThatWasLostIsAnErrorAndStoppingAgainIsEnough) {
  const auto stop = RequestFor<proto::StopRequest>();
  world_.SetFaults({.lose_answer = 1});
  const auto lost = world_.Call(*admin_, "Stop", stop);
  EXPECT_EQ(CodeOf(lost), net::GrpcCode::kUnavailable) << lost.status();
  world_.SetFaults({});
  EXPECT_EQ(AttachedState(), WorkloadStatus::RUNNING) << "its host has yet to switch it off";
  EXPECT_TRUE(world_.Call(*admin_, "Stop", stop).ok());
}

}  // namespace
}  // namespace berth::apiserver
