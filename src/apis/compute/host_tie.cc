// SPDX-License-Identifier: Apache-2.0
#include "apis/compute/host_tie.h"

#include <algorithm>
#include <utility>

#include "apis/storage/volume_pool.h"

namespace berth::apis::compute {
namespace {

constexpr std::string_view kFalse = "False";
constexpr std::string_view kUnknown = "Unknown";

bool IsOnHost(const MachineVolume& disk) { return disk.local_disk || disk.empty_disk; }

// "" for a disk of the host.
std::string VolumeNameOf(const Machine& machine, const MachineVolume& disk) {
  if (disk.volume_ref) return disk.volume_ref->name;
  return disk.ephemeral ? machine.metadata.name + '-' + disk.name : std::string();
}

auto FindMovable(auto& conditions) {
  return std::ranges::find_if(
      conditions, [](const auto& item) { return item.type == core::kMovableCondition; });
}

// "" if there is no such condition.
std::string_view MovableStatus(const Machine& machine) {
  const auto found = FindMovable(machine.status.conditions);
  return found == machine.status.conditions.end() ? std::string_view() : found->status;
}

bool IsBound(const Machine& machine) {
  return machine.status.placement && !machine.status.placement->pool_uid.empty();
}

bool Erase(Machine& machine) {
  return std::erase_if(machine.status.conditions,
                       [](const auto& item) { return item.type == core::kMovableCondition; }) > 0;
}

bool Put(Machine& machine, MachineCondition condition, WallTime now) {
  auto& conditions = machine.status.conditions;
  auto found = FindMovable(conditions);
  if (found == conditions.end()) found = conditions.emplace(conditions.end());
  condition.type = core::kMovableCondition;
  condition.last_transition_time = found->status == condition.status
                                       ? found->last_transition_time
                                       : WallTime::FromSeconds(now.seconds());
  if (*found == condition) return false;
  *found = std::move(condition);
  return true;
}

}  // namespace

std::vector<std::string> VolumesOf(const Machine& machine) {
  std::vector<std::string> names;
  for (const MachineVolume& disk : machine.spec.volumes) {
    std::string name = VolumeNameOf(machine, disk);
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

std::string HostTieOf(const Machine& machine, const VolumeReach& reach) {
  for (const MachineVolume& disk : machine.spec.volumes) {
    if (IsOnHost(disk)) return "its disk " + disk.name + " is on this host only";
    const std::string volume = VolumeNameOf(machine, disk);
    if (!volume.empty() && reach(volume) == storage::kReachHost) {
      return "its volume " + volume + " can be reached from this host only";
    }
  }
  return {};
}

// Disks of the host are seen at once; volumes are, once somebody has looked where they are.
bool DiesWithContact(const Machine& machine) {
  return core::AsksToMove(machine.spec.placement) &&
         std::ranges::none_of(machine.spec.volumes, IsOnHost) && MovableStatus(machine) != kFalse;
}

bool MovesOnPoolLoss(const Machine& machine) {
  return DiesWithContact(machine) && MovableStatus(machine) != kUnknown;
}

bool SetMovable(Machine& machine, std::string_view tie, WallTime now) {
  const bool asks = core::AsksToMove(machine.spec.placement);
  if (asks && !tie.empty()) {
    return Put(machine,
               {.type = {},
                .status = std::string(kFalse),
                .reason = std::string(core::kReasonHostLocalState),
                .message = std::string(tie) +
                           ": if its host is lost it is kept, as with Keep, and not moved",
                .last_transition_time = {}},
               now);
  }
  if (!asks || !IsBound(machine)) return Erase(machine);
  if (MovableStatus(machine) != kFalse) return false;
  return Put(machine,
             {.type = {},
              .status = std::string(kUnknown),
              .reason = std::string(core::kReasonHostNotTold),
              .message = "what tied it to its host is gone; it may be moved once its host knows",
              .last_transition_time = {}},
             now);
}

void NoteNewWish(Machine& machine, const Machine& before) {
  const bool is_new = core::AsksToMove(machine.spec.placement) &&
                      !core::AsksToMove(before.spec.placement) && IsBound(machine);
  if (!is_new || MovableStatus(machine) == kFalse) return;
  // The time is the binding's: a pure rule has no clock, and the host's answer ends it soon.
  Put(machine,
      {.type = {},
       .status = std::string(kUnknown),
       .reason = std::string(core::kReasonHostNotTold),
       .message = "it may be moved once its host knows",
       .last_transition_time = {}},
      machine.status.placement->bound_time);
}

bool HostWasTold(Machine& machine) { return MovableStatus(machine) == kUnknown && Erase(machine); }

bool HasMovableCondition(const Machine& machine) { return !MovableStatus(machine).empty(); }

}  // namespace berth::apis::compute
