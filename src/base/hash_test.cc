// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Fnv1a, IsTheOneThatEverybodyKnows) {
  EXPECT_EQ(Fnv1a(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(Fnv1a("a"), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(Fnv1a("foobar"), 0x85944171f73967e8ULL);
  EXPECT_EQ(Fnv1a("bar", Fnv1a("foo")), Fnv1a("foobar"));
}

TEST(Fingerprint, KeepsPartsApart) {
  EXPECT_EQ(Fingerprint().Add("a").Add(1).value(), Fingerprint().Add("a").Add(1).value());
  EXPECT_NE(Fingerprint().Add("ab").Add("c").value(), Fingerprint().Add("a").Add("bc").value());
  EXPECT_NE(Fingerprint().Add("a").value(), Fingerprint().Add("a").Add("").value());
}

}  // namespace
}  // namespace berth
