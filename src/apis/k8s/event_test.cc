// SPDX-License-Identifier: Apache-2.0
// Defends the two shapes of Event, their rules, selectors and columns.
#include "apis/k8s/event.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::k8s {
namespace {

using testing::CellOf;
using testing::Parse;

CoreEvent Older() {
  return Parse<CoreEvent>(R"({
    "metadata": {"name": "e", "namespace": "ns"},
    "involvedObject": {"kind": "Machine", "namespace": "ns", "name": "m", "fieldPath": "spec"},
    "reason": "Started", "message": " it runs \n", "type": "Normal", "count": 3,
    "source": {"component": "poollet", "host": "h"},
    "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-02T00:00:00Z"})");
}

Event Newer() {
  return Parse<Event>(R"({
    "metadata": {"name": "e", "namespace": "ns"},
    "eventTime": "2026-01-01T00:00:00.000001Z",
    "reportingController": "berth.dev/scheduler", "reportingInstance": "s-1",
    "action": "Bind", "reason": "Scheduled", "note": "bound to p", "type": "Normal",
    "regarding": {"kind": "Machine", "namespace": "ns", "name": "m"},
    "series": {"count": 5, "lastObservedTime": "2026-01-03T00:00:00.000000Z"}})");
}

CoreEvent Stored(const Event& event) {
  CoreEvent core_event;
  ToCoreEvent(event, core_event);
  return core_event;
}

TEST(Event, IsTheSameInBothShapes) {
  const CoreEvent stored = Stored(Newer());
  EXPECT_EQ(stored.involved_object.name, "m");
  EXPECT_EQ(stored.message, "bound to p");
  EXPECT_EQ(stored.reporting_component, "berth.dev/scheduler");
  EXPECT_EQ(stored.series->count, 5);
  Event back;
  FromCoreEvent(stored, back);
  EXPECT_EQ(meta::EncodeJsonOf(back), meta::EncodeJsonOf(Newer()));

  Event newer;
  FromCoreEvent(Older(), newer);
  EXPECT_EQ(newer.note, " it runs \n");
  EXPECT_EQ(newer.deprecated_source.component, "poollet");
  EXPECT_EQ(newer.deprecated_count, 3);
  EXPECT_EQ(meta::EncodeJsonOf(Stored(newer)), meta::EncodeJsonOf(Older()));
}

TEST(Event, OverwritesWhatWasThereBefore) {
  Event target = Newer();
  FromCoreEvent(Older(), target);
  EXPECT_EQ(target.series, std::nullopt);
  EXPECT_EQ(target.action, "");
}

TEST(Event, OfTheOlderShapeHasRules) {
  testing::ExpectRules<CoreEvent>(
      Older(),
      {
          {"another namespace",
           [](auto& e) { e.involved_object.namespace_ = "other"; },
           {"Invalid involvedObject.namespace"}},
          {"a cluster-wide object outside default",
           [](auto& e) { e.involved_object.namespace_ = ""; },
           {"Invalid involvedObject.namespace"}},
          {"a cluster-wide object in default",
           [](auto& e) {
             e.involved_object.namespace_ = "";
             e.metadata.namespace_ = "default";
           },
           {}},
          {"half a report",
           [](auto& e) { e.event_time.time = WallTime::FromSeconds(1); },
           {"Required action", "Required reportingComponent", "Required reportingInstance"}},
      });
}

TEST(Event, OfTheNewerShapeHasRules) {
  testing::ExpectRules<Event>(
      Newer(),
      {
          {"no time", [](auto& e) { e.event_time = {}; }, {"Required eventTime"}},
          {"no reporter",
           [](auto& e) { e.reporting_controller = ""; },
           {"Required reportingController"}},
          {"bad reporter",
           [](auto& e) { e.reporting_controller = "a b"; },
           {"Invalid reportingController"}},
          {"no instance",
           [](auto& e) { e.reporting_instance = ""; },
           {"Required reportingInstance"}},
          {"no action", [](auto& e) { e.action = ""; }, {"Required action"}},
          {"long action", [](auto& e) { e.action = std::string(129, 'a'); }, {"TooLong action"}},
          {"no reason", [](auto& e) { e.reason = ""; }, {"Required reason"}},
          {"long note", [](auto& e) { e.note = std::string(1025, 'a'); }, {"TooLong note"}},
          {"unknown type", [](auto& e) { e.type = "Odd"; }, {"Invalid type"}},
          {"another namespace",
           [](auto& e) { e.regarding.namespace_ = "other"; },
           {"Invalid regarding.namespace"}},
          {"an older event, seen as a newer one", [](auto& e) { FromCoreEvent(Older(), e); }, {}},
      });
}

TEST(Event, IsSelectedByItsSource) {
  CoreEvent event = Older();
  EXPECT_EQ(kCoreEventKind.selector_value(&event, "source"), "poollet");
  EXPECT_EQ(kCoreEventKind.selector_value(&event, "reason"), std::nullopt);
  event = Stored(Newer());
  EXPECT_EQ(kCoreEventKind.selector_value(&event, "source"), "berth.dev/scheduler");
}

TEST(Event, KnowsWhenItWasLastSeen) {
  CoreEvent event = Older();
  EXPECT_EQ(LastSeen(event), *ParseRfc3339("2026-01-02T00:00:00Z"));
  event.last_timestamp = {};
  EXPECT_EQ(LastSeen(event), *ParseRfc3339("2026-01-01T00:00:00Z"));
  event = Stored(Newer());
  EXPECT_EQ(LastSeen(event), *ParseRfc3339("2026-01-03T00:00:00Z"));
  event.series.reset();
  EXPECT_EQ(LastSeen(event), *ParseRfc3339("2026-01-01T00:00:00.000001Z"));
}

TEST(Event, ShowsTheSameInBothShapes) {
  const Event newer = Newer();
  const CoreEvent stored = Stored(newer);
  for (size_t i = 0; i < kEventKind.columns.size(); ++i) {
    const meta::Column& view = kEventKind.columns[i];
    const meta::Column& core = kCoreEventKind.columns[i];
    EXPECT_EQ(view.name, core.name);
    if (view.cell != nullptr) EXPECT_EQ(view.cell(&newer), core.cell(&stored)) << view.name;
    if (view.since != nullptr) EXPECT_EQ(view.since(&newer), core.since(&stored)) << view.name;
  }
  EXPECT_EQ(CellOf(kEventKind, "Object", &newer), "machine/m");
  EXPECT_EQ(CellOf(kEventKind, "Source", &newer), "berth.dev/scheduler, s-1");
  EXPECT_EQ(CellOf(kEventKind, "Count", &newer), "5");
}

TEST(Event, ShowsTrimmedMessageAndSource) {
  CoreEvent event = Older();
  EXPECT_EQ(CellOf(kCoreEventKind, "Message", &event), "it runs");
  EXPECT_EQ(CellOf(kCoreEventKind, "Source", &event), "poollet, h");
  EXPECT_EQ(CellOf(kCoreEventKind, "Subobject", &event), "spec");
  EXPECT_EQ(CellOf(kCoreEventKind, "Count", &event), "3");
  event.count = 0;
  EXPECT_EQ(CellOf(kCoreEventKind, "Count", &event), "1");
}

}  // namespace
}  // namespace berth::apis::k8s
