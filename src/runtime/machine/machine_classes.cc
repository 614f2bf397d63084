// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/machine_classes.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/strings.h"
#include "meta/value.h"
#include "runtime/volume/class_file.h"

namespace berth::runtime {
namespace {

using meta::Value;

constexpr std::string_view kExpected = "a whole amount above 0 such as 2 or 4Gi";

Result<OfferedMachineClass> ClassOf(const Value& value, size_t index) {
  const std::string where = ClassWhere(value, index);
  TRY_STATUS(OnlyMembers(value, {"name", "capabilities", "firmware"}, where));
  OfferedMachineClass offered;
  TRY(offered.machine_class.name, ClassName(value, where));
  const Value* const capabilities = value.Find("capabilities");
  if (capabilities == nullptr || !capabilities->is_object()) {
    return BadRequest(where + ": capabilities: expected a mapping");
  }
  for (const auto& member : capabilities->members()) {
    TRY(const int64_t amount, CapabilityAmount(member.value, member.key, where, kExpected));
    offered.machine_class.capabilities.emplace(member.key, amount);
  }
  for (const std::string_view needed : {iri::kCpu, iri::kMemory}) {
    if (!offered.machine_class.capabilities.contains(needed)) {
      return BadRequest(fmt::format("{}: capabilities.{} is missing", where, needed));
    }
  }
  if (const Value* const firmware = value.Find("firmware"); firmware != nullptr) {
    const std::string_view word = value.GetString({"firmware"});
    if (word != "bios" && word != "efi") {
      return BadRequest(where + ": firmware: expected bios or efi");
    }
    if (word == "efi") offered.firmware = OfferedMachineClass::Firmware::kEfi;
  }
  return offered;
}

int64_t AmountOf(const iri::ResourceVector& amounts, const std::string& name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

}  // namespace

Result<std::vector<OfferedMachineClass>> ParseMachineClasses(std::string_view yaml) {
  TRY(const Value list, ReadClassList(yaml, "machine classes", kMachineClassesMax));
  std::vector<OfferedMachineClass> classes;
  for (const Value& item : list.items()) {
    TRY(OfferedMachineClass offered, ClassOf(item, classes.size()));
    if (FindClass(classes, offered.machine_class.name) != nullptr) {
      return BadRequest(fmt::format("class {} stands twice", Quote(offered.machine_class.name)));
    }
    classes.push_back(std::move(offered));
  }
  return classes;
}

const OfferedMachineClass* FindClass(const std::vector<OfferedMachineClass>& classes,
                                     std::string_view name) {
  for (const OfferedMachineClass& offered : classes) {
    if (offered.machine_class.name == name) return &offered;
  }
  return nullptr;
}

int64_t PromisedAmount(int64_t have, int64_t reserve, double ratio) {
  const double promised = static_cast<double>(std::max<int64_t>(have - reserve, 0)) * ratio;
  constexpr auto kMost = static_cast<double>(std::numeric_limits<int64_t>::max() / 2);
  return static_cast<int64_t>(std::min(promised, kMost));
}

int64_t TimesIn(const iri::ResourceVector& needs, const iri::ResourceVector& total) {
  int64_t times = std::numeric_limits<int32_t>::max();
  for (const auto& [name, amount] : needs) {
    if (amount > 0) times = std::min(times, AmountOf(total, name) / amount);
  }
  return times;
}

Status CheckFits(const iri::ResourceVector& needs,
                 const iri::ResourceVector& used,
                 const iri::ResourceVector& total) {
  for (const auto& [name, amount] : needs) {
    const int64_t left = AmountOf(total, name) - AmountOf(used, name);
    if (amount <= left) continue;
    return {Reason::kTooManyRequests,
            fmt::format("no room: {} of {} needed, {} of {} left",
                        amount,
                        name,
                        std::max<int64_t>(left, 0),
                        AmountOf(total, name))};
  }
  return OkStatus();
}

void AddTo(iri::ResourceVector& sum, const iri::ResourceVector& more) {
  for (const auto& [name, amount] : more) sum[name] += amount;
}

}  // namespace berth::runtime
