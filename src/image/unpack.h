// SPDX-License-Identifier: Apache-2.0
// Files that were packed for their way, with gzip or zstd: one stream, or several in a row. Blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "image/file_writer.h"
#include "image/manifest.h"

namespace berth::image {

// Told how much of what is packed has been read, and of how much: for each percent once, on the
// thread that unpacks.
using UnpackProgress = std::function<void(int64_t bytes, int64_t of)>;

// Appends what is in the packed file. BadRequest names the file: it is no such stream, it is cut
// short, something else follows it, or more than `bytes_max` bytes come out. TooManyRequests if the
// disk is full. REQUIRES: a packing.
Status UnpackFile(const std::string& path,
                  Packing packing,
                  int64_t bytes_max,
                  FileWriter& writer,
                  const UnpackProgress& progress = {});

// How many bytes that would write: zeros become holes, which take no room. It is read to its end:
// what a stream says about its length need not be so. Fails as UnpackFile.
Result<int64_t> UnpackedWritten(const std::string& path, Packing packing, int64_t bytes_max);

}  // namespace berth::image
