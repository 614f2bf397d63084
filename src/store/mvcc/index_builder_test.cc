// SPDX-License-Identifier: Apache-2.0
// Building an index from a log gives what applying the records one by one gives.
#include "store/mvcc/index_builder.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace berth::store {
namespace {

// Keys that share prefixes of any length, end inside each other, and hold zero bytes.
std::string RandomKey(Random& random) {
  std::string key = random.Chance(0.9) ? "/registry/machines/default/" : "/r";
  const auto parts = random.Below(4);
  for (uint64_t i = 0; i < parts; ++i) {
    key +=
        random.Chance(0.3) ? std::string(random.Below(12), '\0') : std::to_string(random.Below(40));
  }
  return key;
}

Record RandomRecord(Random& random, int64_t revision) {
  Record record;
  record.at = {.revision = {revision}, .sub = static_cast<uint8_t>(random.Below(128))};
  record.type = random.Chance(0.2) ? Op::Type::kDelete : Op::Type::kPut;
  record.key = RandomKey(random);
  record.value = Bytes(std::to_string(revision));
  return record;
}

TEST(IndexBuilder, BuildsWhatApplyingWouldGive) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    IndexBuilder builder;
    Index expected;
    const auto records = static_cast<int64_t>(random.Below(4'000));
    for (int64_t revision = 2; revision < 2 + records; ++revision) {
      Record record = RandomRecord(random, revision);
      expected.Apply(record);
      builder.Add(std::move(record));
    }
    const Index built = builder.Take();
    EXPECT_EQ(built.size(), expected.size());
    RangeRequest all;
    all.end = kNoEnd;
    for (const int64_t at : {records / 3, records / 2, records + 1}) {
      const Index::Page a = built.Range(all, {at});
      const Index::Page b = expected.Range(all, {at});
      ASSERT_EQ(a.items.size(), b.items.size()) << "seed " << seed;
      for (size_t i = 0; i < a.items.size(); ++i) {
        ASSERT_EQ(a.items[i].key, b.items[i].key);
        ASSERT_EQ(a.items[i].value, b.items[i].value);
        ASSERT_EQ(a.items[i].mod_revision, b.items[i].mod_revision);
      }
      EXPECT_EQ(a.in_log, b.in_log);
    }
    all.limit = 3;
    EXPECT_EQ(built.Range(all, {records + 1}).count, expected.size());
  }
}

}  // namespace
}  // namespace berth::store
