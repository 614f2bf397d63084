// SPDX-License-Identifier: Apache-2.0
#include "image/unpack_needs.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <utility>

#include "image/unpack.h"
#include "image/unpacked_parts.h"

namespace berth::image {
namespace {

std::string NewName(const Descriptor& part) {
  static std::atomic<uint64_t> count = 0;
  return fmt::format("{}.unpacked.{}.{}", part.digest, getpid(), ++count);
}

}  // namespace

Result<std::map<std::string, int64_t>> UnpackNeeds(const Layout& layout,
                                                   const Manifest& manifest,
                                                   int64_t disk_bytes_max) {
  std::map<std::string, int64_t> needs;
  const std::pair<const std::optional<Descriptor>*, int64_t> parts[] = {
      {&manifest.root_disk, disk_bytes_max},
      {&manifest.kernel, kKernelBytesMax},
      {&manifest.initramfs, kInitramfsBytesMax},
      {&manifest.uki, kUkiBytesMax}};
  for (const auto& [part, bytes_max] : parts) {
    if (!part->has_value() || (*part)->packing() == Packing::kNone) continue;
    if (IsUnpacked(layout, **part)) continue;
    TRY(const std::string blob, layout.VerifiedFile(**part));
    TRY(needs[NewName(**part)], UnpackedWritten(blob, (*part)->packing(), bytes_max));
  }
  return needs;
}

}  // namespace berth::image
