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

// The figures of boot_figures.h, of one guest and of many at once. NotFound names what this machine
// needs to run guests. Internal if the steps of a guest do not add up to what it took. Blocks;
// makes its own loop and processes, and leaves none.
Result<std::vector<Figure>> RunBootBench(const BootBenchOptions& options);

}  // namespace berth::app
