// SPDX-License-Identifier: Apache-2.0
// A HostLimiter limits how often each host may ask for what costs the server more than an answer.
// It knows hosts by name and goes on over all of their connections: who comes back does not begin
// anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/time.h"
#include "gateway/identity/bucket.h"

namespace berth::gateway {

class HostLimiter {
 public:
  // 16,384 hosts * ~150 bytes = 2.4 MB. One whose turns are all there again needs no entry.
  static constexpr size_t kHostsMax = size_t{16} * 1024;

  // So many turns at once, and then so many more each second.
  HostLimiter(double burst, double per_second) : burst_(burst), per_second_(per_second) {}

  // False if the host has no turn left. The name has been proven: a certificate or a token says so.
  [[nodiscard]] bool Take(std::string_view host, Time now);
  // How long a host without a turn waits for one.
  Duration pause() const { return Duration::Millis(static_cast<int64_t>(1000 / per_second_)); }
  size_t size() const { return buckets_.size(); }

 private:
  const double burst_;
  const double per_second_;
  std::map<std::string, Bucket, std::less<>> buckets_;
};

}  // namespace berth::gateway
