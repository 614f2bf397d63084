// SPDX-License-Identifier: Apache-2.0
#include "gateway/identity/attempt_limiter.h"

namespace berth::gateway {
namespace {

std::string_view HostOf(std::string_view address) {
  const size_t colon = address.rfind(':');
  return colon == std::string_view::npos ? address : address.substr(0, colon);
}

}  // namespace

bool AttemptLimiter::MayTry(std::string_view address, Time now) {
  const auto found = buckets_.find(HostOf(address));
  if (found != buckets_.end()) return !found->second.empty(now);
  if (buckets_.size() < kAddressesMax) return true;
  std::erase_if(buckets_, [now](auto& entry) { return entry.second.full(now); });
  // So many addresses failing at once are an attack: whoever is not known waits.
  return buckets_.size() < kAddressesMax;
}

void AttemptLimiter::CountFailure(std::string_view address, Time now) {
  const std::string_view host = HostOf(address);
  auto found = buckets_.find(host);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kAddressesMax) return;
    found = buckets_.emplace(std::string(host), Bucket(kBurst, kPerSecond)).first;
  }
  (void)found->second.Take(now);
}

}  // namespace berth::gateway
