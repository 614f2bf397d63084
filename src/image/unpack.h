// SPDX-License-Identifier: Apache-2.0
// Files that were packed for their way, with gzip or zstd: one stream, or several in a row. Blocks.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "image/file_writer.h"
#include "image/manifest.h"

namespace berth::image {

// Appends what is in the packed file. BadRequest names the file: it is no such stream, it is cut
// short, something else follows it, or more than `bytes_max` bytes come out. TooManyRequests if the
// disk is full. REQUIRES: a packing.
Status UnpackFile(const std::string& path, Packing packing, int64_t bytes_max, FileWriter& writer);

}  // namespace berth::image
