// SPDX-License-Identifier: Apache-2.0
// The index gives the right state at every revision, and a sweep erases exactly what no read needs.
#include "store/mvcc/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"

namespace berth::store {
namespace {

Record Put(std::string key, int64_t revision, std::string_view value) {
  Record record;
  record.at = {.revision = {revision}, .sub = 0};
  record.key = std::move(key);
  record.value = Bytes(value);
  record.create_revision = {revision};
  record.version = 1;
  return record;
}

Record Deletion(std::string key, int64_t revision) {
  Record record;
  record.at = {.revision = {revision}, .sub = 0};
  record.type = Op::Type::kDelete;
  record.key = std::move(key);
  return record;
}

RangeRequest All(size_t limit = 0) {
  RangeRequest request;
  request.end = kNoEnd;
  request.limit = limit;
  return request;
}

TEST(Index, ManyKeysStaySortedHoweverTheyCome) {
  for (const bool ascending : {true, false}) {
    Index index;
    std::set<std::string> keys;
    for (int i = 0; i < 3'000; ++i) {
      const int number = ascending ? i : (i * 7'919) % 3'000;
      std::string key = std::to_string(100'000 + number);
      index.Apply(Put(key, i + 2, "v"));
      keys.insert(std::move(key));
    }
    EXPECT_EQ(index.size(), 3'000U);
    std::vector<std::string> found;
    index.ForEach([&](const std::string& key, const Index::Entry&) { found.push_back(key); });
    EXPECT_EQ(found, std::vector<std::string>(keys.begin(), keys.end()));
    for (const std::string& key : keys) EXPECT_NE(index.Find(key), nullptr);
    EXPECT_EQ(index.Find("1"), nullptr);
    EXPECT_EQ(index.Find("9"), nullptr);
  }
}

// All versions of all keys, as a map.
struct Model {
  std::map<std::string, std::map<int64_t, std::optional<std::string>>> keys;

  std::map<std::string, std::string> At(int64_t revision) const {
    std::map<std::string, std::string> state;
    for (const auto& [key, versions] : keys) {
      const auto behind = versions.upper_bound(revision);
      if (behind != versions.begin() && std::prev(behind)->second) {
        state[key] = *std::prev(behind)->second;
      }
    }
    return state;
  }
};

// The values of older versions lie in the log: read them from the model, as long as the sweep left
// them there.
std::map<std::string, std::string> Read(const Index& index,
                                        const Model& model,
                                        const std::set<int64_t>& erased,
                                        int64_t at) {
  Index::Page page = index.Range(All(), {at});
  std::map<std::string, std::string> state;
  for (const KeyValue& kv : page.items) state[kv.key] = kv.value.view();
  for (const auto& [item, position] : page.in_log) {
    const std::string& key = page.items[item].key;
    EXPECT_FALSE(erased.contains(position.revision.value)) << "a read needs what was swept";
    state[key] = model.keys.at(key).at(position.revision.value).value();
  }
  return state;
}

TEST(Index, SweepsExactlyWhatNoReadNeeds) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed);
    Index index;
    Model model;
    std::set<int64_t> written;
    int64_t revision = 1;
    for (int i = 0; i < 600; ++i) {
      const std::string key = std::to_string(random.Below(200));
      ++revision;
      const bool deletes = random.Chance(0.3);
      if (deletes && index.Find(key) == nullptr) continue;
      written.insert(revision);
      if (deletes) {
        index.Apply(Deletion(key, revision));
        model.keys[key][revision] = std::nullopt;
      } else {
        index.Apply(Put(key, revision, std::to_string(revision)));
        model.keys[key][revision] = std::to_string(revision);
      }
    }
    const int64_t compacted = random.Between(1, revision);
    std::set<int64_t> erased;
    std::string cursor;
    for (bool more = true; more;) {
      Index::Swept swept = index.Sweep(cursor, {compacted}, 20);
      for (const Position at : swept.erased) {
        EXPECT_TRUE(erased.insert(at.revision.value).second) << "erased twice";
        EXPECT_LE(at.revision.value, compacted);
      }
      more = swept.next.has_value();
      if (more) cursor = *swept.next;
    }
    for (int64_t at = compacted; at <= revision; ++at) {
      ASSERT_EQ(Read(index, model, erased, at), model.At(at)) << "seed " << seed << " at " << at;
    }
    // What is left at or before the compacted revision is one live version per key.
    const auto kept = std::ranges::count_if(
        written, [&](int64_t at) { return at <= compacted && !erased.contains(at); });
    EXPECT_EQ(static_cast<size_t>(kept), model.At(compacted).size());
  }
}

TEST(Index, SweepsAKeyWithALongHistoryInSteps) {
  Index index;
  constexpr int64_t kVersions = 55'000;
  for (int64_t revision = 2; revision < 2 + kVersions; ++revision) {
    index.Apply(Put("lease", revision, "v"));
  }
  index.Apply(Deletion("lease", 2 + kVersions));
  index.Apply(Put("other", 3 + kVersions, "v"));
  std::set<int64_t> erased;
  int steps = 0;
  std::string cursor;
  for (bool more = true; more; ++steps) {
    Index::Swept swept = index.Sweep(cursor, {2 + kVersions}, 1'000);
    EXPECT_LE(swept.erased.size(), 11'000U);
    for (const Position at : swept.erased) EXPECT_TRUE(erased.insert(at.revision.value).second);
    more = swept.next.has_value();
    if (more) cursor = *swept.next;
  }
  EXPECT_EQ(erased.size(), static_cast<size_t>(kVersions) + 1);
  EXPECT_GE(steps, 5);
  EXPECT_EQ(index.size(), 1U);
}

TEST(Index, CountsARangeItDoesNotReturn) {
  Index index;
  int64_t revision = 1;
  for (int i = 0; i < 1'000; ++i) index.Apply(Put(std::to_string(10'000 + i), ++revision, "v"));
  const int64_t before = revision;
  for (int i = 0; i < 1'000; i += 3) index.Apply(Deletion(std::to_string(10'000 + i), ++revision));
  EXPECT_EQ(index.Range(All(5), {revision}).count, 666U);
  EXPECT_EQ(index.Range(All(5), {before}).count, 1'000U);
  EXPECT_EQ(index.Range(All(5), {before + 1}).count, 999U);
  RangeRequest part = All(1);
  part.start = "10100";
  part.end = "10200";
  EXPECT_EQ(index.Range(part, {before}).count, 100U);
  EXPECT_TRUE(index.Range(part, {before}).more);
}

}  // namespace
}  // namespace berth::store
