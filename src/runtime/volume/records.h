// SPDX-License-Identifier: Apache-2.0
// What a volume runtime writes down of its objects, one small file each. Never a secret.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "iri/volume.h"
#include "runtime/volume/disk_file.h"

namespace berth::runtime {

struct VolumeRecord {
  iri::Volume object;  // without encryption and status
  DiskFormat format = DiskFormat::kQcow2;
  // Its making needs the key that came with the request, which is kept in memory only.
  bool needs_key = false;
  int64_t disk_bytes = 0;  // of the disk that is there; 0: it is being made

  bool is_made() const { return disk_bytes > 0; }
  bool is_deleted() const { return !object.metadata.deleted_at.is_zero(); }
  bool operator==(const VolumeRecord&) const = default;
};

struct SnapshotRecord {
  iri::VolumeSnapshot object;
  DiskFormat format = DiskFormat::kQcow2;
  int64_t taken_bytes = 0;  // what its file takes, once it is ready

  bool is_deleted() const { return !object.metadata.deleted_at.is_zero(); }
  bool operator==(const SnapshotRecord&) const = default;
};

// What the budget is charged.
int64_t ChargeOf(const VolumeRecord& record);
int64_t ChargeOf(const SnapshotRecord& record);

// CHECKs that there is no secret in it.
std::string ToText(const VolumeRecord& record);
std::string ToText(const SnapshotRecord& record);
Result<VolumeRecord> VolumeRecordOf(std::string_view text);
Result<SnapshotRecord> SnapshotRecordOf(std::string_view text);

}  // namespace berth::runtime
