// SPDX-License-Identifier: Apache-2.0
// The BlockingPool of simulations: a job takes a time drawn from the loop's seed, runs inline when
// that time has passed, and never on a thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "rt/blocking_pool.h"

namespace berth::rt {

class SimBlockingPool final : public BlockingPool {
 public:
  struct Options {
    Duration latency_min = Duration::Micros(50);
    Duration latency_max = Duration::Millis(5);
    size_t jobs_max = 1024;
  };
  explicit SimBlockingPool(Options options) : options_(options) {}
  SimBlockingPool() : SimBlockingPool(Options()) {}
  ~SimBlockingPool() override;

 protected:
  Status Submit(std::string_view name, Loop& loop, Fn job, Fn done) override;

 private:
  const Options options_;
  size_t waiting_ = 0;
};

}  // namespace berth::rt
