// SPDX-License-Identifier: Apache-2.0
#include "poollet/host/breaker.h"

#include <algorithm>

namespace berth::poollet {

bool IsSuspicious(const HistorySeen& seen) {
  if (seen.incarnation_known == 0) return false;  // the first contact of all
  return seen.incarnation != seen.incarnation_known || seen.revision < seen.revision_known;
}

bool IsMassDeletion(size_t deletions, size_t running) {
  return deletions > std::max<size_t>(3, running / 10);
}

}  // namespace berth::poollet
