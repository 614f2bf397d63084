// SPDX-License-Identifier: Apache-2.0
// Defends reading of query parameters, bad ones included.
#include "apiserver/http/query.h"

#include <gtest/gtest.h>

namespace berth::apiserver {
namespace {

TEST(Query, ReadsBooleansAsGoClientsWriteThem) {
  const auto query = Query::Parse("a=true&b=1&c&d=false&e=maybe");
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_TRUE(*QueryBool(*query, "a"));
  EXPECT_TRUE(*QueryBool(*query, "b"));
  EXPECT_TRUE(*QueryBool(*query, "c"));
  EXPECT_FALSE(*QueryBool(*query, "d"));
  EXPECT_FALSE(*QueryBool(*query, "absent"));
  EXPECT_FALSE(QueryBool(*query, "e").ok());
}

TEST(Query, ReadsCountsAndRefusesOtherNumbers) {
  const auto query = Query::Parse("a=500&b=-1&c=ten&d=&e=99999999999999999999");
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(**QueryCount(*query, "a"), 500);
  EXPECT_FALSE(QueryCount(*query, "b").ok());
  EXPECT_FALSE(QueryCount(*query, "c").ok());
  EXPECT_EQ(*QueryCount(*query, "d"), std::nullopt);
  EXPECT_EQ(*QueryCount(*query, "absent"), std::nullopt);
  EXPECT_FALSE(QueryCount(*query, "e").ok());
}

}  // namespace
}  // namespace berth::apiserver
