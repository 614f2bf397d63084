// SPDX-License-Identifier: Apache-2.0
// Defends: what a host has to say goes as fast as the server takes it, and events that have to wait
// are bounded and not lost in silence.
#include "poollet/host/outbox.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "berth/agent/v1/agent.pb.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;

class OutboxTest : public testing::Test {
 protected:
  OutboxTest() { Begin(10); }

  void Begin(size_t events_per_second) {
    OutboxLimits limits;
    limits.events_per_second = events_per_second;
    outbox_.Begin(limits, now_);
  }
  void Tell(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      SpokenEvent event;
      event.uid = "m" + std::to_string(told_++);
      event.pool_uid = "pool";
      event.reason = "Crashed";
      outbox_.Event(std::move(event));
    }
  }
  pb::HostBatch Next() {
    const auto bytes = outbox_.Take(now_);
    pb::HostMessage message;
    if (bytes.has_value()) EXPECT_TRUE(message.ParseFromString(*bytes));
    return message.batch();
  }
  // Everything that is said by then, looked at five times a second.
  std::vector<pb::HostEvent> EventsFor(Duration duration) {
    std::vector<pb::HostEvent> events;
    const Time until = now_ + duration;
    for (; now_ < until; now_ = now_ + Duration::Millis(200)) {
      const pb::HostBatch batch = Next();
      events.insert(events.end(), batch.events().begin(), batch.events().end());
    }
    return events;
  }

  Time now_ = Time() + Duration::Hours(1);
  std::map<std::string, EventFate> fates_;  // what is not in it is said
  Outbox outbox_{[](Urgency) {},
                 [this](const std::string& uid) {
                   const auto found = fates_.find(uid);
                   return found == fates_.end() ? EventFate::kSay : found->second;
                 }};
  size_t told_ = 0;
};

TEST_F(OutboxTest, R5_8_EventsBeyondWhatTheServerTakesGoWithLaterBatchesInTheirOrder) {
  Tell(25);
  EXPECT_EQ(Next().events_size(), 10);
  EXPECT_FALSE(outbox_.Take(now_).has_value()) << "nothing to say now";
  EXPECT_TRUE(outbox_.has_events());
  EXPECT_EQ(outbox_.EventsWait(now_), Duration::Millis(100));
  const auto later = EventsFor(Duration::Seconds(2));
  ASSERT_EQ(later.size(), 15U);
  for (size_t i = 0; i < later.size(); ++i) EXPECT_EQ(later[i].uid(), "m" + std::to_string(10 + i));
  EXPECT_FALSE(outbox_.has_events());
}

TEST_F(OutboxTest, NothingElseWaitsBehindEvents) {
  Tell(25);
  EXPECT_EQ(Next().events_size(), 10);
  ObjectReport report;
  report.uid = "m24";
  report.state = "Terminated";
  outbox_.Report(std::move(report));
  const pb::HostBatch batch = Next();
  EXPECT_EQ(batch.statuses_size(), 1);
  EXPECT_EQ(batch.events_size(), 0);
}

TEST_F(OutboxTest, R5_8_AServerThatTakesMoreHearsThemAllAtOnce) {
  Begin(1000);
  Tell(100);
  EXPECT_EQ(Next().events_size(), 100);
}

TEST_F(OutboxTest, TheOldestOfTooManyEventsAreDroppedAndHowManyIsSaidOnce) {
  Tell(kEventsMax + 7);
  const auto all = EventsFor(Duration::Minutes(3));
  ASSERT_EQ(all.size(), kEventsMax + 1);
  EXPECT_EQ(all.front().uid(), "m7");
  EXPECT_EQ(all[kEventsMax - 1].uid(), "m" + std::to_string(kEventsMax + 6));
  const pb::HostEvent& last = all.back();
  EXPECT_EQ(last.uid(), "");
  EXPECT_EQ(last.pool_uid(), "pool");
  EXPECT_EQ(last.type(), "Warning");
  EXPECT_EQ(last.reason(), "EventsDropped");
  EXPECT_EQ(last.message(), "7 events were not told: more than 1024 waited, and the oldest went");
  EXPECT_FALSE(outbox_.has_events());
  Tell(1);
  EXPECT_EQ(EventsFor(Duration::Seconds(10)).size(), 1U);
}

TEST_F(OutboxTest, EventsOfWhatTheServerDoesNotKnowAreNotSaid) {
  Tell(5);
  fates_ = {{"m1", EventFate::kDrop}, {"m3", EventFate::kKeep}};
  EXPECT_EQ(Next().events_size(), 3);
  EXPECT_TRUE(outbox_.has_events());
  fates_.clear();  // it knows all that is here
  const pb::HostBatch later = Next();
  ASSERT_EQ(later.events_size(), 1);
  EXPECT_EQ(later.events(0).uid(), "m3");
  EXPECT_FALSE(outbox_.has_events());
}

TEST_F(OutboxTest, ClassesAndFactsAreNotForgottenForFiguresThatCameAfterThem) {
  SpokenFacts changed;
  changed.pool_uid = "pool";
  changed.classes = {{.name = "small"}};
  changed.runtime_facts = iri::StringMap{{"hypervisor", "late"}};
  outbox_.Facts({changed});
  SpokenFacts figures;
  figures.pool_uid = "pool";
  figures.capacity = {{"cpu", 8000}};
  outbox_.Facts({figures});
  const pb::HostBatch batch = Next();
  ASSERT_EQ(batch.facts_size(), 1);
  EXPECT_EQ(batch.facts(0).facts().capacity().at("cpu"), 8000);
  EXPECT_TRUE(batch.facts(0).classes_changed());
  EXPECT_EQ(batch.facts(0).classes_size(), 1);
  EXPECT_TRUE(batch.facts(0).runtime_facts_changed());
  EXPECT_EQ(batch.facts(0).runtime_facts().at("hypervisor"), "late");
  outbox_.Facts({figures});
  EXPECT_FALSE(Next().facts(0).runtime_facts_changed()) << "once";
}

TEST_F(OutboxTest, EventsOutliveTheSessionAndTheNextOneHearsThem) {
  Tell(25);
  EXPECT_EQ(Next().events_size(), 10);
  outbox_.SessionEnded();
  Begin(0);
  EXPECT_EQ(Next().events_size(), 10);
  EXPECT_EQ(EventsFor(Duration::Seconds(2)).size(), 5U);
}

}  // namespace
}  // namespace berth::poollet
