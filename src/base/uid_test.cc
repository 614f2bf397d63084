// SPDX-License-Identifier: Apache-2.0
// Object identities look like UUIDs of version 4, and differ.
#include "base/uid.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace berth {
namespace {

TEST(Uid, IsARandomUuidInLowerCase) {
  Random random(1);
  std::set<std::string> seen;
  for (int i = 0; i < 1'000; ++i) {
    const std::string uid = NewUid(random);
    EXPECT_TRUE(IsUid(uid)) << uid;
    EXPECT_EQ(uid[14], '4') << uid;
    EXPECT_NE(std::string("89ab").find(uid[19]), std::string::npos) << uid;
    seen.insert(uid);
  }
  EXPECT_EQ(seen.size(), 1'000U);
}

TEST(Uid, IsRecognisedOnlyInItsOneForm) {
  EXPECT_TRUE(IsUid("123e4567-e89b-42d3-a456-426614174000"));
  for (const char* text : {"",
                           "123e4567-e89b-42d3-a456-42661417400",
                           "123e4567-e89b-42d3-a456-4266141740000",
                           "123E4567-e89b-42d3-a456-426614174000",
                           "123e4567e-89b-42d3-a456-426614174000",
                           "g23e4567-e89b-42d3-a456-426614174000",
                           "123e4567 e89b-42d3-a456-426614174000"}) {
    EXPECT_FALSE(IsUid(text)) << text;
  }
}

}  // namespace
}  // namespace berth
