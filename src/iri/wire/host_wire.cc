// SPDX-License-Identifier: Apache-2.0
#include "iri/wire/common_wire.h"
#include "iri/wire/wire.h"

namespace berth::iri {

namespace {

// Our own enumerations begin with "unspecified".
constexpr int kShift = 1;

host_pb::ObjectKind KindToProto(ObjectKind kind) {
  return EnumToProto<host_pb::ObjectKind>(kind, kShift);
}
ObjectKind KindFromProto(host_pb::ObjectKind kind) {
  return EnumFromNumber(kind, ObjectKind::kVolumeSnapshot, kShift);
}

host_pb::InstanceStatistics ToProto(const InstanceStatistics& statistics) {
  host_pb::InstanceStatistics message;
  message.set_kind(KindToProto(statistics.kind));
  message.set_id(statistics.id);
  message.set_uid(statistics.uid);
  message.set_cpu_nanos(statistics.cpu_time.nanos());
  message.set_memory_bytes(statistics.memory_bytes);
  message.set_disk_bytes(statistics.disk_bytes);
  message.set_disk_read_bytes(statistics.disk_read_bytes);
  message.set_disk_written_bytes(statistics.disk_written_bytes);
  message.set_network_received_bytes(statistics.network_received_bytes);
  message.set_network_sent_bytes(statistics.network_sent_bytes);
  return message;
}
InstanceStatistics FromProto(const host_pb::InstanceStatistics& message) {
  InstanceStatistics statistics;
  statistics.kind = KindFromProto(message.kind());
  statistics.id = message.id();
  statistics.uid = message.uid();
  statistics.cpu_time = Duration::Nanos(message.cpu_nanos());
  statistics.memory_bytes = message.memory_bytes();
  statistics.disk_bytes = message.disk_bytes();
  statistics.disk_read_bytes = message.disk_read_bytes();
  statistics.disk_written_bytes = message.disk_written_bytes();
  statistics.network_received_bytes = message.network_received_bytes();
  statistics.network_sent_bytes = message.network_sent_bytes();
  return statistics;
}

}  // namespace

host_pb::Change ToProto(const Change& change) {
  host_pb::Change message;
  message.set_type(EnumToProto<host_pb::Change::Type>(change.type, kShift));
  message.set_cursor(change.cursor);
  if (change.type != ChangeType::kResync) message.set_kind(KindToProto(change.kind));
  message.set_id(change.id);
  message.set_uid(change.uid);
  message.set_what(change.what);
  return message;
}
Change FromProto(const host_pb::Change& message) {
  Change change;
  change.type = EnumFromNumber(message.type(), ChangeType::kDeleted, kShift);
  change.cursor = message.cursor();
  if (change.type != ChangeType::kResync) change.kind = KindFromProto(message.kind());
  change.id = message.id();
  change.uid = message.uid();
  change.what = message.what();
  return change;
}

host_pb::CapacityResponse ToProto(const HostCapacity& capacity) {
  host_pb::CapacityResponse message;
  CopyTo(capacity.total, message.mutable_total()->mutable_amounts());
  CopyTo(capacity.used, message.mutable_used()->mutable_amounts());
  CopyTo(capacity.load, message.mutable_load()->mutable_amounts());
  if (!capacity.kept.empty()) CopyTo(capacity.kept, message.mutable_kept()->mutable_amounts());
  CopyTo(capacity.facts, message.mutable_facts());
  message.set_boot_id(capacity.boot_id);
  message.set_trouble(capacity.trouble);
  for (const InstanceStatistics& instance : capacity.instances) {
    *message.add_instances() = ToProto(instance);
  }
  return message;
}
HostCapacity FromProto(const host_pb::CapacityResponse& message) {
  HostCapacity capacity;
  CopyFrom(message.total().amounts(), capacity.total);
  CopyFrom(message.used().amounts(), capacity.used);
  CopyFrom(message.load().amounts(), capacity.load);
  CopyFrom(message.kept().amounts(), capacity.kept);
  CopyFrom(message.facts(), capacity.facts);
  capacity.boot_id = message.boot_id();
  capacity.trouble = message.trouble();
  for (const auto& instance : message.instances()) {
    capacity.instances.push_back(FromProto(instance));
  }
  return capacity;
}

host_pb::Reservation ToProto(const Reservation& reservation) {
  host_pb::Reservation message;
  message.set_id(reservation.id);
  CopyTo(reservation.resources, message.mutable_resources()->mutable_amounts());
  message.set_machine_uid(reservation.machine_uid);
  return message;
}
Reservation FromProto(const host_pb::Reservation& message) {
  Reservation reservation;
  reservation.id = message.id();
  CopyFrom(message.resources().amounts(), reservation.resources);
  reservation.machine_uid = message.machine_uid();
  return reservation;
}

}  // namespace berth::iri
