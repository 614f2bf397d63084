// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/volume_classes.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "meta/quantity.h"
#include "meta/value.h"
#include "meta/yaml.h"

namespace berth::runtime {
namespace {

using meta::Value;

constexpr size_t kNameMax = 253;

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

Result<int64_t> Amount(const Value& capabilities, std::string_view key, std::string_view where) {
  const Value* const value = capabilities.Find(key);
  if (value == nullptr) {
    return BadRequest(fmt::format("{}: capabilities.{} is missing", where, key));
  }
  if (value->is_int() && value->as_int() > 0) return value->as_int();
  const Result<meta::Quantity> amount = value->is_string()
                                            ? meta::Quantity::Parse(value->as_string())
                                            : Result<meta::Quantity>(BadRequest("no amount"));
  if (!amount.ok() || amount->Sign() <= 0) {
    return BadRequest(fmt::format(
        "{}: capabilities.{}: expected an amount above 0 such as 5000 or 100Mi", where, key));
  }
  return amount->Value();
}

Result<OfferedVolumeClass> ClassOf(const Value& value, size_t index) {
  const std::string_view name = value.GetString({"name"});
  const std::string where =
      name.empty() ? fmt::format("classes[{}]", index) : fmt::format("class {}", Quote(name));
  TRY_STATUS(OnlyMembers(value, {"name", "capabilities", "format"}, where));
  if (name.empty() || name.size() > kNameMax) {
    return BadRequest(fmt::format("{}: name: expected 1 to {} characters", where, kNameMax));
  }
  OfferedVolumeClass offered;
  offered.volume_class.name = name;
  const Value* const capabilities = value.Find("capabilities");
  if (capabilities == nullptr) return BadRequest(where + ": capabilities is missing");
  TRY_STATUS(OnlyMembers(*capabilities, {"tps", "iops"}, where + ": capabilities"));
  TRY(offered.volume_class.tps, Amount(*capabilities, "tps", where));
  TRY(offered.volume_class.iops, Amount(*capabilities, "iops", where));
  if (const Value* const format = value.Find("format"); format != nullptr) {
    const auto known = format->is_string() ? DiskFormatOf(format->as_string()) : std::nullopt;
    if (!known.has_value() || *known == DiskFormat::kLuks) {
      return BadRequest(where + ": format: expected qcow2 or raw");
    }
    offered.format = *known;
  }
  return offered;
}

}  // namespace

Result<std::vector<OfferedVolumeClass>> ParseVolumeClasses(std::string_view yaml) {
  TRY(const Value root, meta::ParseYaml(yaml));
  TRY_STATUS(OnlyMembers(root, {"classes"}, "volume classes"));
  const Value* const list = root.Find("classes");
  if (list == nullptr || !list->is_array() || list->items().empty()) {
    return BadRequest("volume classes: expected a list `classes` with at least one class");
  }
  if (list->items().size() > kVolumeClassesMax) {
    return BadRequest(fmt::format(
        "volume classes: {} classes, at most {}", list->items().size(), kVolumeClassesMax));
  }
  std::vector<OfferedVolumeClass> classes;
  for (const Value& item : list->items()) {
    TRY(OfferedVolumeClass offered, ClassOf(item, classes.size()));
    if (FindClass(classes, offered.volume_class.name) != nullptr) {
      return BadRequest(fmt::format("class {} stands twice", Quote(offered.volume_class.name)));
    }
    classes.push_back(std::move(offered));
  }
  return classes;
}

const OfferedVolumeClass* FindClass(const std::vector<OfferedVolumeClass>& classes,
                                    std::string_view name) {
  for (const OfferedVolumeClass& offered : classes) {
    if (offered.volume_class.name == name) return &offered;
  }
  return nullptr;
}

}  // namespace berth::runtime
