// SPDX-License-Identifier: Apache-2.0
// What happened in a run: the last lines for people, and a hash over all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/time.h"

namespace berth::sim {

class Trace {
 public:
  // Lines that are kept: a whole run of a small scenario.
  static constexpr size_t kLinesMax = 20'000;

  void Add(Time now, std::string_view line);
  uint64_t hash() const { return hash_; }
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325ULL;
  std::deque<std::string> lines_;
};

// "12.345s" of virtual time.
std::string FormatVirtual(Time now);

}  // namespace berth::sim
