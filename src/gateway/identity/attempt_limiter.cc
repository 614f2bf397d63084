// SPDX-License-Identifier: Apache-2.0
#include "gateway/identity/attempt_limiter.h"

#include <utility>

namespace berth::gateway {
namespace {

// Without port and brackets. An IPv4 address on a socket of both families is one of IPv4.
std::string_view HostOf(std::string_view address) {
  constexpr std::string_view kMapped = "::ffff:";
  const size_t colon = address.rfind(':');
  std::string_view host = colon == std::string_view::npos ? address : address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const bool is_mapped = host.starts_with(kMapped) && host.find('.') != std::string_view::npos;
  return is_mapped ? host.substr(kMapped.size()) : host;
}

}  // namespace

void AttemptLimiter::SetServers(const std::vector<std::string>& addresses) {
  std::set<std::string, std::less<>> servers(addresses.begin(), addresses.end());
  if (servers == servers_) return;
  // Whoever has become a server, or is none any more, begins anew.
  std::erase_if(buckets_, [&](const auto& entry) {
    return servers.contains(entry.first) != servers_.contains(entry.first);
  });
  servers_ = std::move(servers);
}

Bucket AttemptLimiter::NewBucket(std::string_view host) const {
  return servers_.contains(host) ? Bucket(kServerBurst, kServerPerSecond)
                                 : Bucket(kBurst, kPerSecond);
}

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
    found = buckets_.emplace(std::string(host), NewBucket(host)).first;
  }
  (void)found->second.Take(now);
}

}  // namespace berth::gateway
