// SPDX-License-Identifier: Apache-2.0
// Measures real guests from outside: a server, libvirtd, runtimes and a poollet as `berth up`
// starts them, and machines of the demo image. The clock runs from the moment a create is sent; it
// ends when the machine is seen running on a watch, and when the guest's first program speaks on
// its console.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/figures.h"
#include "base/result.h"
#include "base/time.h"

namespace berth::app {

// A call of somebody else's program, as the machine runtime wrote it down (runtime/span_log.h).
struct ForeignSpan {
  std::string name;  // "libvirt.start"
  WallTime begin;
  WallTime end;
};

// One span per line; what is none is left out.
std::vector<ForeignSpan> ParseSpans(std::string_view lines);
// How much of the time from `begin` to `end` is covered by spans whose names begin like this;
// counted once where they overlap.
Duration Covered(const std::vector<ForeignSpan>& spans,
                 std::string_view prefix,
                 WallTime begin,
                 WallTime end);

struct BootBenchOptions {
  std::string dir;      // where the folders of server and host are made; short, for sockets
  std::string run_dir;  // for sockets and secrets
  std::string acceleration = "auto";
  int rounds = 5;  // of one guest
  int many = 10;   // guests at once
  std::function<void(std::string_view)> progress;
};

// Figures: create_to_running_ms, create_to_userspace_ms and control_plane_ms of one guest, the
// first two also of many at once (create_to_running_10_ms). NotFound names what this machine needs
// to run guests. Blocks; makes its own loop and processes, and leaves none.
Result<std::vector<Figure>> RunBootBench(const BootBenchOptions& options);

}  // namespace berth::app
