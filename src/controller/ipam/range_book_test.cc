// SPDX-License-Identifier: Apache-2.0
// Defends what addresses depend on: nothing is held twice, nothing is lost, and what was given back
// is as good as new.
#include "controller/ipam/range_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"

namespace berth::controller {
namespace {

using meta::IpPrefix;
using Verdict = RangeBook::Verdict;

IpPrefix Range(const std::string& text) { return *IpPrefix::Parse(text); }

std::vector<std::string> Texts(const std::vector<IpPrefix>& ranges) {
  std::vector<std::string> texts;
  for (const IpPrefix& range : ranges) texts.push_back(range.ToString());
  return texts;
}

TEST(RangeBook, GivesOutTheLowestOfTheSmallestBlockThatIsLargeEnough) {
  RangeBook book(Range("10.0.0.0/24"));
  EXPECT_EQ(book.TakeAny(26)->ToString(), "10.0.0.0/26");
  EXPECT_EQ(book.TakeAny(25)->ToString(), "10.0.0.128/25");
  EXPECT_EQ(book.TakeAny(32)->ToString(), "10.0.0.64/32");
  EXPECT_EQ(book.TakeAny(32)->ToString(), "10.0.0.65/32");
  EXPECT_EQ(book.TakeAny(27)->ToString(), "10.0.0.96/27");
  EXPECT_EQ(book.TakeAny(26), std::nullopt);
  EXPECT_EQ(book.LargestFree(), 28);
}

TEST(RangeBook, PassesOverAddressesThatDoNotSuit) {
  RangeBook book(Range("10.0.0.0/29"));
  const RangeBook::Suits suits = [](const meta::IpAddress& address) {
    const int last = address.bytes()[3];
    return last % 4 != 0 && last % 4 != 3;
  };
  for (const char* expected : {"10.0.0.1/32", "10.0.0.2/32", "10.0.0.5/32", "10.0.0.6/32"}) {
    const auto part = book.TakeAny(32, suits);
    ASSERT_TRUE(part.has_value()) << expected;
    EXPECT_EQ(part->ToString(), expected);
  }
  EXPECT_EQ(book.TakeAny(32, suits), std::nullopt);
  EXPECT_EQ(book.SmallestFor(32, suits), std::nullopt);
  EXPECT_EQ(book.SmallestFor(32), 32) << "for whom all suit";
  EXPECT_TRUE(book.Give(Range("10.0.0.5/32")));
  EXPECT_EQ(book.SmallestFor(32, suits), 31);
  EXPECT_EQ(book.TakeAny(31, suits)->ToString(), "10.0.0.4/31") << "only addresses have to";
  EXPECT_EQ(book.TakeAny(32)->ToString(), "10.0.0.0/32");
}

TEST(RangeBook, TakesExactlyWhatIsAskedForOrSaysWhyNot) {
  RangeBook book(Range("10.0.0.0/24"));
  EXPECT_EQ(book.Take(Range("10.0.0.64/28")), Verdict::kTaken);
  EXPECT_EQ(book.Take(Range("10.0.0.64/28")), Verdict::kHeld);
  EXPECT_EQ(book.Take(Range("10.0.0.70/32")), Verdict::kHeld);
  EXPECT_EQ(book.Take(Range("10.0.0.0/25")), Verdict::kHeld);
  EXPECT_EQ(book.Take(Range("10.0.1.0/28")), Verdict::kOutside);
  EXPECT_EQ(book.Take(Range("10.0.0.0/16")), Verdict::kOutside);
  EXPECT_EQ(book.Take(Range("2001:db8::/64")), Verdict::kOutside);
  EXPECT_EQ(book.Take(IpPrefix()), Verdict::kOutside);
  EXPECT_EQ(book.Take(Range("10.0.0.200/25")), Verdict::kTaken) << "bits beyond the length";
  EXPECT_FALSE(book.IsFree(Range("10.0.0.128/32")));
  EXPECT_TRUE(book.IsFree(Range("10.0.0.127/32")));
}

TEST(RangeBook, TheWholeMayBeTakenAndGivenBack) {
  for (const char* text : {"10.0.0.7/32", "0.0.0.0/0", "::/0", "2001:db8::1/128"}) {
    RangeBook book(Range(text));
    const int length = Range(text).length();
    EXPECT_TRUE(book.TakeAny(length).has_value()) << text;
    EXPECT_EQ(book.LargestFree(), std::nullopt) << text;
    EXPECT_EQ(book.TakeAny(length), std::nullopt) << text;
    EXPECT_FALSE(book.TakeAny(129).has_value()) << text;
    EXPECT_TRUE(book.Give(Range(text))) << text;
    EXPECT_FALSE(book.Give(Range(text))) << text;
    EXPECT_EQ(book.LargestFree(), length) << text;
  }
}

TEST(RangeBook, ShowsWhatIsHeldInAsFewRangesAsThereCanBe) {
  RangeBook book(Range("2001:db8::/120"));
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(book.TakeAny(128));
  EXPECT_EQ(Texts(book.HeldMerged()),
            (std::vector<std::string>{"2001:db8::/125", "2001:db8::8/128"}));
  for (int i = 9; i < 256; ++i) ASSERT_TRUE(book.TakeAny(128));
  EXPECT_EQ(Texts(book.HeldMerged()), (std::vector<std::string>{"2001:db8::/120"}));
  EXPECT_EQ(book.held(), 256U);
}

// Against the obvious: a list of what is held, searched from end to end.
TEST(RangeBookProperties, AgreesWithAListThatIsSearched) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    const IpPrefix whole = Range(seed % 2 == 0 ? "10.1.0.0/22" : "2001:db8::/118");
    const int bits = whole.address().bits();
    RangeBook book(whole);
    std::vector<IpPrefix> held;
    const auto is_free = [&held](const IpPrefix& part) {
      return std::ranges::none_of(held, [&](const IpPrefix& one) { return one.Overlaps(part); });
    };
    const auto any_free = [&](int length) {
      for (IpPrefix part(whole.address(), length); whole.Contains(part);) {
        if (is_free(part)) return true;
        meta::IpAddress next = part.address();
        for (int i = 0; i < 1 << (bits - length) && !next.is_null(); ++i) next = next.Next();
        if (next.is_null()) break;
        part = IpPrefix(next, length);
      }
      return false;
    };
    for (int step = 0; step < 120; ++step) {
      const int length = bits - static_cast<int>(random.Below(6));
      if (random.Below(3) != 0) {
        const bool expected = any_free(length);
        const auto part = book.TakeAny(length);
        ASSERT_EQ(part.has_value(), expected) << "seed " << seed << " step " << step;
        if (!part) continue;
        ASSERT_TRUE(whole.Contains(*part) && is_free(*part)) << part->ToString();
        held.push_back(*part);
      } else if (!held.empty()) {
        const size_t which = random.Below(held.size());
        ASSERT_TRUE(book.Give(held[which]));
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    for (const IpPrefix& part : held) ASSERT_TRUE(book.Give(part));
    EXPECT_EQ(book.LargestFree(), whole.length()) << "all is one block again, seed " << seed;
  }
}

}  // namespace
}  // namespace berth::controller
