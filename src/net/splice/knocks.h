// SPDX-License-Identifier: Apache-2.0
// Knocks remember who came lately: whoever comes a second time has found nothing better elsewhere.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/time.h"

namespace berth::net {

class Knocks {
 public:
  // 16,384 addresses * ~120 bytes = 2 MB: more than there are hosts.
  static constexpr size_t kAddressesMax = 16'384;

  explicit Knocks(Duration within) : within_(within) {}

  // Whether the address was here lately; it was, from now on. With too many to remember everybody
  // was.
  bool Again(const std::string& address, Time now) {
    if (const auto found = seen_.find(address); found != seen_.end()) {
      const bool is_lately = now - found->second <= within_;
      found->second = now;
      return is_lately;
    }
    if (seen_.size() >= kAddressesMax) Forget(now);
    if (seen_.size() >= kAddressesMax) return true;
    seen_.emplace(address, now);
    return false;
  }
  size_t size() const { return seen_.size(); }

 private:
  // Looks at all of them, but not for everyone who comes.
  void Forget(Time now) {
    if (now - forgot_ < within_ && forgot_ != Time()) return;
    forgot_ = now;
    std::erase_if(seen_, [&](const auto& entry) { return now - entry.second > within_; });
  }

  const Duration within_;
  std::map<std::string, Time> seen_;
  Time forgot_;
};

}  // namespace berth::net
