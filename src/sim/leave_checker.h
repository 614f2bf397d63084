// SPDX-License-Identifier: Apache-2.0
// The checker of those who have to leave a pool: for a taint, or with a host that leaves.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sim/checkers.h"

namespace berth::sim {

// Who does not tolerate a NoExecute taint is asked to leave, a host that left with a drain has
// nothing on it that could be elsewhere, and what is tied to its host is never asked.
class LeaveChecker final : public Checker {
 public:
  using Checker::Checker;
  std::string_view name() const override { return "leaves"; }
  void OnChange(const Truth::Change& change) override;
  void OnTick() override;

 private:
  void CheckDrained(const PoolFact& pool, const PlacedFact& fact);
  // Whether nobody has asked it to leave although the pool's taints do.
  static bool Lingers(const PoolFact& pool, const PlacedFact& fact);

  std::map<std::string, Time> lingering_;  // by UID: since when
};

}  // namespace berth::sim
