// SPDX-License-Identifier: Apache-2.0
// Boards of several levels of summary are too large for the property tests, so rows are compared
// with a set here.
#include "scheduler/core/internal/level_rows.h"

#include <set>

#include "base/random.h"

namespace berth::scheduler {
namespace {

using Entries = std::set<std::pair<size_t, size_t>>;  // level, chunk

void Compare(const LevelRows& rows, const Entries& entries, size_t chunks, Random& random) {
  const size_t bound = 1 + random.Below(LevelRows::kLevels);
  size_t level = 0;
  for (const auto& [l, c] : entries)
    if (l < bound) level = std::max(level, l);
  ASSERT_EQ(rows.Below(bound), level) << "below " << bound;
  const size_t asked =
      entries.empty()
          ? 1
          : std::next(entries.begin(), static_cast<ptrdiff_t>(random.Below(entries.size())))->first;
  const size_t from = random.Below(chunks + 1);
  const auto next = entries.lower_bound({asked, from});
  const bool is_there = next != entries.end() && next->first == asked;
  ASSERT_EQ(rows.Next(asked, from), is_there ? next->second : LevelRows::kNone)
      << "level " << asked << " from " << from << " of " << chunks;
}

TEST(LevelRows, FindTheSameAsASetWouldForEveryNumberOfSummaries) {
  for (const size_t chunks : {1, 63, 64, 65, 157, 1'563, 4'096, 4'097, 20'000}) {
    Random random(chunks);
    LevelRows rows;
    rows.Reset(chunks);
    Entries entries;
    for (int step = 0; step < 3'000 && !testing::Test::HasFatalFailure(); ++step) {
      const size_t level = 1 + random.Below(random.Chance(0.5) ? 3 : 255);
      if (random.Chance(0.5) || entries.empty()) {
        const size_t chunk = random.Below(chunks);
        rows.Add(static_cast<uint8_t>(level), chunk);
        entries.emplace(level, chunk);
      } else {
        const auto gone =
            std::next(entries.begin(), static_cast<ptrdiff_t>(random.Below(entries.size())));
        rows.Drop(static_cast<uint8_t>(gone->first), gone->second);
        entries.erase(gone);
      }
      Compare(rows, entries, chunks, random);
    }
  }
}

TEST(LevelRows, DroppingWhatIsNotThereChangesNothing) {
  LevelRows rows;
  rows.Reset(200);
  rows.Add(7, 130);
  rows.Drop(7, 3);
  rows.Drop(9, 130);
  EXPECT_EQ(rows.Below(LevelRows::kLevels), 7U);
  EXPECT_EQ(rows.Next(7, 0), 130U);
}

TEST(LevelRows, LevelZeroIsNobodysLevel) {
  LevelRows rows;
  rows.Reset(10);
  rows.Add(0, 3);
  EXPECT_EQ(rows.Below(LevelRows::kLevels), 0U);
}

}  // namespace
}  // namespace berth::scheduler
