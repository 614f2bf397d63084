// SPDX-License-Identifier: Apache-2.0
// Parts of an image as a guest needs them. What comes out of one that is packed is kept beside the
// blobs, under the digests of both, and goes with its blob:
//
//   NAME/unpacked/<digest of the blob>.<digest of what came out>
//
// All calls block.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "image/layout.h"
#include "image/manifest.h"
#include "image/unpack.h"

namespace berth::image {

std::string UnpackedFolder(const Layout& layout);

// The file of a part: of the right size and digest, and unpacked. BadRequest: it is not what its
// manifest says, or more than `bytes_max` bytes. REQUIRES: somebody holds the layout.
Result<std::string> ReadyFile(const Layout& layout,
                              const Descriptor& part,
                              int64_t bytes_max,
                              const UnpackProgress& progress = {});

// Somebody has unpacked it, and if that is still whole it is not done again.
bool IsUnpacked(const Layout& layout, const Descriptor& part);

// What came out of a part takes so much of the disk.
int64_t UnpackedBytes(const Layout& layout, const Descriptor& part);

}  // namespace berth::image
