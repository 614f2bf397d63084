// SPDX-License-Identifier: Apache-2.0
#include "client/events/event_recorder.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apiserver/registry/registry_world.h"
#include "client/passing_client.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::client {
namespace {

// A store that takes its time for commits of many, once it is told to.
class SlowClient final : public PassingClient {
 public:
  explicit SlowClient(Client& inner) : PassingClient(inner) {}
  Duration per_batch;

  rt::Task<std::vector<Result<meta::Object>>> CreateBatch(std::vector<meta::Object> objects,
                                                          WriteOptions options) override {
    if (per_batch > Duration()) {
      const Status slept = co_await rt::Sleep(per_batch);
      if (!slept.ok()) co_return std::vector<Result<meta::Object>>(objects.size(), slept);
    }
    co_return co_await inner().CreateBatch(std::move(objects), options);
  }
};

class EventRecorderTest : public testing::Test {
 protected:
  EventRecorderTest() {
    world_.MakeNamespace("default");
    scope_.Spawn("recorder", recorder_.Run());
  }
  ~EventRecorderTest() override { EXPECT_TRUE(world_.Run(scope_.Close()).ok()); }

  static EventSubject Machine(const std::string& name) {
    return {.kind = &apis::compute::kMachineKind,
            .key = {.namespace_ = "default", .name = name},
            .uid = "uid-of-" + name};
  }
  std::vector<apis::k8s::CoreEvent> Events(Duration wait = Duration::Seconds(5)) {
    world_.loop().RunFor(wait);
    const auto list = world_.Run(world_.client().List(apis::k8s::kCoreEventKind, {}));
    EXPECT_TRUE(list.ok()) << list.status();
    std::vector<apis::k8s::CoreEvent> events;
    for (const meta::Object& item : list->items) {
      events.push_back(item.as<apis::k8s::CoreEvent>());
    }
    return events;
  }

  // What a server shows of it.
  std::string Metrics() const {
    metrics::Registry metrics;
    HealthReport report;
    recorder_.Report(report);
    ShowHealth(report, metrics);
    return metrics.Text();
  }

  // 300 in every tenth of a second, of which nothing is written twice.
  size_t RecordNormal(size_t seconds) {
    size_t recorded = 0;
    for (size_t i = 0; i < seconds * 10; ++i) {
      for (int k = 0; k < 300; ++k) {
        recorder_.Record(Machine("m" + std::to_string(++recorded)),
                         EventType::kNormal,
                         "Scheduled",
                         "Binding",
                         "bound");
      }
      world_.loop().RunFor(Duration::Millis(100));
    }
    return recorded;
  }

  apiserver::RegistryWorld world_{3};
  SlowClient client_{world_.client()};
  rt::TaskScope scope_{world_.loop()};
  EventRecorder recorder_{world_.loop(), client_, world_.scheme(), "berth-test"};
};

TEST_F(EventRecorderTest, D4_AnEventHasItsActionAndItsMessageInTheirPlaces) {
  recorder_.Record(Machine("web"), EventType::kWarning, "NoRoom", "Scheduling", "no pool has room");
  const auto events = Events();
  ASSERT_EQ(events.size(), 1U);
  const apis::k8s::CoreEvent& event = events[0];
  EXPECT_EQ(event.involved_object.kind, "Machine");
  EXPECT_EQ(event.involved_object.name, "web");
  EXPECT_EQ(event.involved_object.uid, "uid-of-web");
  EXPECT_EQ(event.involved_object.api_version, "compute.ironcore.dev/v1alpha1");
  EXPECT_EQ(event.reason, "NoRoom");
  EXPECT_EQ(event.action, "Scheduling");
  EXPECT_EQ(event.message, "no pool has room");
  EXPECT_EQ(event.type, "Warning");
  EXPECT_EQ(event.source.component, "berth-test");
}

TEST_F(EventRecorderTest, WhatRepeatsIsCounted) {
  for (int i = 0; i < 7; ++i) {
    recorder_.Record(Machine("web"), EventType::kWarning, "NoRoom", "Scheduling", "still not");
    world_.loop().RunFor(Duration::Seconds(2));
  }
  const auto events = Events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].count, 7);
}

TEST_F(EventRecorderTest, ManyEventsAreWrittenAndNoneTwice) {
  for (int i = 0; i < 500; ++i) {
    recorder_.Record(
        Machine("m" + std::to_string(i)), EventType::kWarning, "Refused", "Binding", "no");
  }
  EXPECT_EQ(Events().size(), 500U);
}

