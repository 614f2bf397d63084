// SPDX-License-Identifier: Apache-2.0
// A RealHost is a real `berth poollet` on a `berth runtime fake`, both child processes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "app/bench/bench_world.h"
#include "app/bench/child_process.h"
#include "base/result.h"
#include "iri/grpc/client.h"
#include "rt/task.h"

namespace berth::app {

class RealHost {
 public:
  // Joins the world's server with a token; ok when its pool, of the same name, is ready. It is as
  // large as a BenchHost.
  static rt::Task<Result<std::unique_ptr<RealHost>>> Start(BenchWorld* world, std::string name);

  // Resident memory of the poollet, in MB.
  Result<double> PoolletRssMb() const { return poollet_.RssMb(); }
  // Its poollet gets no packet any more and sends none; nobody is told. The runtime goes on, with
  // its guests.
  Status Lose();
  // How many guests run, asked of the runtime.
  rt::Task<Result<size_t>> CountRunning();
  // REQUIRES: not lost.
  Status Stop();

 private:
  RealHost(rt::Loop& loop, const std::string& socket, ChildProcess runtime, ChildProcess poollet)
      : runtime_(std::move(runtime)), poollet_(std::move(poollet)), client_(loop, socket) {}

  ChildProcess runtime_;
  ChildProcess poollet_;
  iri::RuntimeClient client_;
};

}  // namespace berth::app
