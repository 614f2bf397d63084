// SPDX-License-Identifier: Apache-2.0
// The classes that a volume runtime offers, from a file:
//
//   classes:
//   - name: fast
//     capabilities: {tps: 100Mi, iops: 5k}   # bytes and operations per second
//     format: qcow2                          # or raw; the default is qcow2
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "iri/volume.h"
#include "runtime/volume/disk_file.h"

namespace berth::runtime {

constexpr size_t kVolumeClassesMax = 64;

struct OfferedVolumeClass {
  iri::VolumeClass volume_class;
  DiskFormat format = DiskFormat::kQcow2;  // of volumes without encryption
  bool operator==(const OfferedVolumeClass&) const = default;
};

// BadRequest names the class, the field and the value.
Result<std::vector<OfferedVolumeClass>> ParseVolumeClasses(std::string_view yaml);

// Null if it is not offered.
const OfferedVolumeClass* FindClass(const std::vector<OfferedVolumeClass>& classes,
                                    std::string_view name);

}  // namespace berth::runtime
