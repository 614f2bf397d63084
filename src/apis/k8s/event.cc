// SPDX-License-Identifier: Apache-2.0
#include "apis/k8s/event.h"

#include <array>

#include "apis/core/rules.h"
#include "apis/k8s/namespace.h"
#include "base/strings.h"
#include "meta/names.h"

namespace berth::apis::k8s {
namespace {

constexpr size_t kEventWordMax = 128;      // reason, action, reportingInstance
constexpr size_t kEventMessageMax = 1024;  // of reporters that give eventTime

// An event stands in the namespace of its object; events of cluster-wide objects in default.
void CheckEventNamespace(const ObjectReference& object,
                         const std::string& event_namespace,
                         const meta::FieldPath& path,
                         meta::FieldErrors& errors) {
  const bool matches = object.namespace_.empty()
                           ? event_namespace.empty() || event_namespace == kDefaultNamespace
                           : event_namespace == object.namespace_;
  if (!matches) {
    errors.Invalid(path.Child("namespace"), object.namespace_, "does not match event.namespace");
  }
}

void CheckWord(const std::string& word, std::string_view field, meta::FieldErrors& errors) {
  const meta::FieldPath path{std::string(field)};
  if (word.empty()) errors.Required(path);
  if (word.size() > kEventWordMax) errors.TooLong(path, word.size(), kEventWordMax);
}

// What a reporter that gives eventTime must say besides; `controller` is how the shape calls it.
void CheckReport(const CoreEvent& event,
                 std::string_view controller,
                 std::string_view message,
                 meta::FieldErrors& errors) {
  const meta::FieldPath reporter{std::string(controller)};
  if (event.reporting_component.empty()) {
    errors.Required(reporter);
  } else {
    core::CheckLabelKey(event.reporting_component, reporter, errors);
  }
  CheckWord(event.reporting_instance, "reportingInstance", errors);
  CheckWord(event.action, "action", errors);
  CheckWord(event.reason, "reason", errors);
  const size_t bytes = event.message.size();
  if (bytes > kEventMessageMax) {
    errors.TooLong(meta::FieldPath(std::string(message)), bytes, kEventMessageMax);
  }
}

void ValidateCore(const CoreEvent& event, meta::FieldErrors& errors) {
  CheckEventNamespace(
      event.involved_object, event.metadata.namespace_, meta::FieldPath("involvedObject"), errors);
  if (!event.event_time.time.is_zero()) {
    CheckReport(event, "reportingComponent", "message", errors);
  }
}

void Validate(const Event& event, meta::FieldErrors& errors) {
  CoreEvent core_event;
  ToCoreEvent(event, core_event);
  CheckEventNamespace(
      event.regarding, event.metadata.namespace_, meta::FieldPath("regarding"), errors);
  // An event of the older shape has no eventTime and is shown as it is.
  const bool is_older =
      event.event_time.time.is_zero() && !event.deprecated_first_timestamp.is_zero();
  if (is_older) return;
  if (event.event_time.time.is_zero()) errors.Required(meta::FieldPath("eventTime"));
  CheckReport(core_event, "reportingController", "note", errors);
  if (event.type != kEventNormal && event.type != kEventWarning) {
    errors.Invalid(meta::FieldPath("type"), event.type, "must be Normal or Warning");
  }
}

std::optional<std::string> CoreSelectorValue(const CoreEvent& event, std::string_view selector) {
  if (selector != "source") return std::nullopt;
  return event.source.component.empty() ? event.reporting_component : event.source.component;
}

WallTime FirstSeen(const CoreEvent& event) {
  return event.first_timestamp.is_zero() ? event.event_time.time : event.first_timestamp;
}
std::string TypeCell(const CoreEvent& event) { return event.type; }
std::string ReasonCell(const CoreEvent& event) { return event.reason; }
std::string ObjectCell(const CoreEvent& event) {
  const std::string kind = ToLower(event.involved_object.kind);
  return event.involved_object.name.empty() ? kind : kind + "/" + event.involved_object.name;
}
std::string SubobjectCell(const CoreEvent& event) { return event.involved_object.field_path; }
std::string SourceCell(const CoreEvent& event) {
  const auto& source = event.source;
  const std::string& who = source.component.empty() ? event.reporting_component : source.component;
  const std::string& where = source.host.empty() ? event.reporting_instance : source.host;
  return where.empty() ? who : who + ", " + where;
}
std::string MessageCell(const CoreEvent& event) { return std::string(Trim(event.message)); }
std::string CountCell(const CoreEvent& event) {
  if (event.series) return std::to_string(event.series->count);
  return std::to_string(event.count == 0 ? 1 : event.count);
}
std::string NameCell(const CoreEvent& event) { return event.metadata.name; }

// The same cell for the other shape.
template <auto F>
auto OfView(const Event& event) {
  CoreEvent core_event;
  ToCoreEvent(event, core_event);
  return F(core_event);
}
template <auto F>
std::string CellOfView(const Event& event) {
  return OfView<F>(event);
}
template <auto F>
WallTime TimeOfView(const Event& event) {
  return OfView<F>(event);
}

enum class Shape : uint8_t { kCore, kView };

template <Shape S, auto F>
consteval auto Cell() {
  if constexpr (S == Shape::kCore) {
    return meta::Hook<F>;
  } else {
    return meta::Hook<&CellOfView<F>>;
  }
}
template <Shape S, auto F>
consteval auto Since() {
  if constexpr (S == Shape::kCore) {
    return meta::Hook<F>;
  } else {
    return meta::Hook<&TimeOfView<F>>;
  }
}

template <Shape S>
struct Columns {
  static constexpr std::array<meta::Column, 10> kAll = {{
      {.name = "Last Seen",
       .doc = "How long ago it was last seen.",
       .since = Since<S, &LastSeen>()},
      {.name = "Type", .doc = "Normal or Warning.", .cell = Cell<S, &TypeCell>()},
      {.name = "Reason", .doc = "One word for programs.", .cell = Cell<S, &ReasonCell>()},
      {.name = "Object", .doc = "What it happened to.", .cell = Cell<S, &ObjectCell>()},
      {.name = "Subobject",
       .doc = "Which part of the object.",
       .priority = 1,
       .cell = Cell<S, &SubobjectCell>()},
      {.name = "Source", .doc = "Who reports it.", .priority = 1, .cell = Cell<S, &SourceCell>()},
      {.name = "Message", .doc = "A sentence for people.", .cell = Cell<S, &MessageCell>()},
      {.name = "First Seen",
       .doc = "How long ago it was first seen.",
       .priority = 1,
       .since = Since<S, &FirstSeen>()},
      {.name = "Count",
       .doc = "How often it was seen.",
       .priority = 1,
       .cell = Cell<S, &CountCell>()},
      {.name = "Name",
       .doc = "Name of the event.",
       .priority = 1,
       .cell = Cell<S, &NameCell>(),
       .format = "name"},
  }};
};

constexpr std::string_view kShortNames[] = {"ev"};
constexpr std::string_view kCoreSelectors[] = {
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
};
constexpr std::string_view kSelectors[] = {
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
};

constexpr meta::KindView kView = {
    .stored = &kCoreEventKind,
    .to_stored = meta::Hook<&ToCoreEvent>,
    .from_stored = meta::Hook<&FromCoreEvent>,
};

}  // namespace

void ToCoreEvent(const Event& event, CoreEvent& stored) {
  stored = {
      .metadata = event.metadata,
      .involved_object = event.regarding,
      .reason = event.reason,
      .message = event.note,
      .source = event.deprecated_source,
      .first_timestamp = event.deprecated_first_timestamp,
      .last_timestamp = event.deprecated_last_timestamp,
      .count = event.deprecated_count,
      .type = event.type,
      .event_time = event.event_time,
      .action = event.action,
      .related = event.related,
      .reporting_component = event.reporting_controller,
      .reporting_instance = event.reporting_instance,
  };
  if (event.series) {
    stored.series = {.count = event.series->count,
                     .last_observed_time = event.series->last_observed_time};
  }
}

void FromCoreEvent(const CoreEvent& stored, Event& event) {
  event = {
      .metadata = stored.metadata,
      .event_time = stored.event_time,
      .reporting_controller = stored.reporting_component,
      .reporting_instance = stored.reporting_instance,
      .action = stored.action,
      .reason = stored.reason,
      .regarding = stored.involved_object,
      .related = stored.related,
      .note = stored.message,
      .type = stored.type,
      .deprecated_source = stored.source,
      .deprecated_first_timestamp = stored.first_timestamp,
      .deprecated_last_timestamp = stored.last_timestamp,
      .deprecated_count = stored.count,
  };
  if (stored.series) {
    event.series = {.count = stored.series->count,
                    .last_observed_time = stored.series->last_observed_time};
  }
}

WallTime LastSeen(const CoreEvent& event) {
  if (event.series && !event.series->last_observed_time.time.is_zero()) {
    return event.series->last_observed_time.time;
  }
  return event.last_timestamp.is_zero() ? FirstSeen(event) : event.last_timestamp;
}

constinit const meta::KindInfo kCoreEventKind = {
    .group = "",
    .version = "v1",
    .kind = "Event",
    .plural = "events",
    .singular = "event",
    .short_names = kShortNames,
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<CoreEvent>(),
    .field_selectors = kCoreSelectors,
    .columns = Columns<Shape::kCore>::kAll,
    .column_frame = meta::ColumnFrame::kNone,
    .validate = meta::Hook<&ValidateCore>,
    .selector_value = meta::Hook<&CoreSelectorValue>,
};

constinit const meta::KindInfo kEventKind = {
    .group = "events.k8s.io",
    .version = "v1",
    .kind = "Event",
    .plural = "events",
    .singular = "event",
    .short_names = kShortNames,
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<Event>(),
    .view = &kView,
    .field_selectors = kSelectors,
    .columns = Columns<Shape::kView>::kAll,
    .column_frame = meta::ColumnFrame::kNone,
    .validate = meta::Hook<&Validate>,
};

}  // namespace berth::apis::k8s
