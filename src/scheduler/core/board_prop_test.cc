// SPDX-License-Identifier: Apache-2.0
// For all sequences of events: the board decides, explains and counts exactly like the reference,
// never promises more than a pool has, and does the same again for the same seed.
#include "scheduler/core/board_world.h"

namespace berth::scheduler {
namespace {

using World = BoardWorld;
using Scale = BoardWorld::Scale;

TEST(BoardProperty, DecidesLikeTheReferenceOnSmallBoards) {
  for (uint64_t seed = 1; seed <= 50 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World(seed, {.pools = 10, .steps = 250}).Run();
  }
}

TEST(BoardProperty, DecidesLikeTheReferenceOnBoardsOfSeveralWords) {
  for (uint64_t seed = 1; seed <= 4 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World(seed, {.pools = 150, .steps = 120}).Run();
  }
}

TEST(BoardProperty, DecidesLikeTheReferenceWhenShapesComeAgain) {
  for (uint64_t seed = 1; seed <= 30 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World(seed, {.pools = 25, .steps = 400, .shapes = 1 + seed % 14}).Run();
  }
}

TEST(BoardProperty, R6_2_PlacesVolumesWithTheirMachinesLikeTheReference) {
  int together = 0;
  for (uint64_t seed = 1; seed <= 100 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed, {.pools = 12, .steps = 250, .shapes = seed % 2 * 9, .volumes = true});
    world.Run();
    together += world.together();
  }
  EXPECT_GT(together, 200);
}

TEST(BoardProperty, C02_DecidesTheSameForTheSameSeedAndInput) {
  const Scale scale = {.pools = 30, .steps = 300};
  World first(5, scale);
  World second(5, scale);
  World other(6, scale);
  first.Run();
  second.Run();
  other.Run();
  EXPECT_FALSE(first.trace().empty());
  EXPECT_EQ(first.trace(), second.trace());
  EXPECT_NE(first.trace(), other.trace());
}

}  // namespace
}  // namespace berth::scheduler
