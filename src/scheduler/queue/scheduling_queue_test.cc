// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/scheduling_queue.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/random.h"

namespace berth::scheduler {
namespace {

Time At(int64_t seconds) { return Time() + Duration::Seconds(seconds); }

std::vector<std::string> PopAll(SchedulingQueue& queue) {
  std::vector<std::string> popped;
  while (auto uid = queue.Pop()) popped.push_back(*uid);
  return popped;
}

using Uids = std::vector<std::string>;

TEST(SchedulingQueue, NamespacesTakeTurnsAndTheOldestOfEachIsFirst) {
  SchedulingQueue queue;
  for (const char* uid : {"a1", "a2", "a3"}) queue.Add({.uid = uid, .tenant = "a"});
  for (const char* uid : {"b1", "b2"}) queue.Add({.uid = uid, .tenant = "b"});
  EXPECT_EQ(PopAll(queue), (Uids{"a1", "b1", "a2", "b2", "a3"}));
}

TEST(SchedulingQueue, PriorityGoesBeforeTurns) {
  SchedulingQueue queue;
  queue.Add({.uid = "low", .tenant = "a", .priority = -5});
  queue.Add({.uid = "middle", .tenant = "a"});
  queue.Add({.uid = "high", .tenant = "b", .priority = 100});
  EXPECT_EQ(PopAll(queue), (Uids{"high", "middle", "low"}));
}

TEST(SchedulingQueue, WhatFailsWaitsLongerEachTime) {
  SchedulingQueue queue(
      {.backoff_initial = Duration::Seconds(1), .backoff_max = Duration::Seconds(4)});
  queue.Add({.uid = "x", .tenant = "a"});
  Time now = At(100);
  for (const int64_t pause : {1, 2, 4, 4}) {
    ASSERT_EQ(queue.Pop(), "x");
    queue.Backoff("x", now);
    EXPECT_EQ(queue.Pop(), std::nullopt);
    const Time due = now + Duration::Seconds(pause);
    EXPECT_EQ(queue.Advance(due - Duration::Nanos(1)), due);
    EXPECT_EQ(queue.active(), 0U);
    EXPECT_EQ(queue.Advance(due), std::nullopt);
    now = due;
  }
}

TEST(SchedulingQueue, AParkedEntryIsWokenByItsGroupOnlyAndTheMostImportantFirst) {
  SchedulingQueue queue;
  queue.Add({.uid = "old", .tenant = "a"});
  queue.Add({.uid = "new", .tenant = "a"});
  queue.Add({.uid = "urgent", .tenant = "b", .priority = 7});
  queue.Add({.uid = "other", .tenant = "b"});
  for (const std::string& uid : PopAll(queue)) queue.Park(uid, uid == "other" ? 2 : 1, At(300));
  EXPECT_EQ(queue.waiting_groups(), (std::map<WaitGroup, size_t>{{1, 3}, {2, 1}}));
  EXPECT_EQ(queue.Wake(1, 2), 2U);
  EXPECT_EQ(PopAll(queue), (Uids{"urgent", "old"}));
  EXPECT_EQ(queue.Wake(3, 10), 0U);
  EXPECT_EQ(queue.Wake(1, 10), 1U);
  EXPECT_EQ(PopAll(queue), (Uids{"new"}));
  EXPECT_EQ(queue.waiting_groups(), (std::map<WaitGroup, size_t>{{2, 1}}));
}

TEST(SchedulingQueue, AParkedEntryIsLookedAtAgainInAnyCase) {
  SchedulingQueue queue;
  queue.Add({.uid = "x", .tenant = "a"});
  ASSERT_EQ(queue.Pop(), "x");
  queue.Park("x", 1, At(60));
  EXPECT_EQ(queue.Advance(At(59)), At(60));
  EXPECT_EQ(queue.Pop(), std::nullopt);
  queue.Advance(At(60));
  EXPECT_EQ(queue.Pop(), "x");
  EXPECT_TRUE(queue.waiting_groups().empty());
}

TEST(SchedulingQueue, AChangeDuringTheWorkIsNotLost) {
  for (const int end : {0, 1, 2}) {
    SchedulingQueue queue;
    queue.Add({.uid = "x", .tenant = "a"});
    ASSERT_EQ(queue.Pop(), "x");
    queue.Add({.uid = "x", .tenant = "a", .priority = 9});
    EXPECT_EQ(queue.Pop(), std::nullopt);  // never worked on twice at a time
    if (end == 0) queue.Done("x");
    if (end == 1) queue.Backoff("x", At(0));
    if (end == 2) queue.Park("x", 1, At(60));
    EXPECT_EQ(queue.Find("x"), SchedulingQueue::Place::kActive);
    EXPECT_EQ(queue.Pop(), "x");
  }
}

TEST(SchedulingQueue, RemoveForgetsAnEntryWhereverItIs) {
  SchedulingQueue queue;
  for (const char* uid : {"active", "work", "backoff", "parked"}) {
    queue.Add({.uid = uid, .tenant = uid});
  }
  while (auto uid = queue.Pop()) {
    if (*uid == "active") queue.Done(*uid);
    if (*uid == "backoff") queue.Backoff(*uid, At(0));
    if (*uid == "parked") queue.Park(*uid, 1, At(60));
  }
  queue.Add({.uid = "active", .tenant = "active"});
  for (const char* uid : {"active", "work", "backoff", "parked"}) queue.Remove(uid);
  queue.Done("work");
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_EQ(queue.active(), 0U);
  EXPECT_EQ(queue.Advance(At(1000)), std::nullopt);
  EXPECT_TRUE(queue.waiting_groups().empty());
}

TEST(SchedulingQueue, NothingIsLostOrWorkedOnTwiceWhateverHappens) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    SchedulingQueue queue;
    std::set<std::string> known;
    std::set<std::string> in_work;
    Time now = At(0);
    for (int step = 0; step < 2000; ++step) {
      const std::string uid = std::to_string(random.Below(40));
      switch (random.Below(6)) {
        case 0:
          queue.Add({.uid = uid,
                     .tenant = std::to_string(random.Below(3)),
                     .priority = static_cast<int32_t>(random.Below(3))});
          known.insert(uid);
          break;
        case 1:
          queue.Remove(uid);
          known.erase(uid);
          in_work.erase(uid);
          break;
        case 2:
          if (const auto popped = queue.Pop()) {
            EXPECT_TRUE(known.contains(*popped));
            EXPECT_TRUE(in_work.insert(*popped).second) << "worked on twice";
          }
          break;
        case 3:
          if (!in_work.empty()) {
            const std::string ended = *in_work.begin();
            in_work.erase(in_work.begin());
            if (random.Below(2) == 0) {
              queue.Backoff(ended, now);
            } else {
              queue.Park(ended, random.Below(3), now + Duration::Seconds(30));
            }
          }
          break;
        case 4: queue.Wake(random.Below(3), random.Below(4)); break;
        default:
          now = now + Duration::Millis(static_cast<int64_t>(random.Below(2000)));
          queue.Advance(now);
      }
      ASSERT_EQ(queue.size(), known.size());
    }
    // In the end everything can be worked on.
    for (const std::string& uid : in_work) queue.Backoff(uid, now);
    queue.Advance(now + Duration::Hours(1));
    EXPECT_EQ(PopAll(queue).size(), known.size());
  }
}

}  // namespace
}  // namespace berth::scheduler
