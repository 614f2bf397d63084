// SPDX-License-Identifier: Apache-2.0
// Event: something that happened to an object. There are two shapes, v1 and events.k8s.io/v1, of
// one stored object; v1 has a place for everything and is what is stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "meta/kind.h"

namespace berth::apis::k8s {

inline constexpr std::string_view kEventNormal = "Normal";
inline constexpr std::string_view kEventWarning = "Warning";

struct ObjectReference {
  std::string kind;
  std::string namespace_;
  std::string name;
  std::string uid;
  std::string api_version;
  std::string resource_version;
  std::string field_path;
  bool operator==(const ObjectReference&) const = default;
};
BERTH_DESCRIBE_ATOMIC(ObjectReference,
                      "io.k8s.api.core.v1.ObjectReference",
                      "Names any object, or a part of one.",
                      BERTH_FIELD(kind, "kind", "Kind of the object."),
                      BERTH_FIELD(namespace_, "namespace", "Namespace of the object."),
                      BERTH_FIELD(name, "name", "Name of the object."),
                      BERTH_FIELD(uid, "uid", "UID of the object."),
                      BERTH_FIELD(api_version, "apiVersion", "API version of the object."),
                      BERTH_FIELD(resource_version,
                                  "resourceVersion",
                                  "The state of the object that is meant."),
                      BERTH_FIELD(field_path, "fieldPath", "The part of the object that is meant."))

struct EventSource {
  std::string component;
  std::string host;
  bool operator==(const EventSource&) const = default;
};
BERTH_DESCRIBE(EventSource,
               "io.k8s.api.core.v1.EventSource",
               "Who reports an event.",
               BERTH_FIELD(component, "component", "Program that reports the event."),
               BERTH_FIELD(host, "host", "Where the program runs."))

struct CoreEventSeries {
  int32_t count = 0;
  meta::MicroTime last_observed_time;
  bool operator==(const CoreEventSeries&) const = default;
};
BERTH_DESCRIBE(CoreEventSeries,
               "io.k8s.api.core.v1.EventSeries",
               "An event that happens again and again.",
               BERTH_FIELD(count, "count", "How often it was seen."),
               BERTH_FIELD(last_observed_time, "lastObservedTime", "When it was last seen."))

// v1 Event, the stored shape.
struct CoreEvent {
  meta::ObjectMeta metadata;
  ObjectReference involved_object;
  std::string reason;
  std::string message;
  EventSource source;
  WallTime first_timestamp;
  WallTime last_timestamp;
  int32_t count = 0;
  std::string type;
  meta::MicroTime event_time;
  std::optional<CoreEventSeries> series;
  std::string action;
  std::optional<ObjectReference> related;
  std::string reporting_component;
  std::string reporting_instance;
};
BERTH_DESCRIBE(
    CoreEvent,
    "io.k8s.api.core.v1.Event",
    "Something that happened to an object. Kept for a limited time, and never relied upon.",
    BERTH_FIELD(metadata, "metadata", "Name, labels and the rest.", {.always = true}),
    BERTH_FIELD(involved_object, "involvedObject", "What it happened to.", {.always = true}),
    BERTH_FIELD(reason, "reason", "One word for programs."),
    BERTH_FIELD(message, "message", "A sentence for people."),
    BERTH_FIELD(source, "source", "Who reports it; older reporters."),
    BERTH_FIELD(first_timestamp, "firstTimestamp", "When it was first seen; older reporters."),
    BERTH_FIELD(last_timestamp, "lastTimestamp", "When it was last seen; older reporters."),
    BERTH_FIELD(count, "count", "How often it was seen; older reporters."),
    BERTH_FIELD(type, "type", "Normal or Warning."),
    BERTH_FIELD(event_time, "eventTime", "When it was first seen."),
    BERTH_FIELD(series, "series", "How it goes on, if it happens again and again."),
    BERTH_FIELD(action, "action", "What was done or failed."),
    BERTH_FIELD(related, "related", "Another object that plays a part."),
    BERTH_FIELD(reporting_component, "reportingComponent", "Program that reports it."),
    BERTH_FIELD(reporting_instance, "reportingInstance", "Which instance of the program."))

extern const meta::KindInfo kCoreEventKind;
inline const meta::KindInfo& BerthKind(meta::Tag<CoreEvent>) { return kCoreEventKind; }

struct EventSeries {
  int32_t count = 0;
  meta::MicroTime last_observed_time;
  bool operator==(const EventSeries&) const = default;
};
BERTH_DESCRIBE(
    EventSeries,
    "io.k8s.api.events.v1.EventSeries",
    "An event that happens again and again.",
    BERTH_FIELD(count, "count", "How often it was seen.", {.always = true}),
    BERTH_FIELD(last_observed_time, "lastObservedTime", "When it was last seen.", {.always = true}))

// events.k8s.io/v1 Event.
struct Event {
  meta::ObjectMeta metadata;
  meta::MicroTime event_time;
  std::optional<EventSeries> series;
  std::string reporting_controller;
  std::string reporting_instance;
  std::string action;
  std::string reason;
  ObjectReference regarding;
  std::optional<ObjectReference> related;
  std::string note;
  std::string type;
  EventSource deprecated_source;
  WallTime deprecated_first_timestamp;
  WallTime deprecated_last_timestamp;
  int32_t deprecated_count = 0;
};
BERTH_DESCRIBE(
    Event,
    "io.k8s.api.events.v1.Event",
    "Something that happened to an object. Kept for a limited time, and never relied upon.",
    BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
    BERTH_FIELD(event_time, "eventTime", "When it was first seen.", {.always = true}),
    BERTH_FIELD(series, "series", "How it goes on, if it happens again and again."),
    BERTH_FIELD(reporting_controller, "reportingController", "Program that reports it."),
    BERTH_FIELD(reporting_instance, "reportingInstance", "Which instance of the program."),
    BERTH_FIELD(action, "action", "What was done or failed."),
    BERTH_FIELD(reason, "reason", "One word for programs."),
    BERTH_FIELD(regarding, "regarding", "What it happened to."),
    BERTH_FIELD(related, "related", "Another object that plays a part."),
    BERTH_FIELD(note, "note", "A sentence for people."),
    BERTH_FIELD(type, "type", "Normal or Warning."),
    BERTH_FIELD(deprecated_source, "deprecatedSource", "source of the v1 shape."),
    BERTH_FIELD(deprecated_first_timestamp,
                "deprecatedFirstTimestamp",
                "firstTimestamp of the v1 shape."),
    BERTH_FIELD(deprecated_last_timestamp,
                "deprecatedLastTimestamp",
                "lastTimestamp of the v1 shape."),
    BERTH_FIELD(deprecated_count, "deprecatedCount", "count of the v1 shape."))

extern const meta::KindInfo kEventKind;
inline const meta::KindInfo& BerthKind(meta::Tag<Event>) { return kEventKind; }

// Both lose nothing: there and back is the same event.
void ToCoreEvent(const Event& event, CoreEvent& stored);
void FromCoreEvent(const CoreEvent& stored, Event& event);

// When the event was last seen, in whichever field its reporter says so.
WallTime LastSeen(const CoreEvent& event);

}  // namespace berth::apis::k8s
