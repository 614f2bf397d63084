// SPDX-License-Identifier: Apache-2.0
// An AttemptLimiter counts failed attempts to join per address, so that nobody can guess tokens.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/time.h"
#include "gateway/identity/bucket.h"

namespace berth::gateway {

class AttemptLimiter {
 public:
  static constexpr double kBurst = 10;
  static constexpr double kPerSecond = 0.2;
  // 4,096 addresses * ~150 bytes = 600 KB.
  static constexpr size_t kAddressesMax = 4096;

  // False once the address has used up its attempts. "host:port": the port does not matter.
  bool MayTry(std::string_view address, Time now);
  void CountFailure(std::string_view address, Time now);
  size_t size() const { return buckets_.size(); }

 private:
  std::map<std::string, Bucket, std::less<>> buckets_;
};

}  // namespace berth::gateway
