// SPDX-License-Identifier: Apache-2.0
#include "apiserver/fairness/request_gate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rt/scope.h"
#include "rt/sim/sim_loop.h"
#include "rt/sleep.h"

namespace berth::apiserver {
namespace {

LevelLimits Small() {
  LevelLimits limits;
  limits.levels[static_cast<size_t>(PriorityLevel::kObject)] = {
      .seats = 2, .queue_per_flow = 3, .queue_total = 4};
  return limits;
}

class RequestGateTest : public testing::Test {
 protected:
  // Sits for `work`, and notes who it was.
  rt::Task<Status> Use(std::string user, Duration work) {
    auto seat = co_await gate_.Enter(PriorityLevel::kObject, user);
    if (!seat.ok()) {
      refused_.push_back(user + ": " + std::string(seat.status().message()));
      co_return OkStatus();
    }
    served_.push_back(user);
    co_return co_await rt::Sleep(work);
  }
  void Start(const std::string& user, Duration work = Duration::Seconds(1)) {
    scope_.Spawn("test.use", Use(user, work));
  }

  rt::SimLoop loop_{1};
  metrics::Registry metrics_;
  RequestGate gate_{loop_, Small(), metrics_};
  rt::TaskScope scope_{loop_};
  std::vector<std::string> served_;
  std::vector<std::string> refused_;
};

TEST_F(RequestGateTest, AQuietUserOvertakesTheQueueOfANoisyOne) {
  for (int i = 0; i < 5; ++i) Start("noisy");
  Start("quiet");
  loop_.RunFor(Duration::Millis(1'500));
  ASSERT_GE(served_.size(), 4);
  EXPECT_EQ(served_[0], "noisy");
  EXPECT_EQ(served_[1], "noisy");
  EXPECT_EQ(served_[2], "quiet");
  EXPECT_EQ(served_[3], "noisy");
  loop_.RunFor(Duration::Seconds(10));
  EXPECT_EQ(served_.size(), 6);
  EXPECT_EQ(gate_.level(PriorityLevel::kObject).flows(), 0);
}

TEST_F(RequestGateTest, AFullQueueRefusesAndSaysWhose) {
  for (int i = 0; i < 6; ++i) Start("noisy");
  Start("other");
  Start("third");
  loop_.RunFor(Duration::Millis(10));
  ASSERT_EQ(refused_.size(), 2);
  EXPECT_EQ(refused_[0], R"(noisy: too many requests: user "noisy" has 3 waiting in level object)");
  EXPECT_EQ(refused_[1], "third: too many requests: 2 are worked on and 4 wait in level object");
  loop_.RunFor(Duration::Seconds(10));
}

TEST_F(RequestGateTest, NobodyWaitsForever) {
  Start("a", Duration::Seconds(60));
  Start("b", Duration::Seconds(60));
  Start("c");
  loop_.RunFor(Duration::Seconds(16));
  ASSERT_EQ(refused_.size(), 1);
  EXPECT_TRUE(refused_[0].contains("waited 15s")) << refused_[0];
  EXPECT_EQ(gate_.level(PriorityLevel::kObject).waiting(), 0);
  loop_.RunFor(Duration::Seconds(60));
}

TEST_F(RequestGateTest, WhoGoesAwayWhileItWaitsLeavesNothing) {
  Start("a");
  Start("a");
  {
    rt::TaskScope gone(loop_);
    gone.Spawn("test.gone", Use("b", Duration::Seconds(1)));
    loop_.RunFor(Duration::Millis(10));
    gone.Cancel();
    loop_.RunFor(Duration::Millis(10));
  }
  EXPECT_EQ(gate_.level(PriorityLevel::kObject).waiting(), 0);
  loop_.RunFor(Duration::Seconds(5));
  EXPECT_EQ(served_.size(), 2);
}

TEST(Priority, RequestsHaveTheLevelOfWhoSendsThemAndOfWhatTheyCost) {
  struct Row {
    const char* what;
    std::vector<std::string> groups;
    const char* verb;
    const char* resource;
    PriorityLevel level;
  };
  const std::vector<Row> rows = {
      {"an administrator that gets",
       {"system:masters", "system:authenticated"},
       "get",
       "machines",
       PriorityLevel::kExempt},
      {"an administrator that writes",
       {"system:masters", "system:authenticated"},
       "update",
       "machines",
       PriorityLevel::kExempt},
      {"an administrator that lists",
       {"system:masters", "system:authenticated"},
       "list",
       "machines",
       PriorityLevel::kExemptListing},
      {"an administrator that watches",
       {"system:masters", "system:authenticated"},
       "watch",
       "machines",
       PriorityLevel::kExemptListing},
      {"an administrator that reads a document",
       {"system:masters", "system:authenticated"},
       "get",
       "",
       PriorityLevel::kExemptListing},
      {"a person that gets", {"system:authenticated"}, "get", "machines", PriorityLevel::kObject},
      {"a person that lists",
       {"system:authenticated"},
       "list",
       "machines",
       PriorityLevel::kListing},
      {"a person that watches",
       {"system:authenticated"},
       "watch",
       "machines",
       PriorityLevel::kListing},
      {"an election", {"system:authenticated"}, "update", "leases", PriorityLevel::kSystem},
      {"a list of elections", {"system:authenticated"}, "list", "leases", PriorityLevel::kListing},
      {"a host",
       {"berth:hosts", "system:authenticated"},
       "list",
       "machines",
       PriorityLevel::kSystem},
      {"a pool of machines that speaks over the API",
       {"compute.ironcore.dev:system:machinepools", "system:authenticated"},
       "watch",
       "machines",
       PriorityLevel::kSystem},
      {"a pool of buckets, by an alias",
       {"storage.OpenKCM.dev:system:bucketpools", "system:authenticated"},
       "update",
       "machines",
       PriorityLevel::kSystem},
      {"a person of a group that is like one",
       {"system:machinepools", "system:authenticated"},
       "get",
       "machines",
       PriorityLevel::kObject},
      {"a person that reads a document",
       {"system:authenticated"},
       "get",
       "",
       PriorityLevel::kListing},
      {"a host that reads a document",
       {"berth:hosts", "system:authenticated"},
       "get",
       "",
       PriorityLevel::kSystem},
      {"nobody", {"system:unauthenticated"}, "get", "machines", PriorityLevel::kOutside},
  };
  for (const Row& row : rows) {
    Identity identity;
    identity.user = "u";
    identity.groups = row.groups;
    RequestInfo request;
    request.verb = row.verb;
    request.resource = row.resource;
    request.is_resource = !request.resource.empty();
    request.group = request.resource == "leases" ? "coordination.k8s.io" : "compute.ironcore.dev";
    EXPECT_EQ(LevelOf(identity, request), row.level) << row.what;
  }
}

// One script lists everything in as many requests as its user may have.
TEST(Priority, AnAdministratorsListsTakeFewSeatsAndAllOfThemMayWait) {
  const LevelLimits limits;
  const FairSeats::Limits& lists = limits.Of(PriorityLevel::kExemptListing);
  FairSeats seats(lists);
  size_t seated = 0;
  for (size_t i = 0; i < 512; ++i) {
    const auto verdict = seats.Ask("admin").verdict;
    ASSERT_TRUE(verdict == FairSeats::Verdict::kSeated || verdict == FairSeats::Verdict::kWaits);
    if (verdict == FairSeats::Verdict::kSeated) ++seated;
  }
  EXPECT_EQ(seated, 32);
  EXPECT_EQ(seats.Ask("another").verdict, FairSeats::Verdict::kWaits);
}

}  // namespace
}  // namespace berth::apiserver
