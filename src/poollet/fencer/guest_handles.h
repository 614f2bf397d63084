// SPDX-License-Identifier: Apache-2.0
// Handles of processes that no later process of the same number can be mistaken for. Not to get a
// handle is no proof of anything: such a process counts as alive, is tried again with every turn,
// and can be killed all the same.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "poollet/fencer/fence_table.h"

namespace berth::poollet {

class GuestHandles {
 public:
  GuestHandles();
  ~GuestHandles();
  GuestHandles(const GuestHandles&) = delete;
  GuestHandles& operator=(const GuestHandles&) = delete;

  // Holds exactly these, as far as there are descriptors. Returns those that are proven to be gone:
  // there is no process of that number, or it is another one by now.
  std::vector<FenceProcess> Hold(const std::set<FenceProcess>& processes);
  // SIGKILL, once each: by its handle, or by its number once its start time was compared.
  void Kill(const std::set<FenceProcess>& processes);
  // For poll: readable when the process is dead.
  const std::map<FenceProcess, int>& descriptors() const { return held_; }
  // Those that are to be held and could not be: hold again soon.
  const std::set<FenceProcess>& unheld() const { return unheld_; }

 private:
  enum class Sight : uint8_t { kHeld, kGone, kUnknown };
  Sight Take(const FenceProcess& process);
  // nullopt: it cannot be read.
  std::optional<uint64_t> ReadStart(int64_t pid);
  // 0, or what is in the way; EAGAIN: it is not known whether this is the process.
  int Signal(const FenceProcess& process);

  std::map<FenceProcess, int> held_;  // pidfds
  std::set<FenceProcess> unheld_;
  std::set<FenceProcess> killed_;
  std::set<FenceProcess> unseen_;  // to be killed, and could not be looked at
  int reserve_ = -1;  // a descriptor for the moment when there is no other one; -1: it was taken
};

}  // namespace berth::poollet
