// SPDX-License-Identifier: Apache-2.0
#include "base/text_map.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"

namespace berth {
namespace {

std::string Keys(const TextMap<int>& map) {
  std::string keys;
  for (const auto& [key, value] : map) keys += key + "=" + std::to_string(value) + " ";
  return keys;
}

TEST(TextMap, IsIteratedInTheOrderInWhichKeysCame) {
  TextMap<int> map;
  for (const char* key : {"zebra", "ape", "lion"}) map[key] = static_cast<int>(map.size());
  EXPECT_EQ(Keys(map), "zebra=0 ape=1 lion=2 ");
  map.insert_or_assign("ape", 7);
  EXPECT_EQ(map.erase("zebra"), 1U);
  EXPECT_EQ(map.erase("zebra"), 0U);
  map["zebra"] = 8;
  EXPECT_EQ(Keys(map), "ape=7 lion=2 zebra=8 ");
}

TEST(TextMap, EmplaceLeavesWhatIsThere) {
  TextMap<std::unique_ptr<int>> map;
  EXPECT_TRUE(map.emplace("a", std::make_unique<int>(1)).second);
  const auto [at, is_new] = map.try_emplace("a");
  EXPECT_FALSE(is_new);
  EXPECT_EQ(*at->second, 1);
  EXPECT_EQ(*map.at("a"), 1);
  EXPECT_EQ(map.find("b"), map.end());
}

TEST(TextMap, EntriesStayWhereTheyAreWhileOthersComeAndGo) {
  TextMap<int> map;
  map["kept"] = 1;
  const int* const value = &map.at("kept");
  for (int i = 0; i < 1'000; ++i) map[std::to_string(i)] = i;
  for (int i = 0; i < 1'000; i += 2) map.erase(std::to_string(i));
  EXPECT_EQ(&map.at("kept"), value);
  EXPECT_EQ(map.size(), 501U);
}

TEST(TextMap, ErasingWhileIteratingGoesOnBehindIt) {
  TextMap<int> map;
  for (int i = 0; i < 10; ++i) map[std::to_string(i)] = i;
  EXPECT_EQ(erase_if(map, [](const auto& entry) { return entry.second % 3 != 0; }), 6U);
  EXPECT_EQ(Keys(map), "0=0 3=3 6=6 9=9 ");
}

TEST(TextMap, AMovedFromMapIsEmptyAndUsable) {
  TextMap<int> map;
  map["a"] = 1;
  TextMap<int> other = std::move(map);
  EXPECT_EQ(Keys(other), "a=1 ");
  map["b"] = 2;  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(Keys(map), "b=2 ");
  other = std::move(map);
  EXPECT_EQ(Keys(other), "b=2 ");
}

TEST(TextMap, AgreesWithATreeOverManyChanges) {
  Random random(7);
  TextMap<uint64_t> map;
  std::map<std::string, uint64_t> tree;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "key-" + std::to_string(random.Below(300));
    switch (random.Below(3)) {
      case 0: EXPECT_EQ(map.erase(key), tree.erase(key)); break;
      case 1: map[key] = tree[key] = random.Next(); break;
      default: {
        const auto found = tree.find(key);
        ASSERT_EQ(map.contains(key), found != tree.end());
        if (found != tree.end()) EXPECT_EQ(map.at(key), found->second);
      }
    }
    ASSERT_EQ(map.size(), tree.size());
  }
  std::map<std::string, uint64_t> seen;
  for (const auto& [key, value] : map) seen.emplace(key, value);
  EXPECT_EQ(seen, tree);
}

}  // namespace
}  // namespace berth
