// SPDX-License-Identifier: Apache-2.0
// Which scheduler may bind (S3c): the holder of the Lease berth-system/scheduler, in the term of
// its leaseTransitions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/cache/watch_cache.h"
#include "base/result.h"
#include "store/store.h"

namespace berth::apiserver {

constexpr std::string_view kSystemNamespace = "berth-system";
constexpr std::string_view kSchedulerLease = "scheduler";

class SchedulerTerm {
 public:
  explicit SchedulerTerm(const WatchCache& cache) : cache_(cache) {}

  // The condition under which this holder binds in this term; Conflict if the Lease says otherwise.
  Result<store::Condition> Check(const std::string& holder, int64_t term);

 private:
  const WatchCache& cache_;
  // The Lease as it was last read: it changes every few seconds, and is asked for with each bind.
  store::Revision read_at_;
  std::string holder_;
  int64_t transitions_ = 0;
};

}  // namespace berth::apiserver
