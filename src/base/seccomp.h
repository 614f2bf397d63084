// SPDX-License-Identifier: Apache-2.0
// Who may make fewer system calls than we may: a process under seccomp filters that we are not
// under, such as the QEMU of a guest (-sandbox on).
#pragma once

#include <sys/types.h>

#include <string_view>

namespace berth {

// How many filters the text of a /proc/PID/status says; at least one where a kernel before 5.9 says
// no number.
int SeccompFilters(std::string_view status);

// Whether that process is under more of them than we are. Those of a container or of a unit of
// systemd are on both. False for a process that cannot be seen. Blocks.
bool IsMoreConfined(pid_t pid);

}  // namespace berth
