// SPDX-License-Identifier: Apache-2.0
// A disk that is a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::runtime {

// kLuks: a raw file that begins with a LUKS header. It is copied and grown without its key.
enum class DiskFormat : uint8_t { kQcow2, kRaw, kLuks };
std::string_view DiskFormatName(DiskFormat format);  // "qcow2"
std::optional<DiskFormat> DiskFormatOf(std::string_view name);

struct DiskFile {
  std::string path;
  DiskFormat format = DiskFormat::kQcow2;
};

// Disks are whole sectors.
constexpr int64_t kSectorBytes = 512;
constexpr int64_t WholeSectors(int64_t bytes) {
  return (bytes + kSectorBytes - 1) / kSectorBytes * kSectorBytes;
}

}  // namespace berth::runtime
