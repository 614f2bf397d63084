// SPDX-License-Identifier: Apache-2.0
#include "image/registry/cache_trim.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "image/layout_writer.h"
#include "image/manifest.h"
#include "image/unpacked_parts.h"

namespace berth::image {
namespace {

struct Aged {
  Descriptor entry;
  std::pair<int64_t, int64_t> last_use;  // seconds and nanoseconds: its manifest is written again
};

std::vector<Aged> YoungestFirst(const Layout& layout, const std::vector<Descriptor>& entries) {
  std::vector<Aged> aged;
  for (const Descriptor& entry : entries) {
    struct stat status = {};
    const bool is_there = lstat(layout.FileOf(entry).c_str(), &status) == 0;
    aged.push_back({.entry = entry,
                    .last_use = is_there ? std::pair<int64_t, int64_t>(status.st_mtim.tv_sec,
                                                                       status.st_mtim.tv_nsec)
                                         : std::pair<int64_t, int64_t>()});
  }
  std::ranges::sort(aged, std::ranges::greater(), &Aged::last_use);
  return aged;
}

}  // namespace

Result<int64_t> TrimCache(const Layout& layout, int64_t keep_bytes, WallTime now) {
  if (!layout.Exists()) return int64_t{0};
  TRY(const std::vector<Descriptor> entries, layout.Entries());
  std::set<std::string> counted;
  std::set<std::pair<std::string, std::string>> kept;
  int64_t bytes = 0;
  for (const Aged& aged : YoungestFirst(layout, entries)) {
    const auto image = layout.Read(aged.entry, aged.entry.architecture);
    if (!image.ok()) continue;  // broken: fetched again when it is wanted
    int64_t more = 0;
    for (const Descriptor& part : image->manifest.parts()) {
      if (!counted.insert(part.digest).second) continue;
      more += part.size + UnpackedBytes(layout, part);
    }
    if (more > keep_bytes - bytes) break;
    bytes += more;
    kept.emplace(aged.entry.tag, aged.entry.architecture);
  }
  TRY_STATUS(RemoveEntries(layout, [&kept](const Descriptor& entry) {
    return !kept.contains({entry.tag, entry.architecture});
  }));
  return Sweep(layout, now);
}

}  // namespace berth::image
