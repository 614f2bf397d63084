// SPDX-License-Identifier: Apache-2.0
// The structs of iri/ as protobuf messages, both ways. Reading never fails: what may arrive is
// decided by CheckMessage, before. Only iri/ includes this: generated code is slow to compile.
#pragma once

#include <string_view>

#include "base/status.h"
#include "berth/iri/v1/host.pb.h"
#include "bucket/v1alpha1/api.pb.h"
#include "event/v1alpha1/api.pb.h"
#include "iri/runtimes.h"
#include "machine/v1alpha1/api.pb.h"
#include "meta/v1alpha1/api.pb.h"
#include "volume/v1alpha1/api.pb.h"

namespace berth::iri {

namespace meta_pb = ::meta::v1alpha1;
namespace event_pb = ::event::v1alpha1;
namespace machine_pb = ::machine::v1alpha1;
namespace volume_pb = ::volume::v1alpha1;
namespace bucket_pb = ::bucket::v1alpha1;
namespace host_pb = ::berth::iri::v1;

// What may be in a message from another process: text is valid UTF-8 without NUL and at most
// kTextBytesMax long, bytes are at most kSecretBytesMax, numbers are not negative, at most
// kPartsMax parts each. BadRequest names the field.
constexpr size_t kTextBytesMax = 256 * 1024;
constexpr size_t kSecretBytesMax = 1024 * 1024;
constexpr int kPartsMax = 100'000;
Status CheckMessage(const google::protobuf::Message& message);

meta_pb::ObjectMetadata ToProto(const ObjectMetadata& metadata);
ObjectMetadata FromProto(const meta_pb::ObjectMetadata& message);
event_pb::Event ToProto(const Event& event);
Event FromProto(const event_pb::Event& message);

machine_pb::Machine ToProto(const Machine& machine);
Machine FromProto(const machine_pb::Machine& message);
machine_pb::Volume ToProto(const MachineVolume& volume);
MachineVolume FromProto(const machine_pb::Volume& message);
machine_pb::NetworkInterface ToProto(const MachineNic& nic);
MachineNic FromProto(const machine_pb::NetworkInterface& message);
machine_pb::MachineClassStatus ToProto(const MachineClassStatus& status);
MachineClassStatus FromProto(const machine_pb::MachineClassStatus& message);
machine_pb::Power ToProto(Power power);
Power FromProto(machine_pb::Power power);

volume_pb::Volume ToProto(const Volume& volume);
Volume FromProto(const volume_pb::Volume& message);
volume_pb::VolumeSnapshot ToProto(const VolumeSnapshot& snapshot);
VolumeSnapshot FromProto(const volume_pb::VolumeSnapshot& message);
volume_pb::VolumeClassStatus ToProto(const VolumeClassStatus& status);
VolumeClassStatus FromProto(const volume_pb::VolumeClassStatus& message);

bucket_pb::Bucket ToProto(const Bucket& bucket);
Bucket FromProto(const bucket_pb::Bucket& message);
bucket_pb::BucketClass ToProto(const BucketClass& bucket_class);
BucketClass FromProto(const bucket_pb::BucketClass& message);

host_pb::Change ToProto(const Change& change);
Change FromProto(const host_pb::Change& message);
host_pb::CapacityResponse ToProto(const HostCapacity& capacity);
HostCapacity FromProto(const host_pb::CapacityResponse& message);
host_pb::Reservation ToProto(const Reservation& reservation);
Reservation FromProto(const host_pb::Reservation& message);

// The filters of all three interfaces have the same fields.
template <class Filter>
Filter FilterToProto(const ObjectFilter& filter) {
  Filter message;
  message.set_id(filter.id);
  message.mutable_label_selector()->insert(filter.labels.begin(), filter.labels.end());
  return message;
}
template <class Filter>
ObjectFilter FilterFromProto(const Filter& message) {
  ObjectFilter filter;
  filter.id = message.id();
  filter.labels.insert(message.label_selector().begin(), message.label_selector().end());
  return filter;
}
template <class Filter>
Filter EventFilterToProto(const EventFilter& filter) {
  Filter message;
  message.set_id(filter.id);
  message.mutable_label_selector()->insert(filter.labels.begin(), filter.labels.end());
  message.set_events_from_time(filter.from.seconds());
  message.set_events_to_time(filter.to.seconds());
  return message;
}
template <class Filter>
EventFilter EventFilterFromProto(const Filter& message) {
  EventFilter filter;
  filter.id = message.id();
  filter.labels.insert(message.label_selector().begin(), message.label_selector().end());
  filter.from = WallTime::FromSeconds(message.events_from_time());
  filter.to = WallTime::FromSeconds(message.events_to_time());
  return filter;
}

}  // namespace berth::iri
