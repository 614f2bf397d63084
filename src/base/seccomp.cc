// SPDX-License-Identifier: Apache-2.0
#include "base/seccomp.h"

#include <algorithm>
#include <string>

#include "base/proc_file.h"
#include "base/strings.h"

namespace berth {
namespace {

// The number behind the name at the begin of a line; 0 if there is none.
int NumberOf(std::string_view status, std::string_view name) {
  for (const std::string_view line : Split(status, '\n')) {
    if (!line.starts_with(name)) continue;
    return static_cast<int>(ParseUint(Trim(line.substr(name.size()))).value_or(0));
  }
  return 0;
}

}  // namespace

int SeccompFilters(std::string_view status) {
  const int is_filtered = NumberOf(status, "Seccomp:") != 0 ? 1 : 0;
  return std::max(NumberOf(status, "Seccomp_filters:"), is_filtered);
}

bool IsMoreConfined(pid_t pid) {
  const std::string theirs = ReadProcFile("/proc/" + std::to_string(pid) + "/status");
  return SeccompFilters(theirs) > SeccompFilters(ReadProcFile("/proc/self/status"));
}

}  // namespace berth
