// SPDX-License-Identifier: Apache-2.0
#include "iri/wire/common_wire.h"
#include "iri/wire/wire.h"

namespace berth::iri {

namespace {

template <class Message>
Message AttachmentToProto(const AttachmentStatus& status) {
  Message message;
  message.set_name(status.name);
  message.set_handle(status.handle);
  message.set_state(EnumToProto<decltype(message.state())>(status.state));
  return message;
}
template <class Message>
AttachmentStatus AttachmentFromProto(const Message& message) {
  AttachmentStatus status;
  status.name = message.name();
  status.handle = message.handle();
  status.state = EnumFromNumber(message.state(), AttachmentState::kAttached);
  return status;
}

machine_pb::MachineSpec SpecToProto(const MachineSpec& spec) {
  machine_pb::MachineSpec message;
  message.set_power(ToProto(spec.power));
  message.set_class_(spec.class_name);
  message.set_ignition_data(spec.ignition_data);
  for (const MachineVolume& volume : spec.volumes) *message.add_volumes() = ToProto(volume);
  for (const MachineNic& nic : spec.nics) *message.add_network_interfaces() = ToProto(nic);
  if (!spec.hostname.empty()) message.mutable_guest_config()->set_hostname(spec.hostname);
  return message;
}
MachineSpec SpecFromProto(const machine_pb::MachineSpec& message) {
  MachineSpec spec;
  spec.power = FromProto(message.power());
  spec.class_name = message.class_();
  spec.ignition_data = message.ignition_data();
  for (const auto& volume : message.volumes()) spec.volumes.push_back(FromProto(volume));
  for (const auto& nic : message.network_interfaces()) spec.nics.push_back(FromProto(nic));
  spec.hostname = message.guest_config().hostname();
  return spec;
}

machine_pb::MachineStatus StatusToProto(const MachineStatus& status) {
  machine_pb::MachineStatus message;
  message.set_observed_generation(status.observed_generation);
  message.set_state(EnumToProto<machine_pb::MachineState>(status.state));
  message.set_image_ref(status.image_ref);
  for (const AttachmentStatus& volume : status.volumes) {
    *message.add_volumes() = AttachmentToProto<machine_pb::VolumeStatus>(volume);
  }
  for (const AttachmentStatus& nic : status.nics) {
    *message.add_network_interfaces() = AttachmentToProto<machine_pb::NetworkInterfaceStatus>(nic);
  }
  for (const MachineCondition& condition : status.conditions) {
    machine_pb::Conditions& added = *message.add_machine_conditions();
    added.set_type(condition.type);
    added.set_status(condition.status);
    added.set_reason(condition.reason);
    added.set_message(condition.message);
    added.set_last_transition_time(condition.last_transition.seconds());
  }
  return message;
}
MachineStatus StatusFromProto(const machine_pb::MachineStatus& message) {
  MachineStatus status;
  status.observed_generation = message.observed_generation();
  status.state = EnumFromNumber(message.state(), MachineState::kStopped);
  status.image_ref = message.image_ref();
  for (const auto& volume : message.volumes()) {
    status.volumes.push_back(AttachmentFromProto(volume));
  }
  for (const auto& nic : message.network_interfaces()) {
    status.nics.push_back(AttachmentFromProto(nic));
  }
  for (const auto& condition : message.machine_conditions()) {
    status.conditions.push_back(
        {.type = condition.type(),
         .status = condition.status(),
         .reason = condition.reason(),
         .message = condition.message(),
         .last_transition = WallTime::FromSeconds(condition.last_transition_time())});
  }
  return status;
}

}  // namespace

machine_pb::Power ToProto(Power power) { return EnumToProto<machine_pb::Power>(power); }
Power FromProto(machine_pb::Power power) { return EnumFromNumber(power, Power::kOff); }

machine_pb::Volume ToProto(const MachineVolume& volume) {
  machine_pb::Volume message;
  message.set_name(volume.name);
  message.set_device(volume.device);
  if (volume.local_disk.has_value()) {
    machine_pb::LocalDisk& disk = *message.mutable_local_disk();
    disk.set_size_bytes(volume.local_disk->size_bytes);
    if (!volume.local_disk->image.empty()) {
      disk.mutable_image()->set_image(volume.local_disk->image);
    }
  }
  if (volume.connection.has_value()) {
    machine_pb::VolumeConnection& connection = *message.mutable_connection();
    connection.set_driver(volume.connection->driver);
    connection.set_handle(volume.connection->handle);
    CopyTo(volume.connection->attributes, connection.mutable_attributes());
    CopyTo(volume.connection->secret_data, connection.mutable_secret_data());
    CopyTo(volume.connection->encryption_data, connection.mutable_encryption_data());
    connection.set_effective_storage_bytes(volume.connection->effective_storage_bytes);
  }
  return message;
}

MachineVolume FromProto(const machine_pb::Volume& message) {
  MachineVolume volume;
  volume.name = message.name();
  volume.device = message.device();
  if (message.has_local_disk()) {
    volume.local_disk = LocalDisk{.size_bytes = message.local_disk().size_bytes(),
                                  .image = message.local_disk().image().image()};
  }
  if (message.has_connection()) {
    VolumeConnection& connection = volume.connection.emplace();
    connection.driver = message.connection().driver();
    connection.handle = message.connection().handle();
    CopyFrom(message.connection().attributes(), connection.attributes);
    CopyFrom(message.connection().secret_data(), connection.secret_data);
    CopyFrom(message.connection().encryption_data(), connection.encryption_data);
    connection.effective_storage_bytes = message.connection().effective_storage_bytes();
  }
  return volume;
}

machine_pb::NetworkInterface ToProto(const MachineNic& nic) {
  machine_pb::NetworkInterface message;
  message.set_name(nic.name);
  message.set_network_id(nic.network_id);
  for (const std::string& ip : nic.ips) message.add_ips(ip);
  CopyTo(nic.attributes, message.mutable_attributes());
  return message;
}
MachineNic FromProto(const machine_pb::NetworkInterface& message) {
  MachineNic nic;
  nic.name = message.name();
  nic.network_id = message.network_id();
  nic.ips.assign(message.ips().begin(), message.ips().end());
  CopyFrom(message.attributes(), nic.attributes);
  return nic;
}

machine_pb::Machine ToProto(const Machine& machine) {
  machine_pb::Machine message;
  *message.mutable_metadata() = ToProto(machine.metadata);
  *message.mutable_spec() = SpecToProto(machine.spec);
  *message.mutable_status() = StatusToProto(machine.status);
  return message;
}
Machine FromProto(const machine_pb::Machine& message) {
  Machine machine;
  machine.metadata = FromProto(message.metadata());
  machine.spec = SpecFromProto(message.spec());
  machine.status = StatusFromProto(message.status());
  return machine;
}

machine_pb::MachineClassStatus ToProto(const MachineClassStatus& status) {
  machine_pb::MachineClassStatus message;
  machine_pb::MachineClass& machine_class = *message.mutable_machine_class();
  machine_class.set_name(status.machine_class.name);
  CopyTo(status.machine_class.capabilities,
         machine_class.mutable_capabilities()->mutable_resources());
  message.set_quantity(status.quantity);
  return message;
}
MachineClassStatus FromProto(const machine_pb::MachineClassStatus& message) {
  MachineClassStatus status;
  status.machine_class.name = message.machine_class().name();
  CopyFrom(message.machine_class().capabilities().resources(), status.machine_class.capabilities);
  status.quantity = message.quantity();
  return status;
}

}  // namespace berth::iri
