// SPDX-License-Identifier: Apache-2.0
// Every offer ends exactly once.
#include "gateway/rules/ask_book.h"

#include <gtest/gtest.h>

namespace berth::gateway {
namespace {

constexpr fleet::OfferId kOne{.term = 1, .number = 1};
constexpr fleet::OfferId kTwo{.term = 1, .number = 2};
Time At(int64_t millis) { return Time::FromNanos(millis * 1'000'000); }
void Ignore(const fleet::Answer&) {}

TEST(AskBook, AnAnswerOfTheRightSessionIsTakenOnce) {
  AskBook book;
  book.Add(kOne, 7, At(300), Ignore);
  EXPECT_EQ(book.Take(kOne, 8).match, AskBook::Match::kForeign);
  EXPECT_EQ(book.Take(kOne, 7).match, AskBook::Match::kTaken);
  EXPECT_EQ(book.Take(kOne, 7).match, AskBook::Match::kLate);
  EXPECT_EQ(book.size(), 0);
  EXPECT_FALSE(book.next_deadline());
}

TEST(AskBook, Seq15_S6_AfterItsTimeAnAnswerIsLate) {
  AskBook book;
  book.Add(kOne, 7, At(300), Ignore);
  book.Add(kTwo, 7, At(500), Ignore);
  EXPECT_TRUE(book.Expire(At(299)).empty());
  const auto ended = book.Expire(At(300));
  ASSERT_EQ(ended.size(), 1);
  EXPECT_EQ(ended[0].id, kOne);
  EXPECT_EQ(book.Take(kOne, 7).match, AskBook::Match::kLate);
  EXPECT_EQ(book.next_deadline(), At(500));
}

TEST(AskBook, TheEndOfASessionEndsItsOffersOnly) {
  AskBook book;
  book.Add(kOne, 7, At(300), Ignore);
  book.Add(kTwo, 8, At(300), Ignore);
  EXPECT_EQ(book.DropSession(7).size(), 1);
  EXPECT_EQ(book.size(), 1);
  EXPECT_EQ(book.Take(kTwo, 8).match, AskBook::Match::kTaken);
}

TEST(AskBook, AnOfferThatIsAskedAgainEndsTheFirstAsking) {
  AskBook book;
  EXPECT_FALSE(book.Add(kOne, 7, At(300), Ignore));
  EXPECT_TRUE(book.Add(kOne, 8, At(400), Ignore));
  EXPECT_EQ(book.Expire(At(1000)).size(), 1);
}

}  // namespace
}  // namespace berth::gateway
