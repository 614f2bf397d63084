// SPDX-License-Identifier: Apache-2.0
#include "apis/compute/device_names.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/strings.h"

namespace berth::apis::compute {
namespace {

constexpr std::string_view kPrefix = "od";
constexpr int kLetters = 26;

}  // namespace

std::string DeviceName(int index) {
  CHECK(index >= 0 && index < kDeviceNamesMax) << index;
  std::string name(kPrefix);
  if (index >= kLetters) name += static_cast<char>('a' + index / kLetters - 1);
  name += static_cast<char>('a' + index % kLetters);
  return name;
}

bool IsDeviceName(std::string_view name) {
  return (name.size() == 3 || name.size() == 4) &&
         std::ranges::all_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

Status AssignDeviceNames(Machine& machine) {
  std::set<std::string> taken;
  size_t missing = 0;
  for (const MachineVolume& volume : machine.spec.volumes) {
    if (volume.device && !volume.device->empty()) {
      taken.insert(*volume.device);
    } else {
      ++missing;
    }
  }
  std::vector<std::string> free;
  for (int i = 0; i < kDeviceNamesMax && free.size() < missing; ++i) {
    std::string name = DeviceName(i);
    if (!taken.contains(name)) free.push_back(std::move(name));
  }
  if (free.size() < missing) {
    const std::string why = "no device name is left for " + std::to_string(missing - free.size()) +
                            " of " + std::to_string(machine.spec.volumes.size()) +
                            " volumes, the limit is " + std::to_string(kDeviceNamesMax);
    return Status(Reason::kInvalid,
                  "machine " + Quote(machine.metadata.name) + ": " + why,
                  {{.kind = CauseKind::kTooMany, .field = "spec.volumes", .message = why}});
  }
  size_t next = 0;
  for (MachineVolume& volume : machine.spec.volumes) {
    if (!volume.device || volume.device->empty()) volume.device = free[next++];
  }
  return OkStatus();
}

}  // namespace berth::apis::compute
