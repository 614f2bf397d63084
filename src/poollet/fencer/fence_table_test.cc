// SPDX-License-Identifier: Apache-2.0
// Who dies when, and what a fencer says of it.
#include "poollet/fencer/fence_table.h"

#include <gtest/gtest.h>

#include "poollet/fencer/fence_words.h"

namespace berth::poollet {
namespace {

constexpr FenceProcess kGuest = {.pid = 4711, .start_ticks = 99};

FenceRequest Lease(std::string uid, int64_t deadline) {
  FenceRequest request;
  request.deadline = deadline;
  request.leases = {std::move(uid)};
  return request;
}

FenceRequest Guest(std::string uid, FenceProcess process) {
  FenceRequest request;
  request.guests = {{.uid = std::move(uid), .process = process}};
  return request;
}

TEST(FenceTable, R3_3_AGuestDiesAtItsDeadlineAndIsFencedOnceItIsDead) {
  FenceTable table;
  ASSERT_EQ(table.Apply(Lease("a", 100), 1), OkStatus());
  ASSERT_EQ(table.Apply(Guest("a", kGuest), 2), OkStatus());
  EXPECT_EQ(table.NextDeadline(), 100);
  table.Expire(99);
  EXPECT_TRUE(table.Condemned().empty());
  table.Expire(100);
  EXPECT_EQ(table.Condemned(), (std::set<FenceProcess>{kGuest}));
  EXPECT_FALSE(table.leases().at("a").fenced) << "killed, and not yet seen dead";
  EXPECT_EQ(table.NextDeadline(), std::nullopt);
  table.Died(kGuest);
  EXPECT_TRUE(table.leases().at("a").fenced);
  EXPECT_EQ(table.TakeFenced(), (std::vector<std::string>{"a"}));
  EXPECT_TRUE(table.TakeFenced().empty()) << "said once";
}

TEST(FenceTable, R3_3_WhatHasRunOutIsNotRevivedUntilItIsReleased) {
  FenceTable table;
  ASSERT_EQ(table.Apply(Lease("a", 100), 1), OkStatus());
  ASSERT_EQ(table.Apply(Lease("a", 500), 100), OkStatus());
  EXPECT_TRUE(table.leases().at("a").fenced);
  EXPECT_EQ(table.leases().at("a").deadline, 100);
  FenceRequest again = Lease("a", 500);
  again.releases = {"a"};
  ASSERT_EQ(table.Apply(again, 200), OkStatus());
  EXPECT_FALSE(table.leases().at("a").fenced);
  EXPECT_EQ(table.leases().at("a").deadline, 500);
}

TEST(FenceTable, R3_3_ADeadlineNeverMovesBack) {
  FenceTable table;
  ASSERT_EQ(table.Apply(Lease("a", 300), 1), OkStatus());
  ASSERT_EQ(table.Apply(Lease("a", 200), 1), OkStatus());
  EXPECT_EQ(table.leases().at("a").deadline, 300);
}

TEST(FenceTable, R3_3_AGuestThatComesAfterItsDeadlineIsCondemnedAtOnce) {
  FenceTable table;
  ASSERT_EQ(table.Apply(Lease("a", 100), 1), OkStatus());
  table.Expire(150);
  ASSERT_EQ(table.Apply(Guest("a", kGuest), 160), OkStatus());
  EXPECT_EQ(table.Condemned(), (std::set<FenceProcess>{kGuest}));
  EXPECT_FALSE(table.leases().at("a").fenced);
}

TEST(FenceTable, R3_3_AGuestWithoutALeaseIsNotTaken) {
  FenceTable table;
  ASSERT_EQ(table.Apply(Guest("a", kGuest), 1), OkStatus());
  EXPECT_TRUE(table.Processes().empty());
  ASSERT_EQ(table.Apply(Lease("b", 100), 1), OkStatus());
  ASSERT_EQ(table.Apply(Guest("b", {.pid = 1, .start_ticks = 5}), 1), OkStatus());
  EXPECT_TRUE(table.Processes().empty()) << "nobody kills the first process of a host";
}

TEST(FenceTable, R3_3_AReleasedGuestLivesOn) {
  FenceTable table;
  ASSERT_EQ(table.Apply(Lease("a", 100), 1), OkStatus());
  ASSERT_EQ(table.Apply(Guest("a", kGuest), 1), OkStatus());
  FenceRequest release;
  release.releases = {"a"};
  ASSERT_EQ(table.Apply(release, 99), OkStatus());
  table.Expire(1000);
  EXPECT_TRUE(table.Condemned().empty());
}

TEST(FenceTable, RefusesMoreThanAHostCanHaveAndUidsThatAreNone) {
  FenceTable table;
  EXPECT_EQ(table.Apply(Lease("a b", 100), 1).reason(), Reason::kBadRequest);
  FenceRequest many;
  many.deadline = 100;
  for (size_t i = 0; i <= kFenceLeasesMax; ++i) many.leases.push_back(std::to_string(i));
  EXPECT_EQ(table.Apply(many, 1).reason(), Reason::kBadRequest);
  EXPECT_LE(table.leases().size(), kFenceLeasesMax);
}

TEST(FenceWords, WhatIsWrittenIsRead) {
  FenceRequest request = Lease("a-1", 42);
  request.releases = {"b.2"};
  request.guests = {{.uid = "a-1", .process = kGuest}};
  const auto read = DecodeFenceRequest(EncodeFenceRequest(request));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, request);

  FenceTable::Leases leases;
  leases["a"] = {.deadline = 7, .expired = true, .fenced = false, .processes = {kGuest}};
  leases["b"] = {.deadline = 9, .expired = true, .fenced = true, .processes = {}};
  const auto answer = DecodeFenceAnswer(EncodeFenceAnswer(OkStatus(), leases));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, leases);
  const auto failed = DecodeFenceAnswer(EncodeFenceAnswer(BadRequest("no\nway"), {}));
  EXPECT_EQ(failed.status().message(), "no way");
}

TEST(FenceWords, WhatIsNoWordIsRefused) {
  for (const std::string text : {"lease",
                                 "lease a b",
                                 "guest a 1",
                                 "guest a -1 2",
                                 "deadline x",
                                 "release ../etc",
                                 "kill 1",
                                 "guest a 1 2 3"}) {
    EXPECT_FALSE(DecodeFenceRequest(text).ok()) << text;
  }
  EXPECT_FALSE(DecodeFenceAnswer("lease a 1 0 0\n").ok()) << "without its end";
  EXPECT_FALSE(DecodeFenceLeases("lease a 1\n").ok());
}

TEST(FenceWords, MessagesEndWithADotAndMayComeInPieces) {
  std::string buffer = "deadline 1\nlea";
  EXPECT_EQ(TakeFenceMessage(buffer), std::nullopt);
  buffer += "se a\n.\n.\nrest";
  EXPECT_EQ(TakeFenceMessage(buffer), "deadline 1\nlease a\n");
  EXPECT_EQ(TakeFenceMessage(buffer), "");
  EXPECT_EQ(TakeFenceMessage(buffer), std::nullopt);
  EXPECT_EQ(buffer, "rest");
}

}  // namespace
}  // namespace berth::poollet
