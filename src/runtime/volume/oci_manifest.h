// SPDX-License-Identifier: Apache-2.0
// The documents of an OCI image, as far as a disk needs them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/volume/image_reference.h"

namespace berth::runtime {

// An index or a manifest is a page of text.
constexpr size_t kOciDocumentBytesMax = 4 << 20;

struct OciDescriptor {
  std::string media_type;
  std::string digest;  // 64 hexadecimal characters of SHA-256
  int64_t size = 0;
  std::string architecture;  // of the platform; "" if none is named
  std::string tag;           // of an entry in a layout's index
  bool is_index() const;
};

// Entries of an index, whatever they are. BadRequest names what is wrong.
Result<std::vector<OciDescriptor>> ParseOciIndex(std::string_view json);
// The layer with the root file system (application/vnd.ironcore.image.rootfs), a raw disk.
Result<OciDescriptor> RootDiskOf(std::string_view manifest_json);

// Whether a layer of this type is a root disk.
bool IsRootDisk(std::string_view media_type);

// The entry of a layout's index that a reference means: by digest, else by tag, else the only one.
Result<OciDescriptor> ChooseEntry(const std::vector<OciDescriptor>& entries,
                                  const ImageReference& reference,
                                  std::string_view architecture);
// The entry of an image's index for an architecture.
Result<OciDescriptor> ChoosePlatform(const std::vector<OciDescriptor>& entries,
                                     std::string_view architecture);

}  // namespace berth::runtime
