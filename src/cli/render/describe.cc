// SPDX-License-Identifier: Apache-2.0
#include "cli/render/describe.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "cli/render/text_table.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr size_t kLabelWidth = 14;
constexpr size_t kDepthMax = 64;  // deeper than any kind; a hostile object stops here

std::string Line(std::string_view label, std::string_view text) {
  return fmt::format("{:<{}}{}\n", fmt::format("{}:", label), kLabelWidth, Printable(text));
}

std::string ScalarText(const Value& value) {
  switch (value.type()) {
    case Value::Type::kString:
      return value.as_string().empty() ? "\"\"" : Printable(value.as_string());
    case Value::Type::kArray: return "[]";
    case Value::Type::kObject: return "{}";
    default: return meta::WriteJson(value);
  }
}

bool IsScalar(const Value& value) {
  return !(value.is_object() && !value.members().empty()) &&
         !(value.is_array() && !value.items().empty());
}

// A tree as YAML would show it, with the field names of the manifest, so that what is read here can
// be written there.
void AppendTree(const Value& value, size_t indent, size_t depth, std::string& out) {
  if (depth > kDepthMax) {
    out += fmt::format("{:{}}...\n", "", indent);
    return;
  }
  if (value.is_object()) {
    for (const Value::Member& member : value.members()) {
      out += fmt::format("{:{}}{}:", "", indent, Printable(member.key));
      if (IsScalar(member.value)) {
        out += fmt::format(" {}\n", ScalarText(member.value));
      } else {
        out += "\n";
        AppendTree(member.value, member.value.is_array() ? indent : indent + 2, depth + 1, out);
      }
    }
    return;
  }
  for (const Value& item : value.items()) {
    if (IsScalar(item)) {
      out += fmt::format("{:{}}- {}\n", "", indent, ScalarText(item));
      continue;
    }
    std::string nested;
    AppendTree(item, indent + 2, depth + 1, nested);
    nested[indent] = '-';
    out += nested;
  }
}

std::string MapLines(std::string_view label, const Value* map) {
  if (map == nullptr || !map->is_object() || map->members().empty()) return Line(label, "<none>");
  std::string out;
  for (const Value::Member& member : map->members()) {
    std::string text = fmt::format("{}={}", member.key, ScalarText(member.value));
    out += out.empty() ? Line(label, text)
                       : fmt::format("{:{}}{}\n", "", kLabelWidth, Printable(text));
  }
  return out;
}

// kubectl's bookkeeping repeats the whole manifest: nobody wants to read it here.
Value ShownAnnotations(const Value* annotations) {
  Value out = Value::Object();
  if (annotations == nullptr || !annotations->is_object()) return out;
  for (const Value::Member& member : annotations->members()) {
    if (member.key != "kubectl.kubernetes.io/last-applied-configuration") {
      out.Set(member.key, member.value);
    }
  }
  return out;
}

std::string Created(std::string_view timestamp, WallTime now) {
  const auto time = ParseRfc3339(timestamp);
  if (!time.ok()) return std::string(timestamp);
  return fmt::format("{} ({} ago)", timestamp, FormatAge(now - *time));
}

std::string MetadataLines(const Value& object, WallTime now) {
  const Value empty = Value::Object();
  const Value* found = object.Find("metadata");
  const Value& metadata = found != nullptr ? *found : empty;
  std::string out = Line("Name", metadata.GetString({"name"}));
  if (const auto space = metadata.GetString({"namespace"}); !space.empty()) {
    out += Line("Namespace", space);
  }
  out += Line("Kind",
              fmt::format("{} ({})", object.GetString({"kind"}), object.GetString({"apiVersion"})));
  out += MapLines("Labels", metadata.Find("labels"));
  const Value annotations = ShownAnnotations(metadata.Find("annotations"));
  out += MapLines("Annotations", &annotations);
  out += Line("Created", Created(metadata.GetString({"creationTimestamp"}), now));
  if (const auto deleted = metadata.GetString({"deletionTimestamp"}); !deleted.empty()) {
    out += Line("Deleting", fmt::format("since {}", Created(deleted, now)));
  }
  out += Line("UID", metadata.GetString({"uid"}));
  if (const Value* owners = metadata.Find("ownerReferences");
      owners != nullptr && owners->is_array()) {
    for (const Value& owner : owners->items()) {
      out +=
          Line("Owner", fmt::format("{}/{}", owner.GetString({"kind"}), owner.GetString({"name"})));
    }
  }
  if (const Value* finalizers = metadata.Find("finalizers");
      finalizers != nullptr && finalizers->is_array()) {
    for (const Value& finalizer : finalizers->items()) {
      out += Line("Finalizer", ScalarText(finalizer));
    }
  }
  return out;
}

std::string Indented(const std::string& text) {
  std::string out;
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.empty()) out += fmt::format("  {}\n", line);
  }
  return out;
}

