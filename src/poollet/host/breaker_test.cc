// SPDX-License-Identifier: Apache-2.0
// When a server's history is doubted, and how many deletions are too many then.
#include "poollet/host/breaker.h"

#include <gtest/gtest.h>

namespace berth::poollet {
namespace {

TEST(Breaker, ANewIncarnationOrALowerRevisionIsSuspicious) {
  const HistorySeen same = {
      .incarnation_known = 1, .incarnation = 1, .revision_known = 10, .revision = 11};
  EXPECT_FALSE(IsSuspicious(same));
  HistorySeen seen = same;
  seen.incarnation = 2;
  EXPECT_TRUE(IsSuspicious(seen));
  seen = same;
  seen.revision = 9;
  EXPECT_TRUE(IsSuspicious(seen));
  seen.incarnation_known = 0;
  EXPECT_FALSE(IsSuspicious(seen)) << "the first contact has nothing to compare";
}

TEST(Breaker, R4_3_MoreThanATenthAndAtLeastThreeAreMany) {
  EXPECT_FALSE(IsMassDeletion(0, 0));
  EXPECT_FALSE(IsMassDeletion(2, 2));
  EXPECT_TRUE(IsMassDeletion(3, 3));
  EXPECT_TRUE(IsMassDeletion(3, 29));
  EXPECT_FALSE(IsMassDeletion(3, 30));
  EXPECT_FALSE(IsMassDeletion(10, 100));
  EXPECT_TRUE(IsMassDeletion(11, 100));
}

}  // namespace
}  // namespace berth::poollet