TEST_F(EventRecorderTest, AFullQueueDropsAndCountsWhatItDrops) {
  for (size_t i = 0; i < EventRecorder::kQueueMax + 10; ++i) {
    recorder_.Record(
        Machine("m" + std::to_string(i)), EventType::kWarning, "Refused", "Binding", "no");
  }
  EXPECT_EQ(recorder_.queued(), EventRecorder::kQueueMax);
  EXPECT_EQ(recorder_.dropped(), 10U);
  EXPECT_NE(Metrics().find("berth_events_dropped_total{component=\"berth-test\"} 10\n"),
            std::string::npos)
      << Metrics();
}

TEST_F(EventRecorderTest, P7_3_WhenThousandsAreWellOnlySomeSaySoAndTroubleIsStillTold) {
  for (int i = 0; i < 3000; ++i) {
    recorder_.Record(
        Machine("m" + std::to_string(i)), EventType::kNormal, "Scheduled", "Binding", "bound");
  }
  EXPECT_LE(recorder_.queued(), 256U);
  EXPECT_EQ(recorder_.queued() + recorder_.dropped(), 3000U);
  EXPECT_NE(Metrics().find("berth_events_dropped_total{component=\"berth-test\"} 0\n"),
            std::string::npos)
      << "that all is well may be left out: " << Metrics();
  const size_t before = recorder_.queued();
  recorder_.Record(Machine("bad"), EventType::kWarning, "Refused", "Binding", "no");
  EXPECT_EQ(recorder_.queued(), before + 1);
}

TEST_F(EventRecorderTest, P7_3_OfWhatIsWellNoMoreIsWrittenInASecondThanFitsInFourCommits) {
  constexpr size_t kSeconds = 10;
  const size_t recorded = RecordNormal(kSeconds);
  const size_t written = recorded - recorder_.queued() - recorder_.dropped();
  EXPECT_LE(written, (kSeconds + 1) * 4 * EventRecorder::kBatchMax);
  EXPECT_GE(written, (kSeconds - 1) * 4 * EventRecorder::kBatchMax) << "and no less";
}

// While one commit is under way as many come as the next one takes: it would never pause.
TEST_F(EventRecorderTest, P7_3_ASteadyStreamIsNoMoreWhenTheStoreIsSlowAndWhatRepeatsIsCounted) {
  constexpr size_t kSeconds = 10;
  client_.per_batch = Duration::Millis(30);
  for (int i = 0; i < 2; ++i) {
    recorder_.Record(Machine("web"), EventType::kWarning, "NoRoom", "Scheduling", "no room");
  }
  const size_t recorded = RecordNormal(kSeconds);
  const size_t written = recorded + 1 - recorder_.queued() - recorder_.dropped();
  EXPECT_LE(written, (kSeconds + 1) * 4 * EventRecorder::kBatchMax);
  int32_t count = 0;
  for (const apis::k8s::CoreEvent& event : Events(Duration())) {
    if (event.involved_object.name == "web") count = event.count;
  }
  EXPECT_EQ(count, 2);
}

TEST_F(EventRecorderTest, WhatFollowsAnotherEventIsThereHalfASecondLater) {
  recorder_.Record(Machine("web"), EventType::kNormal, "Started", "Report", "it runs");
  EXPECT_EQ(Events(Duration::Millis(100)).size(), 1U);
  recorder_.Record(Machine("web"), EventType::kWarning, "Crashed", "Report", "it is dead");
  EXPECT_EQ(Events(Duration::Millis(520)).size(), 2U);
  recorder_.Record(Machine("web"), EventType::kWarning, "Crashed", "Report", "it is dead");
  const auto events = Events(Duration::Millis(520));
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].count + events[1].count, 3) << "what repeats is counted as soon";
}

TEST_F(EventRecorderTest, WhatHostsWriteIsCutAndCannotDriveATerminal) {
  recorder_.Record(Machine("web"),
                   EventType::kWarning,
                   "Odd",
                   "Reporting",
                   "\x1b[2Jred\n" + std::string(3000, 'x'));
  const auto events = Events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].message.substr(0, 9), " [2Jred x");
  EXPECT_EQ(events[0].message.size(), EventRecorder::kMessageMax);
}

TEST_F(EventRecorderTest, AnEventInANamespaceThatIsGoneIsDropped) {
  EventSubject subject = Machine("web");
  subject.key.namespace_ = "nowhere";
  recorder_.Record(subject, EventType::kNormal, "Scheduled", "Binding", "bound");
  EXPECT_TRUE(Events().empty());
  EXPECT_EQ(recorder_.dropped(), 1U);
}

}  // namespace
}  // namespace berth::client
