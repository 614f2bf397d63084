// SPDX-License-Identifier: Apache-2.0
#include "gateway/rules/status_apply.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "apis/compute/host_tie.h"
#include "apis/compute/machine.h"
#include "apis/core/reservation.h"
#include "apis/placement.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_snapshot.h"
#include "gateway/rules/limits.h"
#include "meta/names.h"

namespace berth::gateway {
namespace {

namespace core = apis::core;
using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::storage::Bucket;
using apis::storage::kVolumeKind;
using apis::storage::kVolumeSnapshotKind;
using apis::storage::Volume;
using apis::storage::VolumeSnapshot;

constexpr std::array<std::string_view, 5> kMachineStates = {
    "Pending", "Running", "Shutdown", "Terminated", "Terminating"};
constexpr std::array<std::string_view, 3> kStorageStates = {"Pending", "Available", "Error"};
constexpr std::array<std::string_view, 3> kSnapshotStates = {"Pending", "Ready", "Failed"};
constexpr std::array<std::string_view, 3> kStatuses = {"True", "False", "Unknown"};

// What the server says of objects, whatever hosts say.
constexpr std::array<std::string_view, 3> kOwnConditions = {
    core::kScheduledCondition, core::kReleasedCondition, core::kMovableCondition};

bool IsOneOf(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

WallTime Seconds(WallTime now) { return WallTime::FromSeconds(now.seconds()); }

// Assigns and says whether that made a difference.
template <class T, class U>
bool Set(T& to, U&& value) {
  if (to == value) return false;
  to = std::forward<U>(value);
  return true;
}

// Conditions that the report names are as it says; those of others (Scheduled) stay.
template <class Conditions>
bool ApplyConditions(const agent::ObjectStatus& report, WallTime now, Conditions& conditions) {
  bool changed = false;
  size_t count = 0;
  for (const agent::Condition& said : report.conditions()) {
    if (++count > kConditionsMax) break;
    if (IsOneOf(kOwnConditions, said.type()) || said.type().size() > kWordMax ||
        !meta::IsQualifiedName(said.type()) || !IsOneOf(kStatuses, said.status())) {
      continue;
    }
    auto found = std::ranges::find_if(conditions,
                                      [&](const auto& item) { return item.type == said.type(); });
    if (found == conditions.end()) {
      if (conditions.size() >= kConditionsMax * 2) continue;
      found = conditions.emplace(conditions.end());
      found->type = said.type();
    }
    if (found->status != said.status()) {
      found->status = said.status();
      found->last_transition_time = Seconds(now);
      changed = true;
    }
    changed |= Set(found->reason, CleanText(said.reason(), kWordMax));
    changed |= Set(found->message, CleanText(said.message(), kTextMax));
  }
  return changed;
}

// Also parts that the spec does not name any more: the guest has them until the host says that it
// has not. What a part refers to is what the spec said when its handle was first reported.
template <class Status, class Spec, class RefOf>
bool ApplyParts(const google::protobuf::RepeatedPtrField<agent::PartStatus>& parts,
                const std::vector<Spec>& specs,
                WallTime now,
                std::vector<Status>& statuses,
                RefOf ref_of) {
  std::vector<Status> fresh;
  std::set<std::string_view> seen;
  for (const agent::PartStatus& part : parts) {
    if (fresh.size() >= kPartsMax) break;
    const auto spec =
        std::ranges::find_if(specs, [&](const Spec& item) { return item.name == part.name(); });
    const std::string name = CleanText(part.name(), kWordMax);
    if (name != part.name() || !seen.insert(part.name()).second) continue;
    Status status;
    const auto before =
        std::ranges::find_if(statuses, [&](const Status& item) { return item.name == name; });
    if (before != statuses.end()) status = *before;
    status.name = name;
    const bool is_other = Set(status.handle, CleanText(part.handle(), kWordMax * 2));
    const std::string state = part.state() == "Attached" ? "Attached" : "Pending";
    if (status.state != state) status.last_state_transition_time = Seconds(now);
    status.state = state;
    if (spec != specs.end() && (is_other || before == statuses.end())) ref_of(*spec, status);
    fresh.push_back(std::move(status));
  }
  return Set(statuses, std::move(fresh));
}

bool ApplyMachine(const agent::ObjectStatus& report, WallTime now, Machine& machine) {
  auto& status = machine.status;
  bool changed = Set(status.machine_id, CleanText(report.runtime_id(), kWordMax * 2));
  if (IsOneOf(kMachineStates, report.state())) changed |= Set(status.state, report.state());
  // A generation that does not exist yet cannot have been seen.
  const int64_t seen =
      std::clamp<int64_t>(report.observed_generation(), 0, machine.metadata.generation);
  changed |= Set(status.observed_generation, seen);
  if (report.leased()) changed |= apis::compute::HostWasTold(machine);
  changed |= ApplyConditions(report, now, status.conditions);
  changed |= ApplyParts(report.volumes(),
                        machine.spec.volumes,
                        now,
                        status.volumes,
                        [&](const auto& spec, auto& out) {
                          if (spec.volume_ref) out.volume_ref = *spec.volume_ref;
                          if (spec.ephemeral)
                            out.volume_ref.name = machine.metadata.name + "-" + spec.name;
                        });
  changed |= ApplyParts(report.network_interfaces(),
                        machine.spec.network_interfaces,
                        now,
                        status.network_interfaces,
                        [&](const auto& spec, auto& out) {
                          if (spec.network_interface_ref)
                            out.network_interface_ref = *spec.network_interface_ref;
                          if (spec.ephemeral) {
                            out.network_interface_ref.name =
                                machine.metadata.name + "-" + spec.name;
                          }
                        });
  return changed;
}

bool ApplyAccess(const agent::ObjectStatus& report, Volume& volume) {
  if (!report.has_access() || report.access().driver().empty() ||
      report.access().handle().empty()) {
    return false;
  }
  apis::storage::VolumeAccess access;
  access.driver = CleanText(report.access().driver(), kWordMax);
  access.handle = CleanText(report.access().handle(), kWordMax * 2);
  access.volume_attributes = CleanFacts(report.access().attributes());
  if (!AccessSecretData(report).empty()) {
    access.secret_ref = core::LocalObjectReference{.name = AccessSecretName(volume.metadata.uid)};
  }
  const auto& before = volume.status.access;
  if (before && before->driver == access.driver && before->handle == access.handle &&
      before->volume_attributes == access.volume_attributes &&
      before->secret_ref == access.secret_ref) {
    return false;
  }
  volume.status.access = std::move(access);
  return true;
}

bool ApplyVolume(const agent::ObjectStatus& report, WallTime now, Volume& volume) {
  auto& status = volume.status;
  bool changed = Set(status.volume_id, CleanText(report.runtime_id(), kWordMax * 2));
  if (IsOneOf(kStorageStates, report.state()) && Set(status.state, report.state())) {
    status.last_state_transition_time = Seconds(now);
    changed = true;
  }
  changed |= ApplyConditions(report, now, status.conditions);
  changed |= ApplyAccess(report, volume);
  if (report.storage_bytes() > 0) {
    const meta::Quantity size(report.storage_bytes(), meta::Quantity::Format::kBinarySi);
    changed |= Set(status.resources[std::string(core::kStorage)], size);
  }
  return changed;
}

bool ApplySnapshot(const agent::ObjectStatus& report, WallTime now, VolumeSnapshot& snapshot) {
  auto& status = snapshot.status;
  bool changed = Set(status.snapshot_id, CleanText(report.runtime_id(), kWordMax * 2));
  if (IsOneOf(kSnapshotStates, report.state()) && Set(status.state, report.state())) {
    status.last_state_transition_time = Seconds(now);
    changed = true;
  }
  changed |= ApplyConditions(report, now, status.conditions);
  if (report.storage_bytes() > 0) {
    const meta::Quantity size(report.storage_bytes(), meta::Quantity::Format::kBinarySi);
    changed |= Set(status.size, std::optional(size));
  }
  return changed;
}

bool ApplyBucket(const agent::ObjectStatus& report, WallTime now, Bucket& bucket) {
  auto& status = bucket.status;
  bool changed = Set(status.bucket_id, CleanText(report.runtime_id(), kWordMax * 2));
  if (IsOneOf(kStorageStates, report.state()) && Set(status.state, report.state())) {
    status.last_state_transition_time = Seconds(now);
    changed = true;
  }
  changed |= ApplyConditions(report, now, status.conditions);
  if (!report.bucket_endpoint().empty() || !AccessSecretData(report).empty()) {
    apis::storage::BucketAccess access;
    access.endpoint = CleanText(report.bucket_endpoint(), kWordMax * 2);
    if (!AccessSecretData(report).empty()) {
      access.secret_ref = core::LocalObjectReference{.name = AccessSecretName(bucket.metadata.uid)};
    }
    std::optional<apis::storage::BucketAccess> fresh(std::move(access));
    changed |= Set(status.access, std::move(fresh));
  }
  return changed;
}

}  // namespace

bool MayReport(const meta::Object& object,
               const std::string& pool_uid,
               uint64_t placement,
               uint64_t report_incarnation,
               uint64_t incarnation) {
  const auto& bound = apis::PlacementOf(object);
  return bound && !bound->pool_uid.empty() && bound->pool_uid == pool_uid &&
         static_cast<uint64_t>(bound->epoch) == placement && report_incarnation == incarnation;
}

std::string AccessSecretName(const std::string& volume_uid) { return "access-" + volume_uid; }

bool ApplyReport(const agent::ObjectStatus& report, WallTime now, meta::Object& object) {
  if (report.kind() != object.kind().kind) return false;
  if (&object.kind() == &kMachineKind) return ApplyMachine(report, now, object.as<Machine>());
  if (&object.kind() == &kVolumeKind) return ApplyVolume(report, now, object.as<Volume>());
  if (&object.kind() == &kVolumeSnapshotKind) {
    return ApplySnapshot(report, now, object.as<VolumeSnapshot>());
  }
  // How far a reservation is, the server knows by itself.
  if (&object.kind() == &core::kReservationKind) {
    return ApplyConditions(report, now, object.as<core::Reservation>().status.conditions);
  }
  return ApplyBucket(report, now, object.as<Bucket>());
}

std::map<std::string, std::string> AccessSecretData(const agent::ObjectStatus& report) {
  std::map<std::string, std::string> data;
  size_t bytes = 0;
  std::map<std::string, const std::string*> ordered;
  for (const auto& [key, value] : report.access().secret_data()) ordered[key] = &value;
  for (const auto& [key, value] : ordered) {
    bytes += key.size() + value->size();
    if (bytes > kSecretBytesMax || data.size() >= kAttributesMax) break;
    if (meta::ConfigKeyProblems(key).empty()) data[key] = *value;
  }
  return data;
}

}  // namespace berth::gateway
