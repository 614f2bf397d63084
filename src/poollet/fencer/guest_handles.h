// SPDX-License-Identifier: Apache-2.0
// Handles of processes that no later process of the same number can be mistaken for.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "poollet/fencer/fence_table.h"

namespace berth::poollet {

class GuestHandles {
 public:
  GuestHandles() = default;
  ~GuestHandles();
  GuestHandles(const GuestHandles&) = delete;
  GuestHandles& operator=(const GuestHandles&) = delete;

  // Holds exactly these. Returns those that are not there, or are other processes by now.
  std::vector<FenceProcess> Hold(const std::set<FenceProcess>& processes);
  // SIGKILL, once each.
  void Kill(const std::set<FenceProcess>& processes);
  // For poll: readable when the process is dead.
  const std::map<FenceProcess, int>& descriptors() const { return held_; }

 private:
  std::map<FenceProcess, int> held_;  // pidfds
  std::set<FenceProcess> killed_;
};

}  // namespace berth::poollet
