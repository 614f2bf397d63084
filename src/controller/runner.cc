// SPDX-License-Identifier: Apache-2.0
#include "controller/runner.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "rt/join_all.h"

namespace berth::controller {

rt::Task<Status> Runner::Run() {
  std::vector<rt::Task<Status>> workers;
  for (size_t i = 0; i < workers_; ++i) workers.push_back(Work());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(workers));
  co_return ends.front();
}

rt::Task<Status> Runner::Work() {
  const rt::Context& context = co_await rt::CurrentContext();
  for (;;) {
    CO_TRY(const std::string key, co_await queue_.Get());
    const Result<std::optional<Duration>> result = co_await reconciler_.Reconcile(key);
    queue_.Done(key);
    if (result.ok()) {
      queue_.Forget(key);
      if (*result) queue_.AddAfter(key, **result);
      continue;
    }
    // Something of its own that was cancelled is a failure like others.
    if (context.cancelled()) co_return Cancelled("the controller stops");
    // Conflicts are how controllers and users meet: they are no news.
    if (result.status().Is(Reason::kConflict)) {
      LOG_DEBUG("{} {}: {}", name_, key, result.status().ToString());
    } else {
      LOG_WARNING("{} {}: {}", name_, key, result.status().ToString());
    }
    queue_.AddAfterFailure(key);
  }
}

}  // namespace berth::controller
