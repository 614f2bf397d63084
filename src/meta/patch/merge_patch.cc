// SPDX-License-Identifier: Apache-2.0
// Merge patch, RFC 7386.
#include <utility>

#include "meta/patch/internal/member_index.h"
#include "meta/patch/patch.h"

namespace berth::meta {
namespace {

using internal::MemberIndex;

Value Merge(Value target, const Value& patch) {
  if (!patch.is_object()) return patch;
  if (!target.is_object()) target = Value::Object();
  MemberIndex index(target);
  for (const auto& [key, value] : patch.members()) {
    const size_t at = index.Find(key);
    if (value.is_null()) {
      if (at != MemberIndex::kNone) index.Remove(at);
    } else if (at == MemberIndex::kNone) {
      index.Append(key, Merge(Value(), value));
    } else {
      Value& current = index.at(at);
      current = Merge(std::move(current), value);
    }
  }
  index.Finish();
  return target;
}

}  // namespace

Result<Value> ApplyMergePatch(const Value& current, const Value& patch) {
  if (!patch.is_object()) {
    return BadRequest("a merge patch must be an object, not " + std::string(patch.type_name()));
  }
  return Merge(current, patch);
}

Value ThreeWayJsonMergePatch(const Value& original, const Value& modified, const Value& current) {
  Value patch = Value::Object();
  const auto objects_of = [](const Value* value) {
    return value != nullptr && value->is_object() ? *value : Value::Object();
  };
  Value now = objects_of(&current);
  Value before = objects_of(&original);
  Value wanted = objects_of(&modified);
  MemberIndex now_index(now);
  MemberIndex before_index(before);
  MemberIndex wanted_index(wanted);
  for (const auto& [key, value] : wanted.members()) {
    const size_t at = now_index.Find(key);
    if (at == MemberIndex::kNone) {
      if (!value.is_null()) patch.members().push_back({key, value});
    } else if (value.is_object() && now_index.at(at).is_object()) {
      const size_t old = before_index.Find(key);
      Value part = ThreeWayJsonMergePatch(
          old == MemberIndex::kNone ? Value() : before_index.at(old), value, now_index.at(at));
      if (!part.members().empty()) patch.members().push_back({key, std::move(part)});
    } else if (!(value == now_index.at(at))) {
      patch.members().push_back({key, value});
    }
  }
  for (const auto& [key, value] : before.members()) {
    if (wanted_index.Find(key) == MemberIndex::kNone && now_index.Find(key) != MemberIndex::kNone) {
      patch.members().push_back({key, Value()});
    }
  }
  return patch;
}

}  // namespace berth::meta
