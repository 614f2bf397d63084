// SPDX-License-Identifier: Apache-2.0
// Defends what is remembered of refusals: as long as a pass lasts, and no more than there is room
// for.
#include "scheduler/placing/refusal_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace berth::scheduler {
namespace {

constexpr Time kStart = Time() + Duration::Seconds(100);

ObjectRecord Object(const std::string& uid) {
  ObjectRecord record;
  record.uid = uid;
  record.generation = 1;
  return record;
}

PoolIndex Pool(size_t index) { return PoolIndex{static_cast<uint32_t>(index)}; }

RefusalBook::Told Said(size_t pool, const std::string& reason, const std::string& message = "") {
  return {.host = Pool(pool), .reason = reason, .message = message};
}

using Pools = std::vector<PoolIndex>;

TEST(RefusalBook, APassGoesOnUntilItIsOverAndIsToldOfAfterwards) {
  RefusalBook book;
  const ObjectRecord web = Object("web");
  EXPECT_TRUE(book.Resume(web, kStart).empty());
  EXPECT_TRUE(book.Add(web, Pool(3), Said(3, "NoDisk", "all full"), kStart));
  EXPECT_TRUE(book.Add(web, Pool(1), Said(7, "NoRoom"), kStart));
  EXPECT_FALSE(book.Add(web, Pool(1), Said(7, "NoRoom"), kStart));
  EXPECT_EQ(book.Resume(web, kStart), (Pools{Pool(3), Pool(1)}));
  book.EndPass("web");
  EXPECT_TRUE(book.Resume(web, kStart).empty());
  EXPECT_EQ(book.PoolsOf(web), (Pools{Pool(3), Pool(1)}));
  const auto told = book.ToldOf(web);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].reason, "NoDisk");
  EXPECT_EQ(told[0].message, "all full");
  EXPECT_EQ(told[1].host, Pool(7));
  EXPECT_EQ(told[1].message, "");
  // Who is not asked in the next pass is not told of after it.
  EXPECT_TRUE(book.Add(web, Pool(1), Said(1, "NoRoom"), kStart));
  EXPECT_EQ(book.Resume(web, kStart), (Pools{Pool(1)}));
  EXPECT_EQ(book.PoolsOf(web).size(), 2U);
  book.EndPass("web");
  EXPECT_EQ(book.PoolsOf(web), (Pools{Pool(1)}));
  book.Forget("web");
  EXPECT_EQ(book.size(), 0U);
}

TEST(RefusalBook, WhatIsOldOrOfAnotherEditionKeepsNobodyFromBeingAsked) {
  RefusalBook book;
  ObjectRecord web = Object("web");
  book.Add(web, Pool(1), Said(1, "NoDisk"), kStart);
  const Time later = kStart + RefusalBook::kKeptFor;
  EXPECT_EQ(book.Resume(web, later).size(), 1U);
  EXPECT_TRUE(book.Resume(web, later + Duration::Seconds(1)).empty());
  book.Add(web, Pool(1), Said(1, "NoDisk"), later);
  ++web.generation;
  EXPECT_TRUE(book.ToldOf(web).empty());
  EXPECT_TRUE(book.Resume(web, later).empty());
  EXPECT_EQ(book.size(), 0U);
}

TEST(RefusalBook, APoolThatSomethingHappenedToIsAskedAgain) {
  RefusalBook book;
  const ObjectRecord web = Object("web");
  for (size_t i = 0; i < 3; ++i) book.Add(web, Pool(i), Said(i, "NoDisk"), kStart);
  const Pools changed = {Pool(1), Pool(9)};
  book.Reopen(changed);
  EXPECT_EQ(book.Resume(web, kStart), (Pools{Pool(0), Pool(2)}));
}

TEST(RefusalBook, WhatIsOnlyNotedKeepsNobodyFromBeingAsked) {
  RefusalBook book;
  const ObjectRecord web = Object("web");
  book.Note(web, Pool(1), Said(1, "BindUnknown"));
  EXPECT_TRUE(book.Resume(web, kStart).empty());
  EXPECT_EQ(book.ToldOf(web).size(), 1U);
}

TEST(RefusalBook, EverythingInItIsBounded) {
  RefusalBook book;
  const ObjectRecord web = Object("web");
  for (size_t i = 0; i < RefusalBook::kOfOneMax; ++i) {
    ASSERT_TRUE(book.Add(web, Pool(i), Said(i, "No" + std::to_string(i), "text"), kStart));
  }
  EXPECT_FALSE(book.Add(web, Pool(RefusalBook::kOfOneMax), Said(0, "No"), kStart));
  std::vector<std::string> reasons;
  size_t messages = 0;
  for (const auto& told : book.ToldOf(web)) {
    if (std::ranges::find(reasons, told.reason) == reasons.end()) reasons.push_back(told.reason);
    messages += told.message.empty() ? 0 : 1;
  }
  EXPECT_EQ(reasons.size(), RefusalBook::kReasonsMax);
  EXPECT_EQ(reasons.back(), "Refused");
  EXPECT_EQ(messages, RefusalBook::kMessagesMax);
  // All objects together.
  RefusalBook small(3);
  const ObjectRecord other = Object("other");
  EXPECT_TRUE(small.Add(web, Pool(0), Said(0, "NoDisk"), kStart));
  EXPECT_TRUE(small.Add(other, Pool(0), Said(0, "NoDisk"), kStart));
  EXPECT_TRUE(small.Add(other, Pool(1), Said(1, "NoDisk"), kStart));
  EXPECT_FALSE(small.Add(web, Pool(1), Said(1, "NoDisk"), kStart));
  small.Forget("other");
  EXPECT_TRUE(small.Add(web, Pool(1), Said(1, "NoDisk"), kStart));
}

}  // namespace
}  // namespace berth::scheduler
