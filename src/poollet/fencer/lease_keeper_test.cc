// SPDX-License-Identifier: Apache-2.0
// 3.3.1: a host's deadline is h(n) + L on a clock that counts while the host sleeps, so it is never
// later than the server's, however late a grant comes and whatever the host does meanwhile.
#include "poollet/fencer/lease_keeper.h"

#include <gtest/gtest.h>

#include "poollet/fencer/host_sleep.h"
#include "rt/sim/sim_loop.h"

namespace berth::poollet {
namespace {

constexpr Duration kLease = Duration::Seconds(8);
constexpr Placement kPlacement{.incarnation = 1, .number = 1};

// Believes everything and keeps the last deadline.
class FakeFencer final : public Fencer {
 public:
  rt::Task<Result<std::vector<iri::LeaseState>>> Renew(iri::LeaseRenewal renewal) override {
    for (const auto& uid : renewal.machine_uids) leases_[uid] = renewal.deadline;
    std::vector<iri::LeaseState> states;
    for (const auto& [uid, deadline] : leases_) {
      states.push_back({.machine_uid = uid, .deadline = deadline});
    }
    co_return states;
  }
  std::map<std::string, Time> leases_;
};

struct Keeping {
  Keeping() {
    keeper.SessionBegan();
    keeper.Confirm("u", kPlacement);
  }
  ~Keeping() {
    rt::TaskScope closing(loop);
    closing.Spawn("close", keeper.Close());
    loop.RunUntil([&] { return closing.size() == 0; }, Duration::Seconds(1));
  }
  // The clock that the server's may be compared with.
  Time BootNow() const { return loop.Now() + slept; }
  // When the guest will be dead, on that clock.
  Time Deadline() const { return fencer.leases_.at("u") + slept; }
  void Pass(Duration time) { loop.RunFor(time); }

  rt::SimLoop loop{1};
  Duration slept;
  FakeFencer fencer;
  LeaseKeeper keeper{loop, &fencer, [](const std::string&) {}, [this] { return slept; }};
};

TEST(LeaseKeeper, R3_3_1_ALateGrantCountsFromItsHeartbeat) {
  Keeping t;
  t.keeper.HeartbeatSent(1);
  const Time sent = t.BootNow();
  t.Pass(Duration::Seconds(5));
  t.keeper.Granted(1, kLease);
  t.Pass(Duration::Millis(1));
  EXPECT_EQ(t.Deadline(), sent + kLease);
  EXPECT_TRUE(t.keeper.Covers("u", kPlacement));
  t.Pass(Duration::Seconds(3));
  EXPECT_FALSE(t.keeper.Covers("u", kPlacement));
}

TEST(LeaseKeeper, R3_3_1_AGrantAfterASleepCountsTheSleep) {
  Keeping t;
  t.keeper.HeartbeatSent(1);
  const Time sent = t.BootNow();
  t.Pass(Duration::Seconds(1));
  t.slept += Duration::Seconds(5);
  t.keeper.Granted(1, kLease);
  t.Pass(Duration::Millis(1));
  EXPECT_LE(t.Deadline(), sent + kLease) << "the server gives it away from then on";
  EXPECT_LE(t.keeper.left(), Duration::Seconds(2));
}

TEST(LeaseKeeper, R3_3_1_AGrantThatWasSleptThroughCoversNothing) {
  Keeping t;
  t.keeper.HeartbeatSent(1);
  t.slept += Duration::Minutes(10);
  t.keeper.Granted(1, kLease);
  t.Pass(Duration::Millis(1));
  EXPECT_FALSE(t.keeper.Covers("u", kPlacement));
  EXPECT_LT(t.Deadline(), t.BootNow());
}

TEST(LeaseKeeper, R3_3_1_WhatIsRenewedAfterASleepEndsWhenTheGrantDoes) {
  Keeping t;
  t.keeper.HeartbeatSent(1);
  const Time sent = t.BootNow();
  t.keeper.Granted(1, kLease);
  t.Pass(Duration::Seconds(1));
  t.slept += Duration::Seconds(4);
  t.keeper.Confirm("u", kPlacement);  // renews under the grant that is there
  t.Pass(Duration::Millis(1));
  EXPECT_LE(t.Deadline(), sent + kLease);
  EXPECT_TRUE(t.keeper.Covers("u", kPlacement));
  t.slept += Duration::Seconds(3);
  EXPECT_FALSE(t.keeper.Covers("u", kPlacement));
}

TEST(LeaseKeeper, R3_3_1_AHostKnowsHowLongItSlept) {
  EXPECT_GE(SleptSinceBoot(), Duration());
  EXPECT_LT(SleptSinceBoot(), Duration::Hours(24 * 365));
}

}  // namespace
}  // namespace berth::poollet