std::string ConditionTable(const Value& conditions, WallTime now) {
  TextTable table({"Type", "Status", "Since", "Reason", "Message"});
  for (const Value& condition : conditions.items()) {
    std::string since = "<unknown>";
    const auto changed = ParseRfc3339(condition.GetString({"lastTransitionTime"}));
    if (changed.ok()) since = FormatAge(now - *changed);
    table.AddRow({std::string(condition.GetString({"type"})),
                  std::string(condition.GetString({"status"})),
                  std::move(since),
                  std::string(condition.GetString({"reason"})),
                  std::string(condition.GetString({"message"}))});
  }
  return table.Flush();
}

// Values of Secrets are base64 in JSON; only their size is shown.
Value SecretSizes(const Value& data) {
  Value out = Value::Object();
  for (const Value::Member& member : data.members()) {
    const auto bytes =
        member.value.is_string() ? Base64Decode(member.value.as_string()) : std::nullopt;
    out.Set(member.key, fmt::format("{} bytes", bytes ? bytes->size() : 0));
  }
  return out;
}

std::string SectionLines(const Value& object, WallTime now) {
  const bool is_secret =
      object.GetString({"kind"}) == "Secret" && object.GetString({"apiVersion"}) == "v1";
  std::string out;
  if (!object.is_object()) return out;
  for (const Value::Member& member : object.members()) {
    if (member.key == "apiVersion" || member.key == "kind" || member.key == "metadata") continue;
    std::string title = Printable(member.key);
    if (!title.empty() && title[0] >= 'a' && title[0] <= 'z')
      title[0] = static_cast<char>(title[0] - 32);
    Value value = member.value;
    if (is_secret && (member.key == "data" || member.key == "stringData") && value.is_object()) {
      value = SecretSizes(value);
    }
    if (IsScalar(value)) {
      out += Line(title, ScalarText(value));
      continue;
    }
    Value conditions;
    if (Value* list = value.Find("conditions"); list != nullptr && list->is_array()) {
      conditions = std::move(*list);
      value.Remove("conditions");
    }
    out += fmt::format("{}:\n", title);
    AppendTree(value, 2, 0, out);
    if (conditions.is_array() && !conditions.items().empty()) {
      out += fmt::format("Conditions:\n{}", Indented(ConditionTable(conditions, now)));
    }
  }
  return out;
}

std::string_view FirstOf(const Value& event,
                         std::initializer_list<std::initializer_list<std::string_view>> paths) {
  for (const auto& path : paths) {
    if (const auto text = event.GetString(path); !text.empty()) return text;
  }
  return "";
}

int64_t CountOf(const Value& event) {
  for (const auto& path : {std::initializer_list<std::string_view>{"series", "count"},
                           std::initializer_list<std::string_view>{"count"}}) {
    const Value* count = event.Get(path);
    if (count != nullptr && count->type() == Value::Type::kInt) return count->as_int();
  }
  return 1;
}

std::string EventTable(const std::vector<Value>& events, WallTime now) {
  std::multimap<WallTime, EventLine> lines;  // equal times stay in order
  for (const Value& event : events) {
    EventLine line = EventLineOf(event, now);
    lines.emplace(line.time, std::move(line));
  }
  TextTable table({"Type", "Reason", "Age", "From", "Message"});
  for (const auto& [time, line] : lines) {
    table.AddRow({line.type, line.reason, line.last_seen, line.source, line.message});
  }
  return table.Flush();
}

}  // namespace

EventLine EventLineOf(const Value& event, WallTime now) {
  EventLine out;
  const std::string_view last = FirstOf(event,
                                        {{"series", "lastObservedTime"},
                                         {"lastTimestamp"},
                                         {"eventTime"},
                                         {"metadata", "creationTimestamp"}});
  const auto time = ParseRfc3339(last);
  if (time.ok()) out.time = *time;
  out.last_seen = time.ok() ? FormatAge(now - *time) : "<unknown>";
  if (const int64_t count = CountOf(event); count > 1) {
    out.last_seen += fmt::format(" (x{})", count);
  }
  out.type = event.GetString({"type"});
  out.reason = event.GetString({"reason"});
  out.object = fmt::format("{}/{}",
                           ToLower(event.GetString({"involvedObject", "kind"})),
                           event.GetString({"involvedObject", "name"}));
  out.source = FirstOf(event, {{"reportingComponent"}, {"source", "component"}});
  out.message = Trim(event.GetString({"message"}));
  return out;
}

std::string DescribeObject(const Value& object, const std::vector<Value>& events, WallTime now) {
  std::string out = MetadataLines(object, now);
  out += SectionLines(object, now);
  if (events.empty()) return out + Line("Events", "<none>");
  return out + fmt::format("Events:\n{}", Indented(EventTable(events, now)));
}

}  // namespace berth::cli
