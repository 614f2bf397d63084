// SPDX-License-Identifier: Apache-2.0
#include "meta/apply/fields_v1.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "meta/json.h"

namespace berth::meta {

namespace {

bool IsScalar(const Value& value) {
  return value.is_string() || value.is_number() || value.is_bool();
}

Status Malformed(std::string_view element, std::string_view why) {
  return BadRequest("fieldsV1: element " + Quote(element.substr(0, 128)) + " " + std::string(why));
}

// An element as others write it, in our form.
Result<std::string> Canonical(const std::string& element) {
  if (element.starts_with("f:")) return element;
  const std::string_view rest = element.size() < 2 ? "" : std::string_view(element).substr(2);
  if (element.starts_with("i:")) {
    if (!ParseUint(rest)) return Malformed(element, "is no index");
    return element;
  }
  const bool is_keys = element.starts_with("k:");
  if (!is_keys && !element.starts_with("v:")) {
    return Malformed(element, "does not begin with f:, k:, v: or i:");
  }
  const auto value = ParseJson(rest);
  if (!value.ok()) return Malformed(element, "is not JSON");
  if (!is_keys) {
    if (!IsScalar(*value)) return Malformed(element, "is no scalar");
    return ItemElement(*value);
  }
  const bool has_keys = value->is_object() && !value->members().empty() &&
                        std::ranges::all_of(value->members(), [](const Value::Member& member) {
                          return IsScalar(member.value);
                        });
  if (!has_keys) return Malformed(element, "has no scalar keys");
  return KeysElement(*value);
}

}  // namespace

std::string KeysElement(const Value& keys) {
  std::vector<const Value::Member*> sorted;
  for (const auto& member : keys.members()) sorted.push_back(&member);
  std::ranges::sort(sorted, {}, [](const Value::Member* member) { return member->key; });
  std::string element = "k:{";
  for (const Value::Member* member : sorted) {
    if (element.back() != '{') element += ',';
    AppendJsonString(member->key, element);
    element += ':';
    WriteJson(member->value, element);
  }
  element += '}';
  return element;
}

std::string ItemElement(const Value& item) {
  std::string element = "v:";
  WriteJson(item, element);
  return element;
}

// Depth is bounded by whoever parsed the JSON.
class FieldsReader {
 public:
  Status Read(const Value& fields, FieldSet& set) {
    for (const auto& [key, below] : fields.members()) {
      if (key == ".") continue;
      if (!below.is_object()) return Malformed(key, "has no object of what is below it");
      TRY(const std::string element, Canonical(key));
      FieldSet::Node& node = set.nodes_[element];
      node.is_member = node.is_member || below.members().empty() || below.Find(".") != nullptr;
      if (node.is_member && ++paths_ > kMaxOwnedFields) {
        return BadRequest("fieldsV1: more than " + std::to_string(kMaxOwnedFields) + " fields");
      }
      TRY_STATUS(Read(below, node.below));
    }
    return OkStatus();
  }

 private:
  size_t paths_ = 0;
};

class FieldsWriter {
 public:
  static Value Write(const FieldSet& set) {
    std::vector<Value::Member> members;
    members.reserve(set.nodes_.size());
    for (const auto& [element, node] : set.nodes_) {
      Value below = Write(node.below);
      if (node.is_member && !node.below.empty()) {
        auto& list = below.members();
        list.insert(list.begin(), {".", Value::Object()});
      }
      members.push_back({element, std::move(below)});
    }
    return Value::Object(std::move(members));
  }
};

Result<FieldSet> ReadFieldsV1(const Value& fields) {
  if (!fields.is_object()) {
    return BadRequest("fieldsV1: expected an object, got " + std::string(fields.type_name()));
  }
  FieldSet set;
  TRY_STATUS(FieldsReader().Read(fields, set));
  return set;
}

Value WriteFieldsV1(const FieldSet& set) { return FieldsWriter::Write(set); }

}  // namespace berth::meta
