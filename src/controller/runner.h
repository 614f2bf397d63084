// SPDX-License-Identifier: Apache-2.0
// A Runner works off the keys of a controller: some workers, one key per worker, failures again
// later. What a controller knows about the world comes from informers; what it does goes through
// the client.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "client/cache/health_report.h"
#include "client/cache/work_queue.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::controller {

// Brings the world one step closer to what one key asks for. Level-triggered: it looks at the
// present state, never at what happened, and may be called at any time, again and again.
class Reconciler {
 public:
  virtual ~Reconciler() = default;
  // A duration asks to be called again after it; an error, after a growing pause.
  virtual rt::Task<Result<std::optional<Duration>>> Reconcile(std::string key) = 0;
};

class Runner {
 public:
  // `name` is a literal. The reconciler outlives the runner.
  Runner(rt::Loop& loop, std::string_view name, Reconciler& reconciler, size_t workers)
      : name_(name), reconciler_(reconciler), workers_(workers), queue_(loop) {}

  client::WorkQueue& queue() { return queue_; }
  const client::WorkQueue& queue() const { return queue_; }
  std::string_view name() const { return name_; }
  // Tells how the queue is, and what the controller follows: reflectors, informers.
  template <class... Followed>
  void Report(client::HealthReport& report, const Followed&... followed) const {
    report.Add(name_, queue_);
    (report.Add(name_, followed), ...);
  }
  // Runs until it is cancelled.
  rt::Task<Status> Run();

 private:
  rt::Task<Status> Work();

  const std::string_view name_;
  Reconciler& reconciler_;
  const size_t workers_;
  client::WorkQueue queue_;
};

}  // namespace berth::controller
