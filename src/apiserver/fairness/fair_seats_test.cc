// SPDX-License-Identifier: Apache-2.0
#include "apiserver/fairness/fair_seats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace berth::apiserver {
namespace {

using Verdict = FairSeats::Verdict;

TEST(FairSeats, WhoAsksWhileASeatIsFreeSitsDown) {
  FairSeats seats({.seats = 2, .queue_per_flow = 1, .queue_total = 2});
  EXPECT_EQ(seats.Ask("a").verdict, Verdict::kSeated);
  EXPECT_EQ(seats.Ask("a").verdict, Verdict::kSeated);
  EXPECT_EQ(seats.SeatsOf("a"), 2);
}

TEST(FairSeats, QueuesAreBoundedByFlowAndInAll) {
  FairSeats seats({.seats = 1, .queue_per_flow = 2, .queue_total = 3});
  EXPECT_EQ(seats.Ask("a").verdict, Verdict::kSeated);
  EXPECT_EQ(seats.Ask("a").verdict, Verdict::kWaits);
  EXPECT_EQ(seats.Ask("a").verdict, Verdict::kWaits);
  EXPECT_EQ(seats.Ask("a").verdict, Verdict::kFlowIsFull);
  EXPECT_EQ(seats.Ask("b").verdict, Verdict::kWaits) << "another flow still finds room";
  EXPECT_EQ(seats.Ask("c").verdict, Verdict::kLevelIsFull);
  EXPECT_EQ(seats.flows(), 2) << "who was refused leaves nothing behind";
}

TEST(FairSeats, AQuietFlowIsNextHoweverManyOfANoisyOneCameBefore) {
  FairSeats seats({.seats = 2, .queue_per_flow = 100, .queue_total = 200});
  std::vector<FairSeats::Ticket> noisy;
  for (int i = 0; i < 50; ++i) noisy.push_back(seats.Ask("noisy").ticket);
  const auto quiet = seats.Ask("quiet");
  ASSERT_EQ(quiet.verdict, Verdict::kWaits);
  EXPECT_EQ(seats.Leave(noisy[0]), quiet.ticket);
  EXPECT_EQ(seats.Leave(noisy[1]), noisy[2]);
}

TEST(FairSeats, WhoGivesUpIsNotServed) {
  FairSeats seats({.seats = 1, .queue_per_flow = 4, .queue_total = 8});
  const auto first = seats.Ask("a");
  const auto gone = seats.Ask("b");
  const auto stays = seats.Ask("c");
  seats.GiveUp(gone.ticket);
  EXPECT_EQ(seats.Leave(first.ticket), stays.ticket);
  EXPECT_EQ(seats.Leave(stays.ticket), std::nullopt);
  EXPECT_EQ(seats.flows(), 0);
}

// Whatever is asked, left and given up: no seat is free while somebody waits, a seat goes to a flow
// that has no more than any other that waits, and nothing is forgotten or counted twice.
TEST(FairSeats, PropertySeatsGoToWhoHasTheFewest) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const FairSeats::Limits limits{.seats = 1 + random.Below(6),
                                   .queue_per_flow = random.Below(8),
                                   .queue_total = random.Below(20)};
    FairSeats seats(limits);
    std::map<FairSeats::Ticket, std::string> seated;
    std::map<FairSeats::Ticket, std::string> waiting;
    const auto count = [](const auto& tickets, const std::string& flow) {
      return static_cast<size_t>(
          std::ranges::count_if(tickets, [&](const auto& each) { return each.second == flow; }));
    };
    const auto any_of = [&random](const auto& tickets) {
      return std::next(tickets.begin(), static_cast<ptrdiff_t>(random.Below(tickets.size())));
    };
    for (int step = 0; step < 300; ++step) {
      const uint64_t choice = random.Below(10);
      if (choice < 5) {
        // The first flow asks half of the time.
        const std::string flow(1, static_cast<char>('a' + (random.Below(2) * random.Below(5))));
        const bool is_full = seated.size() == limits.seats;
        const auto asked = seats.Ask(flow);
        ASSERT_EQ(asked.verdict == Verdict::kSeated, !is_full);
        if (asked.verdict == Verdict::kSeated) seated[asked.ticket] = flow;
        if (asked.verdict == Verdict::kFlowIsFull) {
          ASSERT_EQ(count(waiting, flow), limits.queue_per_flow);
        }
        if (asked.verdict == Verdict::kLevelIsFull) ASSERT_EQ(waiting.size(), limits.queue_total);
        if (asked.verdict == Verdict::kWaits) waiting[asked.ticket] = flow;
      } else if (choice < 9 && !seated.empty()) {
        const auto leaving = any_of(seated);
        const auto ticket = leaving->first;
        seated.erase(leaving);
        const auto next = seats.Leave(ticket);
        ASSERT_EQ(next.has_value(), !waiting.empty());
        if (next.has_value()) {
          const std::string flow = waiting.at(*next);
          for (const auto& [other, name] : waiting) {
            ASSERT_LE(count(seated, flow), count(seated, name)) << "seed " << seed;
            if (name == flow) ASSERT_LE(*next, other) << "within a flow, who came first";
          }
          waiting.erase(*next);
          seated[*next] = flow;
        }
      } else if (!waiting.empty()) {
        const auto leaving = any_of(waiting);
        seats.GiveUp(leaving->first);
        waiting.erase(leaving);
      }
      ASSERT_EQ(seats.seated(), seated.size());
      ASSERT_EQ(seats.waiting(), waiting.size());
      ASSERT_TRUE(seated.size() == limits.seats || waiting.empty());
      ASSERT_EQ(seats.SeatsOf("a"), count(seated, "a"));
    }
  }
}

// One flow asks for a hundred seats at a time, four others for one each: everybody gets a fifth.
TEST(FairSeats, ANoisyFlowGetsItsPartAndNoMore) {
  FairSeats seats({.seats = 10, .queue_per_flow = 100, .queue_total = 400});
  std::deque<std::pair<FairSeats::Ticket, std::string>> seated;  // who sits longest is first
  std::map<FairSeats::Ticket, std::string> waiting;
  std::map<std::string, int> served;
  const auto ask = [&](const std::string& flow) {
    const auto asked = seats.Ask(flow);
    if (asked.verdict == Verdict::kSeated) seated.emplace_back(asked.ticket, flow);
    if (asked.verdict == Verdict::kWaits) waiting[asked.ticket] = flow;
  };
  for (int i = 0; i < 100; ++i) ask("noisy");
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 5; ++j) ask("quiet-" + std::to_string(i));
  }
  for (int turn = 0; turn < 1'000; ++turn) {
    const auto [ticket, flow] = seated.front();
    seated.pop_front();
    const auto next = seats.Leave(ticket);
    ASSERT_TRUE(next.has_value());
    ++served[waiting.at(*next)];
    seated.emplace_back(*next, waiting.at(*next));
    waiting.erase(*next);
    ask(flow);  // everybody asks again
  }
  for (const auto& [flow, times] : served) EXPECT_NEAR(times, 200, 20) << flow;
}

}  // namespace
}  // namespace berth::apiserver
