// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/class_file.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "meta/quantity.h"
#include "meta/yaml.h"

namespace berth::runtime {
namespace {

using meta::Value;

constexpr size_t kNameMax = 253;

}  // namespace

Status OnlyMembers(const Value& value,
                   std::initializer_list<std::string_view> known,
                   std::string_view where) {
  if (!value.is_object()) {
    return BadRequest(fmt::format("{}: expected a mapping, got {}", where, value.type_name()));
  }
  for (const auto& member : value.members()) {
    if (std::ranges::find(known, member.key) == known.end()) {
      return BadRequest(fmt::format("{}: unknown field {}", where, Quote(member.key)));
    }
  }
  return OkStatus();
}

Result<Value> ReadClassList(std::string_view yaml, std::string_view what, size_t max) {
  TRY(const Value root, meta::ParseYaml(yaml));
  TRY_STATUS(OnlyMembers(root, {"classes"}, what));
  const Value* const list = root.Find("classes");
  if (list == nullptr || !list->is_array() || list->items().empty()) {
    return BadRequest(fmt::format("{}: expected a list `classes` with at least one class", what));
  }
  if (list->items().size() > max) {
    return BadRequest(fmt::format("{}: {} classes, at most {}", what, list->items().size(), max));
  }
  return *list;
}

std::string ClassWhere(const Value& value, size_t index) {
  const std::string_view name = value.GetString({"name"});
  return name.empty() ? fmt::format("classes[{}]", index) : fmt::format("class {}", Quote(name));
}

Result<std::string> ClassName(const Value& value, std::string_view where) {
  const std::string_view name = value.GetString({"name"});
  if (name.empty() || name.size() > kNameMax) {
    return BadRequest(fmt::format("{}: name: expected 1 to {} characters", where, kNameMax));
  }
  return std::string(name);
}

Result<int64_t> CapabilityAmount(const Value& value,
                                 std::string_view key,
                                 std::string_view where,
                                 std::string_view expected) {
  if (value.is_int() && value.as_int() > 0) return value.as_int();
  const Result<meta::Quantity> amount = value.is_string()
                                            ? meta::Quantity::Parse(value.as_string())
                                            : Result<meta::Quantity>(BadRequest("no amount"));
  if (!amount.ok() || amount->Sign() <= 0) {
    return BadRequest(fmt::format("{}: capabilities.{}: expected {}", where, key, expected));
  }
  return amount->Value();
}

}  // namespace berth::runtime
