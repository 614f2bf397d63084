// SPDX-License-Identifier: Apache-2.0
// When a machine has to leave a pool because of its NoExecute taints. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "apis/core/taints.h"
#include "base/time.h"

namespace berth::controller {

struct LeaveTime {
  WallTime at;
  std::string taint;  // which one, for people: "key=value:NoExecute"
};

// The earliest time that a taint sets; nullopt: it may stay. Seconds count from the later of the
// taint's timeAdded and the binding; of several tolerations of one taint with seconds the shortest
// counts.
std::optional<LeaveTime> FindLeaveTime(std::span<const apis::core::Taint> taints,
                                       std::span<const apis::core::Toleration> tolerations,
                                       WallTime bound);

}  // namespace berth::controller
