// SPDX-License-Identifier: Apache-2.0
// Keeps the shared layout of registries' images within its size. Blocks.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "image/layout.h"

namespace berth::image {

// Forgets the images that were fetched the longest ago until the rest has at most `keep_bytes`, and
// removes what nothing leads to any more. What disks and guests were made from it is not touched.
// Conflict if somebody uses the layout: another time. Says how many bytes went.
Result<int64_t> TrimCache(const Layout& layout, int64_t keep_bytes, WallTime now);

// Forgets the image that was fetched the longest ago, but none whose manifest has the digest
// `kept`, and removes what nothing leads to any more. False if there is none. Conflict if somebody
// uses the layout.
Result<bool> ForgetOldest(const Layout& layout, const std::string& kept, WallTime now);

// What all images there have together.
Result<int64_t> CachedBytes(const Layout& layout);

}  // namespace berth::image
