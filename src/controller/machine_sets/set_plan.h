// SPDX-License-Identifier: Apache-2.0
// What a MachineSet needs: how many machines to make, which to delete. Pure: the set and its
// machines go in, a plan comes out; carrying it out and planning again ends with nothing to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apis/berth/machine_set.h"
#include "base/time.h"

namespace berth::controller {

// A machine of the set, as far as the plan needs it.
struct SetMember {
  std::string name;
  std::string uid;
  std::string template_hash;
  bool is_ready = false;   // runs
  bool is_placed = false;  // has a pool
  bool is_deleting = false;
  WallTime created;
};

struct SetPlan {
  size_t create = 0;
  std::vector<std::string> remove;  // UIDs
  // For the status.
  int32_t replicas = 0;
  int32_t ready = 0;
  int32_t updated = 0;
  bool operator==(const SetPlan&) const = default;
};

// At most `batch` machines are made by one plan.
SetPlan PlanSet(const apis::berth_dev::MachineSetSpec& spec,
                const std::vector<SetMember>& members,
                const std::string& template_hash,
                size_t batch);

// Names for `count` new machines: the lowest free ordinals. `taken` are the names in use, those of
// machines that are going included.
std::vector<std::string> OrdinalNames(const std::string& set,
                                      const std::vector<SetMember>& taken,
                                      size_t count);

}  // namespace berth::controller
