// SPDX-License-Identifier: Apache-2.0
#include "poollet/host/breaker.h"

namespace berth::poollet {
namespace {

// Fewer are everyday life on any host, however few things it runs.
constexpr size_t kMassMin = 3;
constexpr size_t kMassDivisor = 10;

}  // namespace

bool IsSuspicious(const HistorySeen& seen) {
  if (seen.incarnation_known == 0) return false;  // the first contact of all
  // A server that does not say its revision is not judged by it.
  const bool is_older = seen.revision != 0 && seen.revision < seen.revision_known;
  return seen.incarnation != seen.incarnation_known || is_older;
}

bool IsMassDeletion(size_t deletions, size_t running) {
  return deletions >= kMassMin && deletions * kMassDivisor > running;
}

}  // namespace berth::poollet
