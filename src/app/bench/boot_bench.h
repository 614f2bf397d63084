// SPDX-License-Identifier: Apache-2.0
// Measures real guests from outside: a server, libvirtd, runtimes and a poollet as `berth up`
// starts them, and machines of the demo image. The clock runs from the moment a create is sent; it
// ends when the machine is seen running on a watch, and when the guest's first program speaks on
// its console. What it is made of is in boot_steps.h.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/figures.h"
#include "base/result.h"

namespace berth::app {

struct BootBenchOptions {
  std::string dir;      // where the folders of server and host are made; short, for sockets
  std::string run_dir;  // for sockets and secrets
  std::string acceleration = "auto";
  int rounds = 5;  // of one guest
  int many = 10;   // guests at once
  std::function<void(std::string_view)> progress;
};

// Figures: create_to_running_ms, create_to_userspace_ms and control_plane_ms of one guest, the
// first two also of many at once (create_to_running_10_ms); and the steps of that round of one
// guest whose control_plane_ms is shown (step_api_ms, …), which add up to its own figures. NotFound
// names what this machine needs to run guests. Blocks; makes its own loop and processes, and leaves
// none.
Result<std::vector<Figure>> RunBootBench(const BootBenchOptions& options);

}  // namespace berth::app
