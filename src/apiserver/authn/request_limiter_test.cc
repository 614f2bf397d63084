// SPDX-License-Identifier: Apache-2.0
// Defends: requests in flight are bounded in total and per user, and every place is given back.
#include "apiserver/authn/request_limiter.h"

#include <gtest/gtest.h>

#include <vector>

namespace berth::apiserver {
namespace {

class RequestLimiterTest : public testing::Test {
 protected:
  metrics::Registry metrics_;
  RequestLimiter limiter_{
      {.short_total = 3, .short_per_user = 2, .stream_total = 2, .stream_per_user = 1}, metrics_};
  std::vector<RequestLimiter::Ticket> tickets_;

  bool Enter(std::string_view user, RequestLength kind = RequestLength::kShort) {
    auto ticket = limiter_.Enter(user, kind);
    if (!ticket.ok()) {
      EXPECT_TRUE(ticket.status().Is(Reason::kTooManyRequests));
      EXPECT_EQ(ticket.status().retry_after(), Duration::Seconds(1));
      return false;
    }
    tickets_.push_back(*std::move(ticket));
    return true;
  }
};

TEST_F(RequestLimiterTest, OneUserCannotTakeEveryPlace) {
  EXPECT_TRUE(Enter("ann"));
  EXPECT_TRUE(Enter("ann"));
  EXPECT_FALSE(Enter("ann"));
  EXPECT_TRUE(Enter("bob"));
  EXPECT_FALSE(Enter("bob"));
  EXPECT_FALSE(Enter("carl"));
  EXPECT_EQ(limiter_.in_flight(RequestLength::kShort), 3U);
}

TEST_F(RequestLimiterTest, AnEndedRequestGivesItsPlaceBack) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(Enter("ann"));
    EXPECT_TRUE(Enter("ann"));
    EXPECT_FALSE(Enter("ann"));
    tickets_.clear();
    EXPECT_EQ(limiter_.in_flight(RequestLength::kShort), 0U);
  }
}

TEST_F(RequestLimiterTest, StreamsAreCountedApart) {
  EXPECT_TRUE(Enter("ann", RequestLength::kStream));
  EXPECT_FALSE(Enter("ann", RequestLength::kStream));
  EXPECT_TRUE(Enter("ann"));
  EXPECT_TRUE(Enter("ann"));
  EXPECT_TRUE(Enter("bob", RequestLength::kStream));
  EXPECT_FALSE(Enter("carl", RequestLength::kStream));
}

TEST_F(RequestLimiterTest, AMovedTicketCountsOnce) {
  auto first = limiter_.Enter("ann", RequestLength::kShort).value();
  RequestLimiter::Ticket second(std::move(first));
  RequestLimiter::Ticket third;
  third = std::move(second);
  EXPECT_EQ(limiter_.in_flight(RequestLength::kShort), 1U);
}

}  // namespace
}  // namespace berth::apiserver
