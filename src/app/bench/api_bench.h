// SPDX-License-Identifier: Apache-2.0
// Measures the whole server from outside: a child process, real TLS, RBAC and audit on.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/figures.h"
#include "base/result.h"
#include "base/time.h"

namespace berth::app {

struct ApiBenchOptions {
  std::string dir;       // where a folder for each server is made, and removed afterwards
  int etcd_members = 0;  // of a private etcd that has the store; 0: the embedded one
  int clients = 16;
  size_t listed = 10'000;  // machines of one list; a start is measured with ten times as many
  int watchers = 1'000;
  int starts = 5;                             // how often a start is measured
  Duration duration = Duration::Seconds(10);  // of creates, and of events
  std::function<void(std::string_view)> progress;
};

// Figures: fsync_per_s, ready_empty_ms, rss_idle_mb, create_rate_16, create_p99_ms_16, list_10k_ms,
// watch_events_rate, ready_100k_ms, rss_100k_mb. With etcd: etcd_create_rate_16,
// etcd_create_p99_ms_16, etcd_list_10k_ms, etcd_watch_events_rate. Blocks; makes its own loop.
Result<std::vector<Figure>> RunApiBench(const ApiBenchOptions& options);

}  // namespace berth::app
