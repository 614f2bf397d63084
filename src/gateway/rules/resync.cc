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

// The host's copy is of an earlier incarnation: later than the store's word, or older.
ResyncStep DecideOpen(const ResyncInput& input) {
  const KnownItem& known = input.known;
  if (known.is_gone) return input.is_here ? ResyncStep::kWait : ResyncStep::kForget;
  if (!known.is_proven) return ResyncStep::kQuarantine;
  // What has no lease leaves a host by the host's own word alone: who has it, has it.
  const bool is_certain = !known.is_leased && known.placement >= input.desired->placement;
  if (!is_certain) return ResyncStep::kWait;
  return input.is_here ? DecideHere(input) : ResyncStep::kAdopt;
}

// The same after all hosts were heard, or were said to be off: it comes late.
ResyncStep DecideLate(const ResyncInput& input) {
  const bool is_free = input.desired->pool_uid.empty() && !input.desired->is_deleting;
  if (!is_free) return ResyncStep::kMoved;
  return input.known.is_proven ? ResyncStep::kAdopt : ResyncStep::kQuarantine;
}

}  // namespace

ResyncStep DecideResync(const ResyncInput& input) {
  const KnownItem& known = input.known;
  if (input.desired && input.is_open && known.incarnation != input.incarnation) {
    return DecideOpen(input);
  }
  if (input.desired && input.is_here) return DecideHere(input);
  if (input.tombstone && known.placement <= *input.tombstone) {
    if (known.is_gone) return ResyncStep::kGone;
    const bool is_elsewhere = input.desired && known.incarnation == input.incarnation;
    return is_elsewhere ? ResyncStep::kMoved : ResyncStep::kTombstone;
  }
  if (known.is_gone) return ResyncStep::kForget;
  if (!input.desired) return ResyncStep::kQuarantine;
  if (known.incarnation != input.incarnation) return DecideLate(input);
  if (known.placement > input.desired->placement) return ResyncStep::kQuarantine;
  // Unbound and rebound raise the number: an equal one means that the pool was not this host's.
  return ResyncStep::kMoved;
}

}  // namespace berth::gateway
