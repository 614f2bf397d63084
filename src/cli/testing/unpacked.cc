// SPDX-License-Identifier: Apache-2.0
#include "cli/testing/unpacked.h"

#include <zlib.h>

namespace berth::cli {
namespace {

constexpr size_t kBytesMax = 4 << 20;

}  // namespace

std::string UnpackedGz(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return "";
  std::string out(kBytesMax, '\0');
  const int size = gzread(file, out.data(), static_cast<unsigned>(out.size()));
  gzclose(file);
  out.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return out;
}

}  // namespace berth::cli
