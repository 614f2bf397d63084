// SPDX-License-Identifier: Apache-2.0
#include "app/process/memory_limit.h"

#include <sys/resource.h>

#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "base/strings.h"

namespace berth::app {
namespace {

// Control groups of the first version write a very large number for "none".
constexpr uint64_t kNoLimit = 1ULL << 60;

std::optional<uint64_t> NumberIn(std::string_view text) {
  uint64_t number = 0;
  const std::string_view digits = Trim(text);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec != std::errc() || number >= kNoLimit) return std::nullopt;
  return number;
}

std::optional<uint64_t> FirstLineOf(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return NumberIn(line);
}

void Lower(MemoryLimit& limit, std::optional<uint64_t> bytes, const std::string& source) {
  if (!bytes.has_value() || (limit.bytes != 0 && limit.bytes <= *bytes)) return;
  limit = {.bytes = *bytes, .source = source};
}

std::optional<uint64_t> HostMemory(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("MemTotal:")) continue;
    const auto kilobytes = NumberIn(line.substr(line.find(':') + 1));
    if (kilobytes.has_value()) return *kilobytes * 1024;
  }
  return std::nullopt;
}

// A group cannot have more than those around it. Inside a container the path may be the host's,
// and only the topmost folder be there.
void LowerByGroups(MemoryLimit& limit,
                   const std::string& root,
                   std::string group,
                   std::string_view folder,
                   std::string_view file) {
  for (;;) {
    while (group.ends_with('/')) group.pop_back();
    const std::string path = std::string(folder) + group + "/" + std::string(file);
    Lower(limit, FirstLineOf(root + path), path);
    if (group.empty()) return;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

// Lines are "0::/a/b" of the second version, "4:memory:/a/b" of the first.
void LowerByControlGroups(MemoryLimit& limit, const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) LowerByGroups(limit, root, group, "/sys/fs/cgroup", "memory.max");
    if (controllers == "memory") {
      LowerByGroups(limit, root, group, "/sys/fs/cgroup/memory", "memory.limit_in_bytes");
    }
  }
}

void LowerByShell(MemoryLimit& limit) {
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY) return;
  Lower(limit, space.rlim_cur, "ulimit -v");
}

}  // namespace

MemoryLimit ReadMemoryLimit(const std::string& root) {
  MemoryLimit limit;
  Lower(limit, HostMemory(root), "the host");
  LowerByControlGroups(limit, root);
  LowerByShell(limit);
  return limit;
}

Status CheckMemory(const MemoryLimit& limit) {
  if (limit.bytes == 0 || limit.bytes >= kMemoryWanted) return OkStatus();
  if (limit.bytes < kMemoryMin) {
    return Unavailable(fmt::format("memory: {} allows {} MiB, a server needs {} MiB",
                                   limit.source,
                                   limit.bytes >> 20,
                                   kMemoryMin >> 20));
  }
  LOG_WARNING(
      "memory: {} allows {} MiB, {} MiB are wanted: some thousand objects may end this "
      "process",
      limit.source,
      limit.bytes >> 20,
      kMemoryWanted >> 20);
  return OkStatus();
}

}  // namespace berth::app
