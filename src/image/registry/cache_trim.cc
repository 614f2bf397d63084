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
  size_t place = 0;                      // in the index: of the same moment the last is younger
};

std::vector<Aged> YoungestFirst(const Layout& layout, const std::vector<Descriptor>& entries) {
  std::vector<Aged> aged;
  for (const Descriptor& entry : entries) {
    struct stat status = {};
    const bool is_there = lstat(layout.FileOf(entry).c_str(), &status) == 0;
    aged.push_back({.entry = entry,
                    .last_use = is_there ? std::pair<int64_t, int64_t>(status.st_mtim.tv_sec,
                                                                       status.st_mtim.tv_nsec)
                                         : std::pair<int64_t, int64_t>(),
                    .place = aged.size()});
  }
  std::ranges::sort(aged, std::ranges::greater(), [](const Aged& one) {
    return std::pair(one.last_use, one.place);
  });
  return aged;
}

// Of its parts, those that were not counted before.
int64_t CountParts(const Layout& layout, const FoundImage& image, std::set<std::string>& counted) {
  int64_t bytes = 0;
  for (const Descriptor& part : image.manifest.parts()) {
    if (counted.insert(part.digest).second) bytes += part.size + UnpackedBytes(layout, part);
  }
  return bytes;
}

}  // namespace

Result<int64_t> CachedBytes(const Layout& layout) {
  if (!layout.Exists()) return int64_t{0};
  TRY(const std::vector<Descriptor> entries, layout.Entries());
  std::set<std::string> counted;
  int64_t bytes = 0;
  for (const Descriptor& entry : entries) {
    const auto image = layout.Read(entry, entry.architecture);
    if (image.ok()) bytes += CountParts(layout, *image, counted);
  }
  return bytes;
}

Result<bool> ForgetOldest(const Layout& layout, const std::string& kept, WallTime now) {
  if (!layout.Exists()) return false;
  // What cannot go now is not forgotten: it would take its room unseen.
  TRY_STATUS(LayoutHold::Take(layout.folder(), LayoutHold::Kind::kAlone));
  TRY(const std::vector<Descriptor> entries, layout.Entries());
  std::vector<Aged> aged = YoungestFirst(layout, entries);
  std::erase_if(aged, [&kept](const Aged& one) { return one.entry.digest == kept; });
  if (aged.empty()) return false;
  const Descriptor oldest = aged.back().entry;
  TRY_STATUS(RemoveEntries(layout, [&oldest](const Descriptor& entry) {
    return entry.tag == oldest.tag && entry.architecture == oldest.architecture;
  }));
  TRY_STATUS(Sweep(layout, now));
  return true;
}

Result<int64_t> TrimCache(const Layout& layout, int64_t keep_bytes, WallTime now) {
  if (!layout.Exists()) return int64_t{0};
  TRY(const std::vector<Descriptor> entries, layout.Entries());
  std::set<std::string> counted;
  std::set<std::pair<std::string, std::string>> kept;
  int64_t bytes = 0;
  for (const Aged& aged : YoungestFirst(layout, entries)) {
    const auto image = layout.Read(aged.entry, aged.entry.architecture);
    if (!image.ok()) continue;  // broken: fetched again when it is wanted
    const int64_t more = CountParts(layout, *image, counted);
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
