// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/disk_file.h"

#include "iri/local_disk.h"

namespace berth::runtime {

std::string_view DiskFormatName(DiskFormat format) {
  switch (format) {
    case DiskFormat::kQcow2: return iri::kQcow2Format;
    case DiskFormat::kRaw: return iri::kRawFormat;
    case DiskFormat::kLuks: return iri::kLuksFormat;
  }
  return {};
}

std::optional<DiskFormat> DiskFormatOf(std::string_view name) {
  for (const DiskFormat format : {DiskFormat::kQcow2, DiskFormat::kRaw, DiskFormat::kLuks}) {
    if (DiskFormatName(format) == name) return format;
  }
  return std::nullopt;
}

}  // namespace berth::runtime
