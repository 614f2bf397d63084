// SPDX-License-Identifier: Apache-2.0
// The branches of a run that have names: one for every sequence with crashes of the placement
// protocol (2.4). They are seen from outside, by what the simulation does and by what passes its
// decorators, so they are counted in release builds, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>

namespace berth::sim {

enum class Branch : uint8_t {
  kDiedAfterOffer,
  kDiedAfterAccept,
  kDiedInCommit,
  kBindOutcomeUnknown,
  kBindAfterHold,
  kOldLeaderBind,
  kChangedBeforeBind,
  kCordonedBeforeBind,
  kPoolletDiedWithHold,
  kPoolletDiedInWrite,
  kPoolletDiedAfterWrite,
  kPoolletDiedInCreate,
  kRuntimeDiedInCreate,
  kDiedAfterBind,
  kLateAccept,
  kPartitionAfterBind,
  kReturnedAfterMove,
  kReturnedDuringMove,
  kPoolReborn,
  kRestored,
  kDiedInGroup,
  kDiedInPreemption,
};
inline constexpr size_t kBranches = 22;

// "seq01.scheduler-died-after-offer".
std::string_view NameOf(Branch branch);

class Branches {
 public:
  void Reach(Branch branch) { reached_.insert(branch); }
  const std::set<Branch>& reached() const { return reached_; }

 private:
  std::set<Branch> reached_;
};

}  // namespace berth::sim
