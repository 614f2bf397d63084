// SPDX-License-Identifier: Apache-2.0
#include "app/poollet/start_pages.h"

#include <sys/mman.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/log.h"

namespace berth::app {

void GiveBackStartPages() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  int64_t bytes = 0;
  while (std::getline(maps, line)) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    // "55d0c0000000-55d0c0800000 r-xp 00200000 fe:00 1234   /usr/bin/berth". Only code: read-only
    // data may hold relocations, which are nowhere else.
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) continue;
    const bool is_code = line.find(" r-xp ") != std::string::npos;
    const bool is_file = line.find(" /") != std::string::npos;
    if (!is_code || !is_file) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that the kernel told us.
    if (madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED) == 0) {
      bytes += static_cast<int64_t>(end - begin);
    }
  }
  LOG_DEBUG("gave back the pages of {} KiB of code", bytes >> 10);
}

}  // namespace berth::app
