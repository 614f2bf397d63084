// SPDX-License-Identifier: Apache-2.0
// Who may make fewer system calls than we may: a process under seccomp filters that we are not
// under, such as the QEMU of a guest (-sandbox on).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace berth {

// How many filters the text of a /proc/PID/status says; at least one where a kernel before 5.9 says
// no number. None if it does not speak of them: it could not be read.
std::optional<int> SeccompFilters(std::string_view status);

enum class Confinement : uint8_t {
  kNotMore,
  kMore,
  // It cannot be seen: it is gone, hidden from us (hidepid) or of another namespace, or there is no
  // descriptor left to look with.
  kUnknown,
};
// Whether that process is under more filters than we are. Those of a container or of a unit of
// systemd are on both. Blocks.
Confinement ConfinementOf(pid_t pid);

}  // namespace berth
