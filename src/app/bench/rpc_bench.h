// SPDX-License-Identifier: Apache-2.0
// Measures sessions: mutual TLS and bidirectional streams over net/h2, the server in a process of
// its own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/figures.h"
#include "base/result.h"

namespace berth::app {

struct RpcBenchOptions {
  std::string dir;       // for the certificate authority
  int sessions = 1'000;  // that are open at once
  int pairs = 100'000;   // messages there and back, for each of the two figures
  std::function<void(std::string_view)> progress;
};

// Figures: session_setup_ms and session_setup_server_cpu_ms (mutual TLS, from connect to the first
// answer on its stream), session_server_kb (idle), pair_us_1 (one session, one message after the
// other), pair_us_1000 and pair_server_cpu_us_1000 (all sessions at once). Blocks; makes its own
// loop. REQUIRES: no threads.
Result<std::vector<Figure>> RunRpcBench(const RpcBenchOptions& options);

}  // namespace berth::app
