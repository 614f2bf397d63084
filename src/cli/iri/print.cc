// SPDX-License-Identifier: Apache-2.0
#include "cli/iri/print.h"

#include <fmt/core.h>

#include <set>

#include "base/check.h"
#include "base/strings.h"
#include "cli/render/text_table.h"
#include "iri/grpc/client.h"
#include "iri/labels.h"
#include "meta/json.h"
#include "meta/quantity.h"

namespace berth::cli {

using meta::Quantity;
using meta::Value;

namespace {

bool IsSecret(std::string_view key) {
  return key == "secretData" || key == "encryptionData" || key == "ignitionData";
}

void Blank(Value& value) {
  if (value.is_object()) {
    for (auto& member : value.members()) Blank(member.value);
  } else if (value.is_string()) {
    const auto bytes = Base64Decode(value.as_string());
    value = Value(fmt::format("<{} bytes>", bytes.has_value() ? bytes->size() : 0));
  }
}

std::string Age(WallTime since, WallTime now) {
  return since.is_zero() ? "<unknown>" : FormatAge(now - since);
}

std::string OrNone(std::string_view text) { return text.empty() ? "<none>" : std::string(text); }

// "default/web", as its poollet named it.
std::string NameOf(const iri::ObjectMetadata& metadata,
                   std::string_view namespace_label,
                   std::string_view name_label) {
  const std::string_view name = LabelOf(metadata, name_label);
  if (name.empty()) return "<none>";
  return fmt::format("{}/{}", LabelOf(metadata, namespace_label), name);
}

int64_t At(const iri::ResourceVector& resources, const std::string& name) {
  const auto found = resources.find(name);
  return found == resources.end() ? 0 : found->second;
}

}  // namespace

void HideSecrets(Value& value) {
  if (value.is_array()) {
    for (Value& item : value.items()) HideSecrets(item);
  }
  if (!value.is_object()) return;
  for (auto& member : value.members()) {
    if (IsSecret(member.key)) {
      Blank(member.value);
    } else {
      HideSecrets(member.value);
    }
  }
}

Value ValueOf(const std::string& json, RuntimeSecrets secrets) {
  Result<Value> value = meta::ParseJson(json, 2 * iri::kAnswerBytesMax);
  CHECK(value.ok()) << value.status();  // we have just written it
  if (secrets == RuntimeSecrets::kHidden) HideSecrets(*value);
  return *std::move(value);
}

std::string AmountText(std::string_view resource, int64_t amount) {
  if (resource == iri::kCpu) return Quantity::Milli(amount).ToString();
  const bool is_bytes = resource == iri::kMemory || resource == iri::kStorage;
  return Quantity(amount, is_bytes ? Quantity::Format::kBinarySi : Quantity::Format::kDecimalSi)
      .ToString();
}

std::string VectorText(const iri::ResourceVector& resources) {
  std::vector<std::string> parts;
  for (const auto& [name, amount] : resources) {
    parts.push_back(name + "=" + AmountText(name, amount));
  }
  return Join(parts, ", ");
}

std::string MachinesTable(const std::vector<iri::Machine>& machines, WallTime now) {
  TextTable table(
      {"Id", "Machine", "Uid", "Class", "Power", "State", "Volumes", "Interfaces", "Age"});
  for (const iri::Machine& machine : machines) {
    std::string state(MachineStateName(machine.status.state));
    for (const iri::MachineCondition& condition : machine.status.conditions) {
      if (condition.status == "False" && !condition.reason.empty()) {
        state += " (" + condition.reason + ")";
      }
    }
    table.AddRow({machine.metadata.id,
                  NameOf(machine.metadata, iri::kMachineNamespaceLabel, iri::kMachineNameLabel),
                  OrNone(LabelOf(machine.metadata, iri::kMachineUidLabel)),
                  machine.spec.class_name,
                  std::string(PowerName(machine.spec.power)),
                  state,
                  std::to_string(machine.spec.volumes.size()),
                  std::to_string(machine.spec.nics.size()),
                  Age(machine.metadata.created_at, now)});
  }
  return table.Flush();
}

std::string VolumesTable(const std::vector<iri::Volume>& volumes, WallTime now) {
  TextTable table({"Id", "Volume", "Uid", "Class", "Size", "State", "Handle", "Age"});
  for (const iri::Volume& volume : volumes) {
    table.AddRow({volume.metadata.id,
                  NameOf(volume.metadata, iri::kVolumeNamespaceLabel, iri::kVolumeNameLabel),
                  OrNone(LabelOf(volume.metadata, iri::kVolumeUidLabel)),
                  volume.spec.class_name,
                  AmountText(iri::kStorage, volume.spec.storage_bytes),
                  std::string(VolumeStateName(volume.status.state)),
                  OrNone(volume.status.access.handle),
                  Age(volume.metadata.created_at, now)});
  }
  return table.Flush();
}

std::string SnapshotsTable(const std::vector<iri::VolumeSnapshot>& snapshots, WallTime now) {
  TextTable table({"Id", "Snapshot", "Volume id", "Size", "State", "Age"});
  for (const iri::VolumeSnapshot& snapshot : snapshots) {
    table.AddRow({snapshot.metadata.id,
                  NameOf(snapshot.metadata, iri::kSnapshotNamespaceLabel, iri::kSnapshotNameLabel),
                  snapshot.volume_id,
                  AmountText(iri::kStorage, snapshot.size_bytes),
                  std::string(SnapshotStateName(snapshot.state)),
                  Age(snapshot.metadata.created_at, now)});
  }
  return table.Flush();
}

std::string BucketsTable(const std::vector<iri::Bucket>& buckets, WallTime now) {
  TextTable table({"Id", "Bucket", "Uid", "Class", "State", "Endpoint", "Age"});
  for (const iri::Bucket& bucket : buckets) {
    table.AddRow({bucket.metadata.id,
                  NameOf(bucket.metadata, iri::kBucketNamespaceLabel, iri::kBucketNameLabel),
                  OrNone(LabelOf(bucket.metadata, iri::kBucketUidLabel)),
                  bucket.class_name,
                  std::string(BucketStateName(bucket.state)),
                  OrNone(bucket.access.endpoint),
                  Age(bucket.metadata.created_at, now)});
  }
  return table.Flush();
}

std::string EventsTable(const std::vector<iri::Event>& events, WallTime now) {
  TextTable table({"Age", "Type", "Reason", "Id", "Message"});
  for (const iri::Event& event : events) {
    table.AddRow({Age(event.time, now),
                  event.type == iri::EventType::kWarning ? "Warning" : "Normal",
                  event.reason,
                  event.involved.id,
                  event.message});
  }
  return table.Flush();
}

std::string CapacityTable(const iri::HostCapacity& capacity) {
  TextTable table({"Resource", "Total", "Used", "Free", "Load"});
  std::set<std::string> names;
  for (const auto& [name, amount] : capacity.total) names.insert(name);
  for (const auto& [name, amount] : capacity.used) names.insert(name);
  for (const std::string& name : names) {
    const int64_t total = At(capacity.total, name);
    const int64_t used = At(capacity.used, name);
    table.AddRow({name,
                  AmountText(name, total),
                  AmountText(name, used),
                  AmountText(name, total - used),
                  capacity.load.contains(name) ? AmountText(name, At(capacity.load, name)) : "-"});
  }
  return table.Flush();
}

std::string InstancesTable(const iri::HostCapacity& capacity) {
  TextTable table({"Kind", "Id", "Uid", "Cpu time", "Memory", "Disk", "Received", "Sent"});
  for (const iri::InstanceStatistics& instance : capacity.instances) {
    table.AddRow({std::string(ObjectKindName(instance.kind)),
                  instance.id,
                  OrNone(instance.uid),
                  FormatAge(instance.cpu_time),
                  AmountText(iri::kMemory, instance.memory_bytes),
                  AmountText(iri::kStorage, instance.disk_bytes),
                  AmountText(iri::kStorage, instance.network_received_bytes),
                  AmountText(iri::kStorage, instance.network_sent_bytes)});
  }
  return table.Flush();
}

std::string ReservationsTable(const std::vector<iri::Reservation>& reservations) {
  TextTable table({"Id", "Resources", "Machine uid"});
  for (const iri::Reservation& reservation : reservations) {
    table.AddRow({reservation.id,
                  VectorText(reservation.resources),
                  reservation.machine_uid.empty() ? "<anyone>" : reservation.machine_uid});
  }
  return table.Flush();
}

std::string LeasesTable(const std::vector<iri::LeaseState>& leases, Time now) {
  TextTable table({"Machine uid", "Left", "State"});
  for (const iri::LeaseState& lease : leases) {
    const bool is_over = lease.deadline <= now;
    table.AddRow({lease.machine_uid,
                  is_over ? "-" : FormatAge(lease.deadline - now),
                  lease.fenced ? "Fenced" : "Live"});
  }
  return table.Flush();
}

}  // namespace berth::cli
