// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/last_applied.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "meta/json.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kAnnotation = "kubectl.kubernetes.io/last-applied-configuration";

Value Sorted(const Value& value) {
  if (value.is_array()) {
    Value out = Value::Array();
    for (const Value& item : value.items()) out.items().push_back(Sorted(item));
    return out;
  }
  if (!value.is_object()) return value;
  Value out = Value::Object();
  for (const Value::Member& member : value.members()) {
    out.members().push_back({.key = member.key, .value = Sorted(member.value)});
  }
  std::ranges::sort(out.members(), {}, &Value::Member::key);
  return out;
}

// Go's encoder writes these characters escaped; in JSON they only stand inside strings.
std::string EscapedAsGo(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  }
  return out;
}

Value& AnnotationsOf(Value& object) {
  Value* metadata = object.Find("metadata");
  if (metadata == nullptr || !metadata->is_object()) {
    metadata = &object.Set("metadata", Value::Object());
  }
  Value* annotations = metadata->Find("annotations");
  if (annotations == nullptr || !annotations->is_object()) {
    annotations = &metadata->Set("annotations", Value::Object());
  }
  return *annotations;
}

}  // namespace

Value WithLastApplied(const Value& manifest) {
  Value out = manifest;
  AnnotationsOf(out).Remove(kAnnotation);
  std::string text = EscapedAsGo(meta::WriteJson(Sorted(out)));
  text += '\n';
  AnnotationsOf(out).Set(kAnnotation, std::move(text));
  return out;
}

void ForgetLastApplied(Value& object) {
  if (!HasLastApplied(object)) return;
  Value& annotations = AnnotationsOf(object);
  annotations.Remove(kAnnotation);
  if (annotations.members().empty()) object.Find("metadata")->Remove("annotations");
}

bool HasLastApplied(const Value& object) {
  return !object.GetString({"metadata", "annotations", kAnnotation}).empty();
}

Value LastApplied(const Value& object) {
  auto parsed = meta::ParseJson(object.GetString({"metadata", "annotations", kAnnotation}));
  return parsed.ok() && parsed->is_object() ? *std::move(parsed) : Value::Object();
}

}  // namespace berth::cli
