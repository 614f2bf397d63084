// SPDX-License-Identifier: Apache-2.0
// A PlacementTally says what became of machines that were acknowledged: what the API says of them
// is compared with what hosts hold. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "app/bench/holdings.h"
#include "base/result.h"

namespace berth::app {

// What the API says of a machine.
struct ListedMachine {
  std::string uid;
  std::string pool;   // its host has the same name; "": not bound
  int64_t epoch = 0;  // of its placement: 1 for whatever was bound once
  bool is_deleting = false;
};

struct PlacementTally {
  size_t acknowledged = 0;
  // Acknowledged, and not listed, not bound, or not held by the host that it is bound to.
  std::set<std::string> lost;
  // Bound more than once, or held by several hosts and not being deleted. By name; by UID what is
  // not listed.
  std::set<std::string> placed_twice;

  bool is_clean() const { return lost.empty() && placed_twice.empty(); }
  // Ok if it is clean; otherwise how many and which, some of them by name.
  Status Verdict() const;
};

// `listed` by name.
PlacementTally CountPlacements(const std::set<std::string>& acknowledged,
                               const std::map<std::string, ListedMachine>& listed,
                               const Holdings& holdings);

}  // namespace berth::app
