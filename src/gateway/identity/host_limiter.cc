// SPDX-License-Identifier: Apache-2.0
#include "gateway/identity/host_limiter.h"

namespace berth::gateway {

bool HostLimiter::Take(std::string_view host, Time now) {
  auto found = buckets_.find(host);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kHostsMax) {
      std::erase_if(buckets_, [now](const auto& entry) { return entry.second.full(now); });
    }
    // More than the server can serve at once. Those who have their turns make room for the others.
    if (buckets_.size() >= kHostsMax) return false;
    found = buckets_.emplace(std::string(host), Bucket(burst_, per_second_)).first;
  }
  return found->second.Take(now);
}

}  // namespace berth::gateway
