// SPDX-License-Identifier: Apache-2.0
#include "rt/sim/sim_blocking_pool.h"

#include <fmt/core.h>

#include <utility>

#include "base/check.h"

namespace berth::rt {

SimBlockingPool::~SimBlockingPool() { CHECK(waiting_ == 0) << "jobs outlive their pool"; }

Status SimBlockingPool::Submit(std::string_view name, Loop& loop, Fn job, Fn done) {
  if (waiting_ >= options_.jobs_max) {
    return {Reason::kTooManyRequests,
            fmt::format(
                "job {}: {} jobs are waiting, the limit is {}", name, waiting_, options_.jobs_max)};
  }
  ++waiting_;
  const Duration latency = Duration::Nanos(
      loop.random().Between(options_.latency_min.nanos(), options_.latency_max.nanos()));
  loop.After(name, latency, [this, job = std::move(job), done = std::move(done)]() mutable {
    --waiting_;
    job();
    done();
  });
  return OkStatus();
}

}  // namespace berth::rt
