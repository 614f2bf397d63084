// SPDX-License-Identifier: Apache-2.0
// Boards of several levels of summary are too large for the property tests, so rows are compared
// with a set here.
#include "scheduler/core/internal/level_rows.h"

#include <set>

#include "base/random.h"

namespace berth::scheduler {
namespace {

using Entries = std::set<std::pair<size_t, size_t>>;  // level, chunk

constexpr size_t kNone = SIZE_MAX;

// The first chunk from `chunk` on where somebody may have this level.
size_t NextChunk(const LevelRows& rows, size_t level, size_t chunk) {
  for (size_t word = chunk / kWordBits; word < rows.words(); ++word) {
    if (((rows.summary(level) >> (word / rows.span())) & 1) == 0) continue;
    uint64_t bits = rows.word(level, word);
    if (word == chunk / kWordBits) bits &= ~uint64_t{0} << (chunk % kWordBits);
    if (bits != 0) return word * kWordBits + static_cast<size_t>(std::countr_zero(bits));
  }
  return kNone;
}

void Compare(const LevelRows& rows, const Entries& entries, size_t chunks, Random& random) {
  uint64_t levels = 0;
  for (const auto& [level, chunk] : entries) levels |= uint64_t{1} << level;
  ASSERT_EQ(rows.levels(), levels);
  const size_t asked =
      entries.empty()
          ? 1
          : std::next(entries.begin(), static_cast<ptrdiff_t>(random.Below(entries.size())))->first;
  const size_t from = random.Below(chunks + 1);
  const auto next = entries.lower_bound({asked, from});
  const bool is_there = next != entries.end() && next->first == asked;
  ASSERT_EQ(NextChunk(rows, asked, from), is_there ? next->second : kNone)
      << "level " << asked << " from " << from << " of " << chunks;
}

TEST(LevelRows, FindTheSameAsASetWouldForEveryNumberOfSummaries) {
  for (const size_t chunks : {1, 63, 64, 65, 157, 1'563, 4'096, 4'097, 20'000, 300'000}) {
    Random random(chunks);
    LevelRows rows;
    rows.Reset(chunks);
    Entries entries;
    for (int step = 0; step < 3'000 && !testing::Test::HasFatalFailure(); ++step) {
      const size_t level = 1 + random.Below(random.Chance(0.5) ? 3 : kLevelMax);
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
  EXPECT_EQ(rows.levels(), uint64_t{1} << 7);
  EXPECT_EQ(NextChunk(rows, 7, 0), 130U);
}

}  // namespace
}  // namespace berth::scheduler
