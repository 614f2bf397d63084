// SPDX-License-Identifier: Apache-2.0
// Runtime objects as JSON, in protobuf's mapping of their messages: lowerCamelCase, 64-bit numbers
// as strings, bytes as base64, names of enumerators. For people, files and fixtures.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "iri/runtimes.h"

namespace berth::iri {

// One object on one line. Secrets are in it.
std::string ToJson(const Machine& machine);
std::string ToJson(const MachineVolume& volume);
std::string ToJson(const MachineNic& nic);
std::string ToJson(const Volume& volume);
std::string ToJson(const VolumeSnapshot& snapshot);
std::string ToJson(const Bucket& bucket);
std::string ToJson(const Event& event);
std::string ToJson(const MachineClassStatus& status);
std::string ToJson(const VolumeClassStatus& status);
std::string ToJson(const BucketClass& bucket_class);
std::string ToJson(const HostCapacity& capacity);
std::string ToJson(const Change& change);
std::string ToJson(const Reservation& reservation);

// BadRequest for anything else than one object of that shape; unknown fields are errors.
Result<Machine> MachineFromJson(std::string_view json);
Result<MachineVolume> MachineVolumeFromJson(std::string_view json);
Result<MachineNic> MachineNicFromJson(std::string_view json);
Result<Volume> VolumeFromJson(std::string_view json);
Result<VolumeSnapshot> VolumeSnapshotFromJson(std::string_view json);
Result<Bucket> BucketFromJson(std::string_view json);
Result<Event> EventFromJson(std::string_view json);
Result<Reservation> ReservationFromJson(std::string_view json);

}  // namespace berth::iri
