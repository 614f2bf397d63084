// SPDX-License-Identifier: Apache-2.0
// What something takes of a pool, counted as words.h says it: of the reference board.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "scheduler/core/pool.h"
#include "scheduler/core/request.h"

namespace berth::scheduler {

struct ReferenceRoom {
  static bool Fits(const Resources& demand, const Resources& room) {
    return std::ranges::all_of(demand, [&](const auto& one) {
      const auto found = room.find(one.first);
      return found != room.end() && found->second >= one.second;
    });
  }
  static Resources Demand(const Requirements& r, const PoolSpec& spec) {
    if (!spec.class_counts.empty()) return {{"share", ShareOf(spec, r.class_name)}};
    Resources demand;
    for (const auto& [name, amount] : r.resources)
      if (amount > 0) demand[name] = amount;
    return demand;
  }
  static Resources Capacity(const PoolSpec& spec) {
    if (!spec.class_counts.empty()) return {{"share", Whole(spec)}};
    return spec.capacity;
  }
  static bool Offers(const PoolSpec& spec, const std::string& name) {
    if (!spec.class_counts.empty()) {
      const auto found = spec.class_counts.find(name);
      return found != spec.class_counts.end() && found->second > 0;
    }
    return name.empty() || std::ranges::find(spec.classes, name) != spec.classes.end();
  }
  static int64_t Whole(const PoolSpec& spec) {
    int64_t whole = 1;
    for (const auto& [name, count] : spec.class_counts)
      if (count > 0) whole = std::lcm(whole, count);
    return whole;
  }
  static int64_t ShareOf(const PoolSpec& spec, const std::string& name) {
    const auto found = spec.class_counts.find(name);
    const bool offers = found != spec.class_counts.end() && found->second > 0;
    return offers ? Whole(spec) / found->second : Whole(spec);
  }
};

}  // namespace berth::scheduler
