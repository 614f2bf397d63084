// SPDX-License-Identifier: Apache-2.0
// Packed content for tests.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <string>
#include <string_view>

#include "base/check.h"

namespace berth::image {

inline std::string Gzipped(std::string_view content) {
  constexpr int kWithGzipHeader = 16;
  constexpr int kMemoryLevel = 8;
  z_stream stream = {};
  CHECK(deflateInit2(&stream,
                     Z_DEFAULT_COMPRESSION,
                     Z_DEFLATED,
                     MAX_WBITS + kWithGzipHeader,
                     kMemoryLevel,
                     Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string Zstandard(std::string_view content) {
  constexpr int kLevel = 3;
  std::string packed(ZSTD_compressBound(content.size()), '\0');
  const size_t bytes =
      ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), kLevel);
  CHECK(ZSTD_isError(bytes) == 0);
  packed.resize(bytes);
  return packed;
}

}  // namespace berth::image
