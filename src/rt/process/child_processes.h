// SPDX-License-Identifier: Apache-2.0
// The ProcessRunner of production. A thread of a pool starts, reads and reaps each process, so the
// number of threads is the number of processes at once.
#pragma once

#include "rt/blocking_pool.h"
#include "rt/process/process_runner.h"

namespace berth::rt {

class ChildProcesses final : public ProcessRunner {
 public:
  // The pool outlives this and is used for nothing else.
  explicit ChildProcesses(BlockingPool& pool) : pool_(pool) {}

  Task<Result<ProcessEnd>> Run(ProcessRequest request) override;

 private:
  BlockingPool& pool_;
};

}  // namespace berth::rt
