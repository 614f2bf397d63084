// SPDX-License-Identifier: Apache-2.0
// A FailureLimiter counts refused attempts per address: each address has a bucket of attempts that
// refills with time.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/strings.h"
#include "base/time.h"

namespace berth::apiserver {

class FailureLimiter {
 public:
  static constexpr int64_t kBurst = 50;
  static constexpr Duration kRefill = Duration::Millis(200);  // one attempt each
  // 4,096 addresses * 100 bytes = 400 KiB.
  static constexpr size_t kAddressesMax = 4096;

  // Counts one failure of "host:port" (the port does not matter). False once the address has used
  // up its attempts.
  bool Count(std::string_view address, WallTime now);
  size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    int64_t left = kBurst;
    WallTime refilled;
  };
  static void Refill(Bucket& bucket, WallTime now);
  void MakeRoom(WallTime now);

  std::unordered_map<std::string, Bucket, StringHash, std::equal_to<>> buckets_;
};

}  // namespace berth::apiserver
