// SPDX-License-Identifier: Apache-2.0
// The table of the resynchronisation: what the host has against what the store wants.
#include "gateway/rules/resync.h"

#include <gtest/gtest.h>

namespace berth::gateway {
namespace {

struct Row {
  const char* name;
  ResyncInput input;
  ResyncStep step;
};

ResyncInput Input(KnownItem known, std::optional<Desired> desired, bool is_here) {
  return {.known = std::move(known),
          .desired = std::move(desired),
          .is_here = is_here,
          .tombstone = std::nullopt,
          .incarnation = 2};
}

TEST(Resync, EveryRowOfTheTable) {
  const KnownItem at3{.incarnation = 2, .placement = 3, .hash = "h"};
  const KnownItem gone3{.incarnation = 2, .placement = 3, .hash = "h", .is_gone = true};
  const KnownItem older{.incarnation = 1, .placement = 9, .hash = "h"};
  const KnownItem proven{.incarnation = 1, .placement = 9, .hash = "h", .is_proven = true};
  const Desired here3{.pool_uid = "p", .placement = 3, .hash = "h"};
  const Desired here5{.pool_uid = "p", .placement = 5, .hash = "h"};
  const Desired here2{.pool_uid = "p", .placement = 2, .hash = "h"};
  const Desired deleting{.pool_uid = "p", .placement = 3, .is_deleting = true};
  const Desired deleting5{.pool_uid = "p", .placement = 5, .is_deleting = true};
  const KnownItem gone_older{.incarnation = 1, .placement = 3, .hash = "h", .is_gone = true};
  const Desired nowhere4{.pool_uid = "", .placement = 4};
  ResyncInput stone = Input(at3, std::nullopt, false);
  stone.tombstone = 3;
  ResyncInput stone_gone = Input(gone3, std::nullopt, false);
  stone_gone.tombstone = 3;
  ResyncInput stone_older = Input(at3, std::nullopt, false);
  stone_older.tombstone = 2;
  ResyncInput stone_moved = Input(at3, nowhere4, false);
  stone_moved.tombstone = 3;
  ResyncInput stone_restored = Input(older, nowhere4, false);
  stone_restored.tombstone = 9;
  const Row rows[] = {
      {"as it should be", Input(at3, here3, true), ResyncStep::kConfirm},
      {"Seq10: another body", Input({2, 3, "x"}, here3, true), ResyncStep::kConfirmAndCheck},
      {"body not assembled yet",
       Input(at3, Desired{.pool_uid = "p", .placement = 3}, true),
       ResyncStep::kConfirmAndCheck},
      {"rebound to the same pool", Input(at3, here5, true), ResyncStep::kAssign},
      {"P6: a placement that was never given out",
       Input(at3, here2, true),
       ResyncStep::kQuarantine},
      {"deleted meanwhile", Input(at3, deleting, true), ResyncStep::kDelete},
      {"gone as it should", Input(gone3, deleting, true), ResyncStep::kGone},
      {"gone by itself", Input(gone3, here3, true), ResyncStep::kGone},
      {"gone, but bound here again", Input(gone3, here5, true), ResyncStep::kAssign},
      {"gone, bound here again and deleted since",
       Input(gone3, deleting5, true),
       ResyncStep::kDelete},
      {"Seq20: gone in an older history, bound here",
       Input(gone_older, here3, true),
       ResyncStep::kAssign},
      {"Seq20: gone in an older history, deleted here",
       Input(gone_older, deleting, true),
       ResyncStep::kDelete},
      {"Seq17: moved away", Input(at3, nowhere4, false), ResyncStep::kMoved},
      {"forged: at the placement of another host", Input(at3, here3, false), ResyncStep::kMoved},
      {"forged: a later placement of another's", Input(at3, here2, false), ResyncStep::kQuarantine},
      {"Seq20: older history, bound here", Input(older, here3, true), ResyncStep::kAssign},
      {"Seq20: older history, bound nowhere, unproven",
       Input(older, nowhere4, false),
       ResyncStep::kQuarantine},
      {"Seq20: older history, bound nowhere", Input(proven, nowhere4, false), ResyncStep::kAdopt},
      {"Seq20: older history, bound elsewhere by now",
       Input(proven, here3, false),
       ResyncStep::kMoved},
      {"Seq20: unknown to the store", Input(at3, std::nullopt, false), ResyncStep::kQuarantine},
      {"R4_3: tombstone", stone, ResyncStep::kTombstone},
      {"R4_3: tombstone of a lower placement", stone_older, ResyncStep::kQuarantine},
      {"R4_3: tombstone, and the object is elsewhere", stone_moved, ResyncStep::kMoved},
      {"R4_3: tombstone that a restored store has, too", stone_restored, ResyncStep::kTombstone},
      {"tombstone, and gone", stone_gone, ResyncStep::kGone},
      {"gone, and nobody asks", Input(gone3, std::nullopt, false), ResyncStep::kForget},
      {"gone, and moved", Input(gone3, nowhere4, false), ResyncStep::kForget},
  };
  for (const Row& row : rows) EXPECT_EQ(DecideResync(row.input), row.step) << row.name;
}

TEST(Resync, Seq20_WhileHistoryIsOpenNothingIsDecidedThatAnotherHostMayKnowBetter) {
  const auto open = [](KnownItem known, std::optional<Desired> desired, bool is_here) {
    ResyncInput input = Input(std::move(known), std::move(desired), is_here);
    input.is_open = true;
    return input;
  };
  const auto copy = [](uint64_t placement, bool is_leased) {
    return KnownItem{.incarnation = 1,
                     .placement = placement,
                     .hash = "h",
                     .is_leased = is_leased,
                     .is_proven = true};
  };
  KnownItem gone = copy(3, false);
  gone.is_gone = true;
  KnownItem forged = copy(9, false);
  forged.is_proven = false;
  const Desired at3{.pool_uid = "p", .placement = 3, .hash = "h"};
  const Desired going{.pool_uid = "p", .placement = 3, .is_deleting = true};
  const Desired nowhere;
  const Row rows[] = {
      {"here, and it cannot be elsewhere", open(copy(3, false), at3, true), ResyncStep::kAssign},
      {"here, and it is to go", open(copy(3, false), going, true), ResyncStep::kDelete},
      {"here, but it may have been moved", open(copy(3, true), at3, true), ResyncStep::kWait},
      {"here again, later", open(copy(7, false), at3, true), ResyncStep::kAssign},
      {"came here after the backup", open(copy(5, false), at3, false), ResyncStep::kAdopt},
      {"came here after the backup, leased", open(copy(5, true), at3, false), ResyncStep::kWait},
      {"placed after the backup", open(copy(1, false), nowhere, false), ResyncStep::kAdopt},
      {"left here before the backup", open(copy(1, false), at3, false), ResyncStep::kWait},
      {"removed here after the backup", open(gone, at3, true), ResyncStep::kWait},
      {"removed here, and not bound here", open(gone, at3, false), ResyncStep::kForget},
      {"forged", open(forged, at3, false), ResyncStep::kQuarantine},
      {"forged, where it is bound", open(forged, at3, true), ResyncStep::kQuarantine},
  };
  for (const Row& row : rows) EXPECT_EQ(DecideResync(row.input), row.step) << row.name;
}

}  // namespace
}  // namespace berth::gateway
