// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/budget.h"

#include <fmt/core.h>

#include <algorithm>

namespace berth::runtime {

Status CheckRoom(const Budget& budget,
                 const FileSystemRoom& room,
                 Promise promise,
                 int64_t more,
                 std::string_view what) {
  const int64_t left = budget.total - budget.used();
  if (more > left) {
    return {Reason::kTooManyRequests,
            fmt::format("no room for {} of {} bytes: {} of {} bytes are promised, {} are free "
                        "(volumes {}, snapshots {}, images {}, unknown files {}, "
                        "local disks of machines {})",
                        what,
                        more,
                        budget.used(),
                        budget.total,
                        std::max<int64_t>(left, 0),
                        budget.volumes,
                        budget.snapshots,
                        budget.images + budget.arriving,
                        budget.unknown,
                        budget.elsewhere)};
  }
  const int64_t needed =
      promise == Promise::kWhole ? room.unwritten + more : std::min(more, kHeadroomBytes);
  if (needed > room.available) {
    return {Reason::kTooManyRequests,
            fmt::format("no room for {} of {} bytes: the file system has {} bytes left, {} of them "
                        "are promised to others",
                        what,
                        more,
                        room.available,
                        promise == Promise::kWhole ? room.unwritten : 0)};
  }
  return OkStatus();
}

int64_t TotalBytes(int64_t capacity, int64_t reserve, double overcommit) {
  const double total = static_cast<double>(std::max<int64_t>(capacity - reserve, 0)) * overcommit;
  constexpr double kMost = static_cast<double>(int64_t{1} << 62);
  return static_cast<int64_t>(std::min(total, kMost));
}

}  // namespace berth::runtime
