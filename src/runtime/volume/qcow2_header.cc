// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/qcow2_header.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace berth::runtime {
namespace {

constexpr uint64_t kMagic = 0x514649fb;  // "QFI\xfb"
constexpr size_t kVersion2Bytes = 72;
constexpr size_t kVersion3Bytes = 104;

constexpr uint64_t kDirty = 1U << 0;
constexpr uint64_t kCompressionType = 1U << 3;
constexpr uint64_t kExtendedL2 = 1U << 4;
constexpr uint64_t kExternalData = 1U << 2;
constexpr uint64_t kAcceptable = kDirty | kCompressionType | kExtendedL2;

constexpr uint32_t kExtensionsEnd = 0;
constexpr uint32_t kExtensionDataFile = 0x44415441;
constexpr uint32_t kExtensionEncryption = 0x0537be77;

constexpr uint32_t kClusterBitsMin = 9;
constexpr uint32_t kClusterBitsMax = 21;

uint64_t BigEndian(std::string_view head, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) {
    value = (value << 8) | static_cast<unsigned char>(head[at + i]);
  }
  return value;
}

Status CheckExtensions(std::string_view head, size_t at) {
  constexpr size_t kHeadBytes = 8;
  constexpr size_t kAlign = 8;
  while (at + kHeadBytes <= head.size()) {
    const auto type = static_cast<uint32_t>(BigEndian(head, at, 4));
    const uint64_t length = BigEndian(head, at + 4, 4);
    if (type == kExtensionsEnd) return OkStatus();
    if (type == kExtensionDataFile) return BadRequest("qcow2 image with an external data file");
    if (type == kExtensionEncryption) return BadRequest("qcow2 image that is encrypted");
    if (length > head.size()) break;
    at += kHeadBytes + (length + kAlign - 1) / kAlign * kAlign;
  }
  return BadRequest("qcow2 image whose header has no end");
}

}  // namespace

Result<int64_t> Qcow2VirtualBytes(std::string_view head) {
  if (head.size() < kVersion2Bytes || BigEndian(head, 0, 4) != kMagic) {
    return BadRequest("not a qcow2 image");
  }
  const uint64_t version = BigEndian(head, 4, 4);
  if (version != 2 && version != 3) {
    return BadRequest(fmt::format("qcow2 image of version {}, expected 2 or 3", version));
  }
  if (BigEndian(head, 8, 8) != 0 || BigEndian(head, 16, 4) != 0) {
    return BadRequest("qcow2 image with a backing file");
  }
  const uint64_t cluster_bits = BigEndian(head, 20, 4);
  if (cluster_bits < kClusterBitsMin || cluster_bits > kClusterBitsMax) {
    return BadRequest(fmt::format("qcow2 image with clusters of 2^{} bytes", cluster_bits));
  }
  if (BigEndian(head, 32, 4) != 0) return BadRequest("qcow2 image that is encrypted");
  const uint64_t bytes = BigEndian(head, 24, 8);
  if (bytes == 0 || bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return BadRequest(fmt::format("qcow2 image of {} bytes", bytes));
  }
  size_t header_bytes = kVersion2Bytes;
  if (version == 3) {
    if (head.size() < kVersion3Bytes) return BadRequest("qcow2 image that is cut off");
    const uint64_t features = BigEndian(head, 72, 8);
    if ((features & kExternalData) != 0) {
      return BadRequest("qcow2 image with an external data file");
    }
    if ((features & ~kAcceptable) != 0) {
      return BadRequest(fmt::format("qcow2 image with features {:#x} that are refused", features));
    }
    header_bytes = BigEndian(head, 100, 4);
    if (header_bytes < kVersion3Bytes || header_bytes > head.size()) {
      return BadRequest(fmt::format("qcow2 image with a header of {} bytes", header_bytes));
    }
  }
  // Extensions end with the first cluster at the latest.
  const size_t cluster = size_t{1} << cluster_bits;
  TRY_STATUS(CheckExtensions(head.substr(0, std::min(head.size(), cluster)), header_bytes));
  return static_cast<int64_t>(bytes);
}

}  // namespace berth::runtime
