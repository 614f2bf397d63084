// SPDX-License-Identifier: Apache-2.0
#include "app/process/start_pages.h"

#include <sys/mman.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/log.h"

namespace berth::app {
namespace {

// A part of the address space, as /proc/self/smaps describes it.
struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool is_readable_file = false;  // and nobody may write to it
  bool has_own_pages = false;     // relocated, or written before it became read-only: nowhere else
};

int64_t GiveBack(const Mapping& mapping) {
  if (!mapping.is_readable_file || mapping.has_own_pages) return 0;
  const size_t size = mapping.end - mapping.begin;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that the kernel told us.
  void* const begin = reinterpret_cast<void*>(mapping.begin);
  return madvise(begin, size, MADV_DONTNEED) == 0 ? static_cast<int64_t>(size) : 0;
}

}  // namespace

void GiveBackStartPages() {
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  Mapping mapping;
  int64_t bytes = 0;
  while (std::getline(smaps, line)) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    int64_t kilobytes = 0;
    // "55d0c0000000-55d0c0800000 r-xp 00200000 fe:00 1234   /usr/bin/berth", then its figures.
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
      bytes += GiveBack(mapping);
      const bool is_constant =
          line.find(" r-xp ") != std::string::npos || line.find(" r--p ") != std::string::npos;
      mapping = {.begin = begin,
                 .end = end,
                 .is_readable_file = is_constant && line.find(" /") != std::string::npos};
    } else if (std::sscanf(line.c_str(), "Anonymous: %" SCNd64, &kilobytes) == 1 ||
               std::sscanf(line.c_str(), "Swap: %" SCNd64, &kilobytes) == 1) {
      mapping.has_own_pages = mapping.has_own_pages || kilobytes != 0;
    }
  }
  bytes += GiveBack(mapping);
  LOG_DEBUG("gave back the pages of {} KiB of files", bytes >> 10);
}

}  // namespace berth::app
