// SPDX-License-Identifier: Apache-2.0
// VolumeRuntime keeps volumes and their snapshots: the C++ side of volume.v1alpha1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "iri/object.h"
#include "rt/task.h"

namespace berth::iri {

enum class VolumeState : uint8_t { kPending, kAvailable, kError, kUnknown = 255 };
enum class SnapshotState : uint8_t { kPending, kReady, kFailed, kUnknown = 255 };
std::string_view VolumeStateName(VolumeState state);
std::string_view SnapshotStateName(SnapshotState state);

struct VolumeSpec {
  std::string class_name;
  int64_t storage_bytes = 0;
  SecretMap encryption;            // empty: not encrypted
  std::string image;               // data source; "" for none
  std::string image_architecture;  // only with `image`
  std::string snapshot_id;         // data source: the runtime's id of a snapshot; "" for none
  bool operator==(const VolumeSpec&) const = default;
};
// How a machine runtime connects to it.
struct VolumeAccess {
  std::string driver;
  std::string handle;
  StringMap attributes;
  SecretMap secret_data;
  bool operator==(const VolumeAccess&) const = default;
};
struct VolumeStatus {
  VolumeState state = VolumeState::kPending;
  VolumeAccess access;        // with kAvailable
  int64_t storage_bytes = 0;  // what it really has
  bool operator==(const VolumeStatus&) const = default;
};
struct Volume {
  ObjectMetadata metadata;
  VolumeSpec spec;
  VolumeStatus status;
  bool operator==(const Volume&) const = default;
};

struct VolumeClass {
  std::string name;
  int64_t tps = 0;
  int64_t iops = 0;
  bool operator==(const VolumeClass&) const = default;
};
struct VolumeClassStatus {
  VolumeClass volume_class;
  int64_t quantity = 0;  // bytes if the pool held nothing but this class
  bool operator==(const VolumeClassStatus&) const = default;
};

struct VolumeSnapshot {
  ObjectMetadata metadata;
  std::string volume_id;
  SnapshotState state = SnapshotState::kPending;
  int64_t size_bytes = 0;
  bool operator==(const VolumeSnapshot&) const = default;
};

// All methods: NotFound for an unknown id; Unavailable or Timeout if the outcome is not known.
class VolumeRuntime {
 public:
  virtual ~VolumeRuntime() = default;

  virtual rt::Task<Result<RuntimeVersion>> Version() = 0;
  virtual rt::Task<Result<std::vector<Event>>> ListEvents(EventFilter filter) = 0;

  virtual rt::Task<Result<std::vector<Volume>>> ListVolumes(ObjectFilter filter) = 0;
  // Idempotent by kVolumeUidLabel under the rule of MachineRuntime::CreateMachine.
  virtual rt::Task<Result<Volume>> CreateVolume(Volume volume) = 0;
  // Idempotent; Invalid if it would shrink.
  virtual rt::Task<Status> ExpandVolume(std::string id, int64_t storage_bytes) = 0;
  // Ok: deletion has begun; list until it is gone. Idempotent.
  virtual rt::Task<Status> DeleteVolume(std::string id) = 0;

  virtual rt::Task<Result<std::vector<VolumeSnapshot>>> ListVolumeSnapshots(
      ObjectFilter filter) = 0;
  // Idempotent by kSnapshotUidLabel under the same rule.
  virtual rt::Task<Result<VolumeSnapshot>> CreateVolumeSnapshot(VolumeSnapshot snapshot) = 0;
  virtual rt::Task<Status> DeleteVolumeSnapshot(std::string id) = 0;

  // The RPC Status.
  virtual rt::Task<Result<std::vector<VolumeClassStatus>>> ClassStatus() = 0;
};

}  // namespace berth::iri
