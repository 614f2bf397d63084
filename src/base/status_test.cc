// SPDX-License-Identifier: Apache-2.0
// Defends that an error keeps its reason, causes and object on its way up, and that TRY passes on
// exactly what it was given.
#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <utility>

#include "base/result.h"

namespace berth {
namespace {

TEST(Status, WithoutAnErrorSaysNothing) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.reason(), Reason::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_TRUE(status.causes().empty());
  EXPECT_EQ(status.ToString(), "ok");
  EXPECT_EQ(status, OkStatus());
  EXPECT_TRUE(status.Wrap("doing").ok());
  EXPECT_TRUE(status.WithRetryAfter(Duration::Seconds(1)).ok());
}

TEST(Status, EveryReasonHasANameThatLeadsBack) {
  for (int i = 1; i <= static_cast<int>(Reason::kUnavailable); ++i) {
    const auto reason = static_cast<Reason>(i);
    EXPECT_FALSE(ReasonName(reason).empty());
    EXPECT_EQ(ReasonFromName(ReasonName(reason)), reason);
  }
  EXPECT_EQ(ReasonName(Reason::kInternal), "InternalError");
  EXPECT_EQ(ReasonFromName("NoSuchReason"), Reason::kInternal);
}

TEST(Status, ContextIsAddedInFrontAndNothingIsLost) {
  const Status inner(
      Reason::kInvalid, "bad", {{CauseKind::kRequired, "spec.name", "Required value"}});
  const Status outer = inner.WithObject({.group = "g", .kind = "machines", .name = "a", .uid = ""})
                           .WithRetryAfter(Duration::Seconds(2))
                           .Wrap("update")
                           .Wrap("bind machine a/b");
  EXPECT_EQ(outer.message(), "bind machine a/b: update: bad");
  EXPECT_EQ(outer.reason(), Reason::kInvalid);
  ASSERT_EQ(outer.causes().size(), 1U);
  EXPECT_EQ(outer.causes()[0].field, "spec.name");
  EXPECT_EQ(outer.object().kind, "machines");
  EXPECT_EQ(outer.retry_after(), Duration::Seconds(2));
  EXPECT_EQ(inner.message(), "bad") << "an error is immutable";
  EXPECT_EQ(outer.ToString(), "Invalid: bind machine a/b: update: bad");
}

TEST(Status, IsEqualByContent) {
  EXPECT_EQ(NotFound("x"), NotFound("x"));
  EXPECT_FALSE(NotFound("x") == NotFound("y"));
  EXPECT_FALSE(NotFound("x") == Conflict("x"));
  EXPECT_FALSE(NotFound("x") == OkStatus());
}

TEST(StatusDeathTest, AnErrorNeedsAReason) {
  EXPECT_DEATH(Status(Reason::kOk, "nothing").ok(), "an error needs a reason");
}

Result<int> Half(int n) {
  if (n % 2 != 0) return BadRequest("odd");
  return n / 2;
}
Result<int> Quarter(int n) {
  TRY(const int half, Half(n));
  TRY(const int quarter, Half(half));
  return quarter;
}
Status CheckQuarter(int n) {
  TRY_STATUS(Quarter(n));
  TRY_STATUS(OkStatus());
  return OkStatus();
}

TEST(Result, TryTakesTheValueOrPassesTheErrorOn) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(6).status(), BadRequest("odd"));
  EXPECT_TRUE(CheckQuarter(8).ok());
  EXPECT_EQ(CheckQuarter(7), BadRequest("odd"));
}

TEST(Result, CarriesWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(**result, 5);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 5);
}

TEST(ResultDeathTest, TheValueOfAnErrorIsABug) {
  const Result<int> result = NotFound("machine a");
  EXPECT_DEATH((void)result.value(), "NotFound: machine a");
  EXPECT_DEATH((void)Result<int>(OkStatus()), "needs an error");
}

TEST(CheckDeathTest, SaysWhatIsWrongAndWhere) {
  const int n = 3;
  CHECK(n == 3) << "not evaluated";
  EXPECT_DEATH(CHECK(n == 4) << "n is " << n, "CHECK failed at .*status_test.cc.*n == 4 n is 3");
}

}  // namespace
}  // namespace berth
