// SPDX-License-Identifier: Apache-2.0
#include "iri/wire/json.h"

#include <google/protobuf/util/json_util.h>

#include "base/check.h"
#include "iri/wire/wire.h"

namespace berth::iri {

namespace {

std::string Encode(const google::protobuf::Message& message) {
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json);
  CHECK(status.ok()) << status.ToString();
  return json;
}

template <class Message>
auto Decode(std::string_view json) -> Result<decltype(FromProto(Message()))> {
  Message message;
  const auto status =
      google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &message);
  if (!status.ok()) return BadRequest(std::string(status.message()));
  TRY_STATUS(CheckMessage(message));
  return FromProto(message);
}

}  // namespace

std::string ToJson(const Machine& machine) { return Encode(ToProto(machine)); }
std::string ToJson(const MachineVolume& volume) { return Encode(ToProto(volume)); }
std::string ToJson(const MachineNic& nic) { return Encode(ToProto(nic)); }
std::string ToJson(const Volume& volume) { return Encode(ToProto(volume)); }
std::string ToJson(const VolumeSnapshot& snapshot) { return Encode(ToProto(snapshot)); }
std::string ToJson(const Bucket& bucket) { return Encode(ToProto(bucket)); }
std::string ToJson(const Event& event) { return Encode(ToProto(event)); }
std::string ToJson(const MachineClassStatus& status) { return Encode(ToProto(status)); }
std::string ToJson(const VolumeClassStatus& status) { return Encode(ToProto(status)); }
std::string ToJson(const BucketClass& bucket_class) { return Encode(ToProto(bucket_class)); }
std::string ToJson(const HostCapacity& capacity) { return Encode(ToProto(capacity)); }
std::string ToJson(const Change& change) { return Encode(ToProto(change)); }
std::string ToJson(const Reservation& reservation) { return Encode(ToProto(reservation)); }

Result<Machine> MachineFromJson(std::string_view json) { return Decode<machine_pb::Machine>(json); }
Result<MachineVolume> MachineVolumeFromJson(std::string_view json) {
  return Decode<machine_pb::Volume>(json);
}
Result<MachineNic> MachineNicFromJson(std::string_view json) {
  return Decode<machine_pb::NetworkInterface>(json);
}
Result<Volume> VolumeFromJson(std::string_view json) { return Decode<volume_pb::Volume>(json); }
Result<VolumeSnapshot> VolumeSnapshotFromJson(std::string_view json) {
  return Decode<volume_pb::VolumeSnapshot>(json);
}
Result<Bucket> BucketFromJson(std::string_view json) { return Decode<bucket_pb::Bucket>(json); }
Result<Event> EventFromJson(std::string_view json) { return Decode<event_pb::Event>(json); }
Result<Reservation> ReservationFromJson(std::string_view json) {
  return Decode<host_pb::Reservation>(json);
}

}  // namespace berth::iri
