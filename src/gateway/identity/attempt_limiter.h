// SPDX-License-Identifier: Apache-2.0
// An AttemptLimiter counts failed attempts to join per address, so that nobody can guess tokens.
// The address of another server stands for all hosts whose connections that one passes on: it has
// room for many. What a connection says of where it comes from is not believed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "gateway/identity/bucket.h"

namespace berth::gateway {

class AttemptLimiter {
 public:
  static constexpr double kBurst = 10;
  static constexpr double kPerSecond = 0.2;
  // Of a server: as twenty addresses. Tokens have 32 random bytes, whatever is guessed so fast.
  static constexpr double kServerBurst = 20 * kBurst;
  static constexpr double kServerPerSecond = 20 * kPerSecond;
  // 4,096 addresses * ~150 bytes = 600 KB.
  static constexpr size_t kAddressesMax = 4096;

  // False once the address has used up its attempts. "host:port": the port does not matter.
  bool MayTry(std::string_view address, Time now);
  void CountFailure(std::string_view address, Time now);
  // Numeric addresses of the other servers, from now on.
  void SetServers(const std::vector<std::string>& addresses);
  size_t size() const { return buckets_.size(); }

 private:
  Bucket NewBucket(std::string_view host) const;

  std::map<std::string, Bucket, std::less<>> buckets_;
  std::set<std::string, std::less<>> servers_;
};

}  // namespace berth::gateway
