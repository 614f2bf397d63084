// SPDX-License-Identifier: Apache-2.0
#include "gateway/rules/resync.h"

namespace berth::gateway {
namespace {

// Bound to a pool of this host.
ResyncStep DecideHere(const ResyncInput& input) {
  const KnownItem& known = input.known;
  const Desired& desired = *input.desired;
  const bool same_history = known.incarnation == input.incarnation;
  // A placement that the store has not given out: forged, or of a history that was lost.
  if (same_history && known.placement > desired.placement) return ResyncStep::kQuarantine;
  const bool same = same_history && known.placement == desired.placement;
  if (known.is_gone) {
    if (same) return ResyncStep::kGone;
    // Gone at an older placement: the present one is still to come, or to be answered for.
    return desired.is_deleting ? ResyncStep::kDelete : ResyncStep::kAssign;
  }
  if (desired.is_deleting) return ResyncStep::kDelete;
  if (!same) return ResyncStep::kAssign;
  if (desired.hash.empty()) return ResyncStep::kConfirmAndCheck;
  return desired.hash == known.hash ? ResyncStep::kConfirm : ResyncStep::kConfirmAndCheck;
}

}  // namespace

ResyncStep DecideResync(const ResyncInput& input) {
  const KnownItem& known = input.known;
  if (input.desired && input.is_here) return DecideHere(input);
  if (input.tombstone && known.placement <= *input.tombstone) {
    if (known.is_gone) return ResyncStep::kGone;
    const bool is_elsewhere = input.desired && known.incarnation == input.incarnation;
    return is_elsewhere ? ResyncStep::kMoved : ResyncStep::kTombstone;
  }
  if (known.is_gone) return ResyncStep::kForget;
  if (!input.desired) return ResyncStep::kQuarantine;
  // The store is of another history than what runs: nothing is stopped on its word (seq 20).
  if (known.incarnation != input.incarnation) return ResyncStep::kQuarantine;
  if (known.placement > input.desired->placement) return ResyncStep::kQuarantine;
  // Unbound and rebound raise the number: an equal one means that the pool was not this host's.
  return ResyncStep::kMoved;
}

}  // namespace berth::gateway
