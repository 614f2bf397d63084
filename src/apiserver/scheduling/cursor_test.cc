// SPDX-License-Identifier: Apache-2.0
// Defends: a cursor comes back as it was given out, and no other text passes for one.
#include "apiserver/scheduling/cursor.h"

#include <gtest/gtest.h>

namespace berth::apiserver {
namespace {

TEST(Cursor, ComesBackAsItWasGivenOut) {
  const Cursor both{.machines = store::Revision{42}, .pools = store::Revision{40}};
  EXPECT_EQ(both.ToString(), "m42.p40");
  for (const Cursor& cursor : {Cursor(),
                               both,
                               Cursor{.machines = store::Revision{1}, .pools = {}},
                               Cursor{.machines = {}, .pools = store::Revision{INT64_MAX}}}) {
    const auto parsed = Cursor::Parse(cursor.ToString());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, cursor);
  }
}

TEST(Cursor, AnyOtherTextIsABadRequest) {
  for (const char* text : {"42",
                           "m",
                           "m0",
                           "m-1",
                           "m1.",
                           ".m1",
                           "m1.m2",
                           "m1.p2.p3",
                           "x1",
                           "m1 ",
                           "m01",
                           "m99999999999999999999",
                           "m1.p2\n",
                           "m1111111111111111111111111111111111111111111111111111"}) {
    const auto parsed = Cursor::Parse(text);
    EXPECT_TRUE(parsed.status().Is(Reason::kBadRequest)) << text;
  }
}

}  // namespace
}  // namespace berth::apiserver
