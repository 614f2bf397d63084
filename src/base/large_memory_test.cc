// SPDX-License-Identifier: Apache-2.0
#include "base/large_memory.h"

#include <cstdint>
#include <numeric>

namespace berth {
namespace {

TEST(LargeVector, KeepsItsElementsWhileItGrowsFromSmallMemoryIntoLarge) {
  LargeVector<uint32_t> numbers;
  constexpr uint32_t kCount = 3 * kLargePage / sizeof(uint32_t) / 2;
  for (uint32_t i = 0; i < kCount; ++i) numbers.push_back(i);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers.data()) % kLargePage, 0U);
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(numbers[i], i);
  numbers.resize(10);
  numbers.shrink_to_fit();
  EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), 0U), 45U);
}

TEST(LargeVector, KeepsTheAlignmentOfItsElements) {
  struct alignas(64) Line {
    uint64_t number = 0;
  };
  for (const size_t count : {size_t{3}, kLargePage / sizeof(Line) + 1}) {
    const LargeVector<Line> lines(count);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(lines.data()) % 64, 0U) << count;
    EXPECT_EQ(lines.back().number, 0U);
  }
}

}  // namespace
}  // namespace berth
