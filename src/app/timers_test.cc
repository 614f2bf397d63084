// SPDX-License-Identifier: Apache-2.0
// Defends rule 3.6: the timers of all parts are those of the protocol's table, and stand to each
// other as it says. A part that changes one of them alone fails here.
#include <gtest/gtest.h>

#include "apiserver/registry/event_leases.h"
#include "controller/pool_loss/loss_judge.h"
#include "gateway/identity/host_identity.h"
#include "gateway/rules/limits.h"
#include "pki/join_token.h"
#include "poollet/session/session.h"
#include "scheduler/placing/bulk_placer.h"
#include "scheduler/placing/placer.h"

namespace berth::app {
namespace {

TEST(Timers, R3_6_AreThoseOfTheTable) {
  EXPECT_EQ(gateway::kHeartbeat, Duration::Seconds(2));
  EXPECT_EQ(gateway::LeaseFor(1, 2), Duration::Seconds(8));
  EXPECT_EQ(gateway::GraceFor(gateway::LeaseFor(1, 2)), Duration::Seconds(6));
  EXPECT_EQ(gateway::kPlannedAbsence, Duration::Minutes(5));
  EXPECT_EQ(poollet::kDrainLimit, Duration::Minutes(5));
  EXPECT_EQ(gateway::kChallenge, Duration::Seconds(2));
  const controller::LossOptions loss;
  EXPECT_EQ(loss.grace, Duration::Seconds(6));
  EXPECT_EQ(loss.replace_after, Duration::Seconds(10));
  EXPECT_EQ(loss.kill_budget, Duration::Seconds(4));
  const scheduler::PlacerOptions placing;
  EXPECT_EQ(placing.answer_limit, Duration::Millis(300));
  EXPECT_EQ(placing.hold_ttl, Duration::Seconds(10));
  EXPECT_EQ(placing.bind_limit, Duration::Seconds(2));
  EXPECT_EQ(pki::kJoinTokenLifetime, Duration::Hours(1));
  EXPECT_EQ(gateway::kHostCertificateLifetime, Duration::Hours(24));
  EXPECT_EQ(gateway::kLateRenewal, Duration::Hours(24 * 30));
  EXPECT_EQ(apiserver::kEventTtl, Duration::Hours(1));
}

TEST(Timers, R3_6_StandToEachOtherAsTheTableSays) {
  for (const size_t pools : {1, 1'000, 5'000, 50'000}) {
    const Duration lease = gateway::LeaseFor(pools, 2);
    EXPECT_GE(lease, gateway::kHeartbeat * 3 + Duration::Seconds(2)) << pools;
    EXPECT_LT(gateway::GraceFor(lease), lease) << pools;
  }
  const controller::LossOptions loss;
  EXPECT_EQ(loss.grace, gateway::kHeartbeat * 3);
  EXPECT_GT(loss.replace_after, loss.grace);
  const controller::LossJudge judge(loss);
  controller::PoolSight pool;
  pool.lease = gateway::LeaseFor(1, 2);
  EXPECT_EQ(judge.DeadAt(pool) - pool.last_grant, Duration::Millis(12'160)) << "1.02 L + K";
  EXPECT_EQ(scheduler::BulkOptions().hold_ttl, scheduler::PlacerOptions().hold_ttl);
}

}  // namespace
}  // namespace berth::app
