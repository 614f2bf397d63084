// SPDX-License-Identifier: Apache-2.0
#include "base/string_map.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace berth {
namespace {

TEST(StringMap, IsSearchedByViewsAndKeepsItsReferences) {
  StringMap<int> map;
  int& first = map["first"];
  for (int i = 0; i < 1000; ++i) map[std::to_string(i)] = i;
  first = 7;
  const auto found = map.find(std::string_view("first and more").substr(0, 5));
  ASSERT_NE(found, map.end());
  EXPECT_EQ(&found->second, &first);
  EXPECT_EQ(found->second, 7);
}

TEST(StringSet, IsSearchedByViews) {
  const StringSet set = {"a", "b"};
  EXPECT_TRUE(set.contains(std::string_view("ab").substr(0, 1)));
  EXPECT_FALSE(set.contains(std::string_view("c")));
}

}  // namespace
}  // namespace berth
