// SPDX-License-Identifier: Apache-2.0
#include "controller/pool_loss/loss_judge.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::controller {
namespace {

Time At(double seconds) { return Time() + Duration::Millis(static_cast<int64_t>(seconds * 1000)); }

PoolSight Connected(const std::string& uid, const std::string& zone = "a") {
  return {.uid = uid, .zone = zone, .is_connected = true, .lease = Duration::Seconds(8)};
}
PoolSight Silent(const std::string& uid, Time since, const std::string& zone = "a") {
  return {.uid = uid,
          .zone = zone,
          .is_connected = false,
          .silent_since = since,
          .last_grant = since,
          .lease = Duration::Seconds(8)};
}

using Uids = std::vector<std::string>;

// Looks every half second from `from` to `to`; the last verdict.
LossVerdict Watch(LossJudge& judge,
                  const std::vector<PoolSight>& pools,
                  double from,
                  double to,
                  const std::set<std::string>& movable = {}) {
  LossVerdict verdict;
  for (double t = from; t <= to; t += 0.5) verdict = judge.Look(pools, movable, At(t));
  return verdict;
}

std::vector<PoolSight> Fleet(size_t connected) {
  std::vector<PoolSight> pools;
  for (size_t i = 0; i < connected; ++i) pools.push_back(Connected("c" + std::to_string(i)));
  return pools;
}

TEST(LossJudge, R3_2_R3_6_ASilentPoolIsReplacedAfterTenSecondsNotBefore) {
  LossJudge judge;
  std::vector<PoolSight> pools = Fleet(9);
  Watch(judge, pools, 0, 99.5);
  pools.push_back(Silent("x", At(100)));
  EXPECT_EQ(Watch(judge, pools, 100, 109.5).replace, Uids{});
  EXPECT_EQ(Watch(judge, pools, 110, 110).replace, Uids{"x"});
}

TEST(LossJudge, R3_5_R3_6_WithALongerLeaseSilenceMayLastLonger) {
  LossJudge judge;
  std::vector<PoolSight> pools = Fleet(9);
  Watch(judge, pools, 0, 99.5);
  pools.push_back(Silent("x", At(100)));
  pools.back().lease = Duration::Seconds(20);  // 5,000 pools on two cores
  EXPECT_EQ(Watch(judge, pools, 100, 124.5).replace, Uids{});
  EXPECT_EQ(Watch(judge, pools, 125, 125).replace, Uids{"x"});
}

TEST(LossJudge, R3_3_4_AMoveWaitsForTheLeaseTheDriftAndTheKillBudget) {
  LossJudge judge;
  std::vector<PoolSight> pools = Fleet(9);
  Watch(judge, pools, 0, 99.5);
  pools.push_back(Silent("x", At(100)));
  const LossVerdict early = Watch(judge, pools, 100, 112, {"x"});
  EXPECT_EQ(early.fence, Uids{"x"});  // no more grants from here on
  EXPECT_EQ(early.move, Uids{});
  EXPECT_EQ(judge.DeadAt(pools.back()), At(112.16));
  EXPECT_EQ(Watch(judge, pools, 112.5, 112.5, {"x"}).move, Uids{"x"});
}

TEST(LossJudge, R3_3_6_AServerThatHasJustStartedMovesNothingBeforeALeaseHasPassed) {
  LossJudge judge;
  std::vector<PoolSight> pools = Fleet(9);
  pools.push_back(Silent("x", At(0)));
  EXPECT_EQ(Watch(judge, pools, 1000, 1012, {"x"}).move, Uids{});
  EXPECT_EQ(Watch(judge, pools, 1012.5, 1012.5, {"x"}).move, Uids{"x"});
}

TEST(LossJudge, R3_4_AServerThatSleptItselfCountsSilenceAnew) {
  LossJudge judge;
  std::vector<PoolSight> pools = Fleet(9);
  Watch(judge, pools, 0, 100);
  // Asleep from 100 to 130: nobody could be heard.
  pools.push_back(Silent("x", At(100)));
  EXPECT_EQ(Watch(judge, pools, 130, 139.5).replace, Uids{});
  EXPECT_EQ(Watch(judge, pools, 140, 140).replace, Uids{"x"});
}

TEST(LossJudge, R3_4_ManyAtOnceAreAMassLossAndNothingHappens) {
  LossJudge judge;
  std::vector<PoolSight> pools = Fleet(6);
  Watch(judge, pools, 0, 99.5);
  for (const char* uid : {"x", "y", "z", "w"}) pools.push_back(Silent(uid, At(100)));
  const LossVerdict verdict = Watch(judge, pools, 100, 1000, {"x"});
  EXPECT_TRUE(verdict.is_mass_loss);
  EXPECT_EQ(verdict.mass_loss, "4 of 10 pools fell silent");
  EXPECT_EQ(verdict.replace, Uids{});
  EXPECT_EQ(verdict.move, Uids{});
  // Two of them return: what is left is an ordinary loss.
  pools[6] = Connected("x");
  pools[7] = Connected("y");
  EXPECT_FALSE(Watch(judge, pools, 1000.5, 1000.5).is_mass_loss);
}

TEST(LossJudge, R3_4_AMassLossOfOneZoneIsOneToo) {
  LossJudge judge;
  std::vector<PoolSight> pools = Fleet(40);
  for (const char* uid : {"b1", "b2", "b3"}) pools.push_back(Connected(uid, "b"));
  Watch(judge, pools, 0, 99.5);
  for (size_t i = 40; i < 43; ++i) pools[i] = Silent(pools[i].uid, At(100), "b");
  const LossVerdict verdict = Watch(judge, pools, 100, 120);
  EXPECT_TRUE(verdict.is_mass_loss);
  EXPECT_EQ(verdict.mass_loss, "3 of 3 pools of zone b fell silent");
}

TEST(LossJudge, R3_4_AnOperatorCanReleaseTheBrakeUntilContactReturns) {
  LossJudge judge;
  std::vector<PoolSight> pools = Fleet(3);
  Watch(judge, pools, 0, 99.5);
  for (const char* uid : {"x", "y", "z"}) pools.push_back(Silent(uid, At(100)));
  ASSERT_TRUE(Watch(judge, pools, 100, 120).is_mass_loss);
  judge.OverrideMassLoss();
  const LossVerdict verdict = Watch(judge, pools, 120.5, 125);
  EXPECT_FALSE(verdict.is_mass_loss);
  EXPECT_TRUE(verdict.is_released);
  EXPECT_EQ(verdict.replace, (Uids{"x", "y", "z"}));
  EXPECT_FALSE(Watch(judge, Fleet(6), 125.5, 125.5).is_released) << "contact has returned";
}

TEST(LossJudge, R3_4_ABrakeThatAnEarlierServerToldHoldsUntilSilenceIsJudgedAnew) {
  LossJudge judge;
  judge.Resume("4 of 10 pools fell silent");
  std::vector<PoolSight> pools = Fleet(6);
  for (const char* uid : {"x", "y", "z", "w"}) pools.push_back(Silent(uid, At(100)));
  const LossVerdict verdict = Watch(judge, pools, 1000, 1005.5);
  EXPECT_TRUE(verdict.is_mass_loss);
  EXPECT_EQ(verdict.mass_loss, "4 of 10 pools fell silent");
  EXPECT_TRUE(Watch(judge, pools, 1006, 1100).is_mass_loss) << "they are silent to this one, too";
  for (size_t i = 6; i < 8; ++i) pools[i] = Connected(pools[i].uid);
  EXPECT_FALSE(Watch(judge, pools, 1100.5, 1100.5).is_mass_loss);
}

TEST(LossJudge, R3_4_ABrakeThatAnEarlierServerToldEndsWithContact) {
  LossJudge all_back;
  all_back.Resume("4 of 10 pools fell silent");
  EXPECT_FALSE(Watch(all_back, Fleet(10), 1000, 1000).is_mass_loss);

  LossJudge most_back;
  most_back.Resume("4 of 10 pools fell silent");
  std::vector<PoolSight> pools = Fleet(9);
  pools.push_back(Silent("x", At(100)));
  EXPECT_TRUE(Watch(most_back, pools, 1000, 1005.5).is_mass_loss) << "x may be about to speak";
  EXPECT_FALSE(Watch(most_back, pools, 1006, 1006).is_mass_loss);
}

TEST(LossJudge, R3_4_AServerThatSleptInAMassLossTakesItForNoReturn) {
  LossJudge judge;
  std::vector<PoolSight> pools = Fleet(6);
  Watch(judge, pools, 0, 99.5);
  for (const char* uid : {"x", "y", "z", "w"}) pools.push_back(Silent(uid, At(100)));
  ASSERT_TRUE(Watch(judge, pools, 100, 120).is_mass_loss);
  // Asleep from 120 to 150.
  EXPECT_TRUE(Watch(judge, pools, 150, 155.5).is_mass_loss);
  judge.OverrideMassLoss();
  ASSERT_TRUE(Watch(judge, pools, 156, 160).is_released);
  // Asleep from 160 to 190: the operator's word holds.
  EXPECT_TRUE(Watch(judge, pools, 190, 195.5).is_released);
}

TEST(LossJudge, R3_4_LossesThatAreFarApartAreEvacuatedOneEveryTwoSeconds) {
  LossJudge judge;
  std::vector<PoolSight> pools = Fleet(20);
  Watch(judge, pools, 0, 99.5);
  for (const char* uid : {"x", "y", "z"}) pools.push_back(Silent(uid, At(100)));
  EXPECT_EQ(Watch(judge, pools, 100, 110).replace, Uids{"x"});
  EXPECT_EQ(Watch(judge, pools, 110.5, 111.5).replace, Uids{"x"});
  EXPECT_EQ(Watch(judge, pools, 112, 112).replace, (Uids{"x", "y"}));
  EXPECT_EQ(Watch(judge, pools, 112.5, 114).replace, (Uids{"x", "y", "z"}));
}

TEST(LossJudge, R3_6_APlannedAbsenceIsNoLoss) {
  LossJudge judge;
  std::vector<PoolSight> pools = Fleet(9);
  Watch(judge, pools, 0, 99.5);
  pools.push_back(Silent("x", At(100)));
  pools.back().planned_until = At(400);
  EXPECT_EQ(Watch(judge, pools, 100, 399.5, {"x"}).replace, Uids{});
  EXPECT_EQ(Watch(judge, pools, 400, 400, {"x"}).replace, Uids{"x"});
}

}  // namespace
}  // namespace berth::controller
