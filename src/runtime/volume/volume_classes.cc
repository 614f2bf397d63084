// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/volume_classes.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "meta/value.h"
#include "runtime/volume/class_file.h"

namespace berth::runtime {
namespace {

using meta::Value;

Result<int64_t> Amount(const Value& capabilities, std::string_view key, std::string_view where) {
  const Value* const value = capabilities.Find(key);
  if (value == nullptr) {
    return BadRequest(fmt::format("{}: capabilities.{} is missing", where, key));
  }
  return CapabilityAmount(*value, key, where, "an amount above 0 such as 5000 or 100Mi");
}

Result<OfferedVolumeClass> ClassOf(const Value& value, size_t index) {
  const std::string where = ClassWhere(value, index);
  TRY_STATUS(OnlyMembers(value, {"name", "capabilities", "format"}, where));
  OfferedVolumeClass offered;
  TRY(offered.volume_class.name, ClassName(value, where));
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
  TRY(const Value list, ReadClassList(yaml, "volume classes", kVolumeClassesMax));
  std::vector<OfferedVolumeClass> classes;
  for (const Value& item : list.items()) {
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
