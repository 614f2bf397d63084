// SPDX-License-Identifier: Apache-2.0
// Defends that bytes are shared, not copied, and live exactly as long as somebody holds them.
#include "base/bytes.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

namespace berth {
namespace {

TEST(Bytes, EmptyOnesCostNothing) {
  const Bytes bytes;
  EXPECT_TRUE(bytes.empty());
  EXPECT_EQ(bytes.view(), "");
  EXPECT_EQ(bytes, Bytes(""));
  EXPECT_EQ(Bytes::Concat({"", ""}).view().data(), nullptr);
}

TEST(Bytes, CopiesShareTheSameMemory) {
  const Bytes bytes("text");
  const Bytes copy = bytes;
  EXPECT_EQ(copy.view().data(), bytes.view().data());
  Bytes moved = copy;
  const Bytes taken = std::move(moved);
  EXPECT_EQ(taken.view().data(), bytes.view().data());
  EXPECT_EQ(taken, Bytes("text"));
  EXPECT_FALSE(taken == Bytes("texts"));
}

TEST(Bytes, AssigningToItselfKeepsThem) {
  Bytes bytes("text");
  const Bytes& same = bytes;
  bytes = same;
  EXPECT_EQ(bytes.view(), "text");
  bytes = Bytes("other");
  EXPECT_EQ(bytes.view(), "other");
}

TEST(Bytes, PartsBecomeOneBlock) {
  const std::string zero(1, '\0');
  const Bytes bytes = Bytes::Concat({"a", "", zero, "bc"});
  EXPECT_EQ(bytes.view(), std::string_view("a\0bc", 4));
  EXPECT_EQ(bytes.size(), 4U);
}

TEST(Bytes, ManyThreadsMayHoldThem) {
  const Bytes bytes(std::string(1000, 'x'));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([bytes] {
      for (int i = 0; i < 10'000; ++i) {
        const Bytes copy = bytes;
        ASSERT_EQ(copy.size(), 1000U);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(bytes.size(), 1000U);
}

}  // namespace
}  // namespace berth
