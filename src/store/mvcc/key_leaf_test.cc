// SPDX-License-Identifier: Apache-2.0
// A leaf agrees with a sorted map, whatever its keys have in common.
#include "store/mvcc/key_leaf.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace berth::store {
namespace {

using Leaf = KeyLeaf<int>;

void Put(Leaf& leaf, std::string key, int entry) {
  const size_t at = leaf.LowerBound(key);
  if (leaf.HasAt(at, key)) {
    leaf[at].entry = entry;
  } else {
    leaf.Insert(at, {.key = std::move(key), .entry = entry});
  }
}

std::map<std::string, int> ContentOf(const Leaf& leaf) {
  std::map<std::string, int> content;
  for (size_t i = 0; i < leaf.size(); ++i) {
    EXPECT_TRUE(i == 0 || leaf[i - 1].key < leaf[i].key) << i;
    content[leaf[i].key] = leaf[i].entry;
  }
  return content;
}

// Few letters and many lengths: keys that are beginnings of others, equal heads, zero bytes.
std::string RandomKey(Random& random) {
  static constexpr std::string_view kLetters("a\0\xff", 3);
  std::string key(random.Below(3) == 0 ? "" : "/machines/default/");
  for (size_t left = random.Below(14); left > 0; --left) key += kLetters[random.Below(3)];
  return key;
}

TEST(KeyLeaf, AgreesWithASortedMap) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    Leaf leaf;
    std::map<std::string, int> model;
    while (!leaf.is_full() && random.Below(200) != 0) {
      const std::string key = RandomKey(random);
      const int entry = static_cast<int>(random.Below(1000));
      Put(leaf, key, entry);
      model[key] = entry;
      const std::string other = RandomKey(random);
      const auto bound = model.lower_bound(other);
      const size_t at = leaf.LowerBound(other);
      ASSERT_EQ(at, static_cast<size_t>(std::distance(model.begin(), bound)));
      ASSERT_EQ(leaf.HasAt(at, other), model.contains(other));
    }
    ASSERT_EQ(ContentOf(leaf), model);

    const auto is_gone = [](int entry) { return entry % 3 == 0; };
    leaf.EraseIf([&](const Leaf::Item& item) { return is_gone(item.entry); });
    std::erase_if(model, [&](const auto& item) { return is_gone(item.second); });
    ASSERT_EQ(ContentOf(leaf), model);

    const size_t low = random.Below(leaf.size() + 1);
    const Leaf high = leaf.TakeFrom(low);
    ASSERT_EQ(leaf.size(), low);
    std::map<std::string, int> both = ContentOf(leaf);
    both.merge(ContentOf(high));
    ASSERT_EQ(both, model);
    Put(leaf, "/machines/default/web", 1);
    ASSERT_TRUE(leaf.HasAt(leaf.LowerBound("/machines/default/web"), "/machines/default/web"));
  }
}

}  // namespace
}  // namespace berth::store
