// SPDX-License-Identifier: Apache-2.0
// How much memory this process may have, whoever says so: the host, a control group, the shell.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace berth::app {

struct MemoryLimit {
  uint64_t bytes = 0;  // 0: not known
  std::string source;  // "the host", "/sys/fs/cgroup/a/memory.max", "ulimit -v"
};

// The smallest one. `root` is where /proc and /sys are found; "" for this host.
MemoryLimit ReadMemoryLimit(const std::string& root = "");

// What an empty server needs to work at all, and what is wanted for some thousand objects.
constexpr uint64_t kMemoryMin = 96ULL << 20;
constexpr uint64_t kMemoryWanted = 512ULL << 20;

// An error that says what to change if a server cannot work with this; a line in the log if it can,
// but not for long.
Status CheckMemory(const MemoryLimit& limit);

}  // namespace berth::app
