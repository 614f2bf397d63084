// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authn/failure_limiter.h"

#include <algorithm>

namespace berth::apiserver {
namespace {

std::string_view HostOf(std::string_view address) {
  const size_t colon = address.rfind(':');
  return colon == std::string_view::npos ? address : address.substr(0, colon);
}

}  // namespace

void FailureLimiter::Refill(Bucket& bucket, WallTime now) {
  // Civil time may jump back; then the bucket starts anew rather than stay empty for hours.
  if (now < bucket.refilled) bucket = Bucket{.left = kBurst, .refilled = now};
  const int64_t gained = (now - bucket.refilled).nanos() / kRefill.nanos();
  if (gained <= 0) return;
  bucket.left = gained >= kBurst ? kBurst : std::min(kBurst, bucket.left + gained);
  bucket.refilled = gained >= kBurst ? now : bucket.refilled + kRefill * gained;
}

bool FailureLimiter::Count(std::string_view address, WallTime now) {
  const std::string_view host = HostOf(address);
  auto found = buckets_.find(host);
  if (found == buckets_.end()) {
    MakeRoom(now);
    found = buckets_.emplace(std::string(host), Bucket{.left = kBurst, .refilled = now}).first;
  }
  Bucket& bucket = found->second;
  Refill(bucket, now);
  if (bucket.left == 0) return false;
  --bucket.left;
  return true;
}

void FailureLimiter::MakeRoom(WallTime now) {
  if (buckets_.size() < kAddressesMax) return;
  std::erase_if(buckets_, [now](const auto& entry) {
    Bucket bucket = entry.second;
    Refill(bucket, now);
    return bucket.left == kBurst;
  });
  // More addresses at once than we remember: forgetting gives each of them its burst again, which
  // is cheaper than refusing everyone.
  if (buckets_.size() >= kAddressesMax) buckets_.clear();
}

}  // namespace berth::apiserver
