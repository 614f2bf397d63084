// SPDX-License-Identifier: Apache-2.0
// Measures a whole cluster from outside: a server process on a real disk, hosts that speak the
// session protocol with a connection and a certificate each, creators and a watch over HTTPS. The
// clock runs from the moment a create is sent to the moment its binding is seen on the watch.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/figures.h"
#include "base/result.h"
#include "base/time.h"

namespace berth::app {

struct ClusterBenchOptions {
  std::string dir;  // where a folder for each server is made
  int hosts = 1'000;
  int many_hosts = 5'000;  // 0: only the smaller world
  int creators = 64;
  Duration duration = Duration::Seconds(15);  // of each rate
  size_t idle_machines = 500;                 // one after the other
  size_t burst = 3'000;
  size_t machines = 5'000;        // that the server's memory is measured with
  size_t poollet_machines = 200;  // and a poollet's, at most kBenchMachinesPerHost
  int set_replicas = 10'000;
  int sets = 5;                   // one after the other
  std::vector<std::string> only;  // parts of ClusterBenchParts(); none: all of them
  std::function<void(std::string_view)> progress;
};

// The parts that may be asked for by themselves, in their order.
std::span<const std::string_view> ClusterBenchParts();

// Figures: fsync_per_s, set_rate, rss_poollet_mb, rss_session_kb, idle_p50_ms, idle_p99_ms,
// burst_p99_ms, rss_server_mb, cluster_rate_1k, running_rate, cluster_rate_5k. Blocks; makes its
// own loop and processes. REQUIRES: no threads.
Result<std::vector<Figure>> RunClusterBench(const ClusterBenchOptions& options);

}  // namespace berth::app
