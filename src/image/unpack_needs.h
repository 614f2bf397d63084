// SPDX-License-Identifier: Apache-2.0
// What opening an image is going to write: the content of packed parts that nobody has unpacked
// yet.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "image/layout.h"
#include "image/manifest.h"

namespace berth::image {

// Bytes by a name of their own each time, because two that open an image at once both write it.
// Fails as FilesOf does, before that. Costs one reading of such parts. Blocks. REQUIRES: somebody
// holds the layout.
Result<std::map<std::string, int64_t>> UnpackNeeds(const Layout& layout,
                                                   const Manifest& manifest,
                                                   int64_t disk_bytes_max);

}  // namespace berth::image
