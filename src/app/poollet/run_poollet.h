// SPDX-License-Identifier: Apache-2.0
// Puts a poollet together on this machine and runs it until it is told to stop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "poollet/host/host.h"
#include "poollet/session/session.h"

namespace berth::app {

// One pool of the host and the runtime behind it.
struct PoolRuntime {
  std::string pool;      // "" for none
  std::string flag;      // that names the endpoint, for messages
  std::string endpoint;  // "" looks in the variable, then in the well-known places
  std::string variable;  // value of IRI_MACHINE_RUNTIME_ENDPOINT or its like
};

struct PoolletRunOptions {
  std::string data_dir;
  std::string host;
  std::string token;
  std::vector<std::string> servers;
  PoolRuntime machine;
  PoolRuntime volume;
  PoolRuntime bucket;
  std::vector<uid_t> runtime_users;  // beside root and ourselves
  poollet::LeaveMode on_stop = poollet::LeaveMode::kKeep;
  Duration drain_limit = poollet::kDrainLimit;
  Duration poll_interval = Duration::Seconds(5);
  Duration statistics_interval = Duration::Seconds(15);
  poollet::HostOptions::MassDeletion mass_deletion =
      poollet::HostOptions::MassDeletion::kNeedsApproval;
  std::string metrics;  // "ADDR:PORT"; "" for none
  std::string trace;    // file for spans; "" for none
};

// `on_ready` is called when the poollet runs: joined, and its runtimes found. The first SIGTERM or
// SIGINT leaves as asked, the second one at once.
Status RunPoollet(PoolletRunOptions options, std::function<void()> on_ready);

}  // namespace berth::app
