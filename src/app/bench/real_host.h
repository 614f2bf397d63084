// SPDX-License-Identifier: Apache-2.0
// A RealHost is a real `berth poollet` on a `berth runtime fake`, both child processes. Its way to
// the server goes through this process, which can lose its packets: nobody but root may touch the
// sockets of a poollet (app/process/private_memory.h).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "app/bench/bench_world.h"
#include "app/bench/child_process.h"
#include "base/metrics.h"
#include "base/result.h"
#include "iri/grpc/client.h"
#include "net/splice/splicer.h"
#include "rt/task.h"

namespace berth::app {

class RealHost {
 public:
  // Joins the world's server with a token; ok when its pool, of the same name, is ready. It is as
  // large as a BenchHost.
  static rt::Task<Result<std::unique_ptr<RealHost>>> Start(BenchWorld* world, std::string name);

  // REQUIRES: Stop() was awaited.
  ~RealHost() = default;

  // Resident memory of the poollet, in MB.
  Result<double> PoolletRssMb() const { return poollet_->RssMb(); }
  // From now on no packet passes between it and the server; nobody is told. The runtime goes on,
  // with its guests.
  Status Lose();
  // How many guests run, asked of the runtime.
  rt::Task<Result<size_t>> CountRunning();
  rt::Task<Status> Stop();

 private:
  RealHost(BenchWorld& world, int listener, std::string name);
  rt::Task<Status> StartAll(BenchWorld* world);

  const std::string name_;
  const std::string folder_;
  const std::string socket_;
  metrics::Registry metrics_;
  net::Splicer relay_;
  const std::string server_;
  std::optional<ChildProcess> runtime_;
  std::optional<ChildProcess> poollet_;
  iri::RuntimeClient client_;
  bool is_lost_ = false;
};

}  // namespace berth::app
