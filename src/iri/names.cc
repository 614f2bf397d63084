// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>
#include <string_view>

#include "iri/bucket.h"
#include "iri/host.h"
#include "iri/machine.h"
#include "iri/volume.h"

namespace berth::iri {

namespace {

using std::string_view;

constexpr std::array<string_view, 2> kPowerNames = {"On", "Off"};
constexpr std::array<string_view, 6> kMachineStateNames = {
    "Pending", "Running", "Suspended", "Terminated", "Terminating", "Stopped"};
constexpr std::array<string_view, 2> kAttachmentStateNames = {"Pending", "Attached"};
constexpr std::array<string_view, 3> kVolumeStateNames = {"Pending", "Available", "Error"};
constexpr std::array<string_view, 3> kSnapshotStateNames = {"Pending", "Ready", "Failed"};
constexpr std::array<string_view, 3> kBucketStateNames = {"Pending", "Available", "Error"};
constexpr std::array<string_view, 4> kObjectKindNames = {
    "Machine", "Volume", "Bucket", "VolumeSnapshot"};
constexpr std::array<string_view, 4> kChangeTypeNames = {"Resync", "Created", "Changed", "Deleted"};

template <class Enum>
string_view NameIn(std::span<const string_view> names, Enum value) {
  const auto index = static_cast<size_t>(value);
  return index < names.size() ? names[index] : "Unknown";
}

}  // namespace

string_view PowerName(Power power) { return NameIn(kPowerNames, power); }
string_view MachineStateName(MachineState state) { return NameIn(kMachineStateNames, state); }
string_view AttachmentStateName(AttachmentState state) {
  return NameIn(kAttachmentStateNames, state);
}
string_view VolumeStateName(VolumeState state) { return NameIn(kVolumeStateNames, state); }
string_view SnapshotStateName(SnapshotState state) { return NameIn(kSnapshotStateNames, state); }
string_view BucketStateName(BucketState state) { return NameIn(kBucketStateNames, state); }
string_view ObjectKindName(ObjectKind kind) { return NameIn(kObjectKindNames, kind); }
string_view ChangeTypeName(ChangeType type) { return NameIn(kChangeTypeNames, type); }

}  // namespace berth::iri
