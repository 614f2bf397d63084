// SPDX-License-Identifier: Apache-2.0
// HashMap answers like std::map, whatever is inserted and erased, also when all hashes collide.
#include "base/hash_map.h"

#include <map>

#include "base/random.h"

namespace berth {
namespace {

struct Identity {
  uint64_t operator()(uint64_t key) const { return key; }
};
struct Colliding {
  uint64_t operator()(uint64_t key) const { return key % 3; }
};

template <class Hash>
void CompareWithStdMap(uint64_t seed) {
  Random random(seed);
  HashMap<uint64_t, int, Hash> map;
  std::map<uint64_t, int> expected;
  for (int step = 0; step < 4'000; ++step) {
    const uint64_t key = random.Below(200);
    if (random.Chance(0.5)) {
      EXPECT_EQ(map.Insert(key, step), expected.emplace(key, step).second);
    } else {
      EXPECT_EQ(map.Erase(key), expected.erase(key) == 1);
    }
    ASSERT_EQ(map.size(), expected.size());
  }
  for (uint64_t key = 0; key < 200; ++key) {
    const auto found = expected.find(key);
    ASSERT_EQ(map.Find(key) != nullptr, found != expected.end());
    if (found != expected.end()) EXPECT_EQ(*map.Find(key), found->second);
  }
}

TEST(HashMap, AnswersLikeStdMap) {
  for (uint64_t seed = 1; seed <= 5; ++seed) CompareWithStdMap<Identity>(seed);
}

TEST(HashMap, AnswersLikeStdMapWhenHashesCollide) { CompareWithStdMap<Colliding>(7); }

TEST(HashMap, FindsNothingWhenEmpty) {
  HashMap<uint64_t, int, Identity> map;
  EXPECT_EQ(map.Find(1), nullptr);
  EXPECT_FALSE(map.Erase(1));
}

}  // namespace
}  // namespace berth
