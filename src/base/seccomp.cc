// SPDX-License-Identifier: Apache-2.0
#include "base/seccomp.h"

#include <algorithm>
#include <string>

#include "base/proc_file.h"
#include "base/strings.h"

namespace berth {
namespace {

// The number behind the name at the begin of a line.
std::optional<int> NumberOf(std::string_view status, std::string_view name) {
  for (const std::string_view line : Split(status, '\n')) {
    if (!line.starts_with(name)) continue;
    const auto number = ParseUint(Trim(line.substr(name.size())));
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> SeccompFilters(std::string_view status) {
  const std::optional<int> mode = NumberOf(status, "Seccomp:");
  if (!mode) return std::nullopt;
  return std::max(NumberOf(status, "Seccomp_filters:").value_or(0), *mode != 0 ? 1 : 0);
}

Confinement ConfinementOf(pid_t pid) {
  const auto theirs = SeccompFilters(ReadProcFile("/proc/" + std::to_string(pid) + "/status"));
  const auto ours = SeccompFilters(ReadProcFile("/proc/self/status"));
  if (!theirs || !ours) return Confinement::kUnknown;
  return *theirs > *ours ? Confinement::kMore : Confinement::kNotMore;
}

}  // namespace berth
