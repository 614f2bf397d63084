// SPDX-License-Identifier: Apache-2.0
// The fake keeps the contract of every fleet.
#include "fleet/fake/fake_fleet.h"

#include <gtest/gtest.h>

#include "fleet/conformance/fleet_contract.h"
#include "rt/sim/run_task.h"

namespace berth::fleet {
namespace {

class FakeWorld final : public FleetUnderTest {
 public:
  rt::SimLoop& loop() override { return loop_; }
  Fleet& fleet() override { return fleet_; }
  std::string Join(const std::string& name, const Vector& capacity) override {
    fleet_.Join(PoolFacts{.pool_uid = "uid-" + name, .capacity = capacity});
    return "uid-" + name;
  }
  void Leave(const std::string& pool_uid) override { fleet_.Leave(pool_uid); }
  void Answers(const std::string& pool_uid, std::optional<Answer> answer, Duration delay) override {
    fleet_.Answers(pool_uid, [answer](const Offer&) { return answer; }, delay);
  }
  void Report(const std::string& pool_uid, const Vector& allocated) override {
    fleet_.Report(PoolFacts{.pool_uid = pool_uid, .allocated = allocated});
  }
  std::vector<OfferId> Offers(const std::string& pool_uid) override {
    std::vector<OfferId> ids;
    for (const Offer& offer : fleet_.offers(pool_uid)) ids.push_back(offer.id);
    return ids;
  }
  std::vector<OfferId> Releases(const std::string& pool_uid) override {
    return fleet_.releases(pool_uid);
  }

 private:
  rt::SimLoop loop_{1};
  FakeFleet fleet_{loop_};
};

class FakeFleetContract : public testing::TestWithParam<FleetContract> {};

TEST_P(FakeFleetContract, Holds) {
  RunFleetContract([] { return std::make_unique<FakeWorld>(); }, GetParam());
}
INSTANTIATE_TEST_SUITE_P(FakeFleet,
                         FakeFleetContract,
                         testing::ValuesIn(FleetContracts().begin(), FleetContracts().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(FakeFleet, Seq18_AClaimedMoveIsNotConfirmedAndAConfirmedUidIsNotClaimed) {
  rt::SimLoop loop(1);
  FakeFleet fleet(loop);
  fleet.Join(PoolFacts{.pool_uid = "p"});
  EXPECT_TRUE(fleet.ClaimMove("u", 1));
  EXPECT_FALSE(fleet.Confirm("p", "u", 1));
  fleet.EndMove("u", 1, MoveOutcome::kAbandoned);
  EXPECT_TRUE(fleet.Confirm("p", "u", 1));
  EXPECT_FALSE(fleet.ClaimMove("u", 1));
}

TEST(FakeFleet, AGuestAnswersThroughTheTunnel) {
  rt::SimLoop loop(1);
  FakeFleet fleet(loop);
  fleet.Join(PoolFacts{.pool_uid = "p"});
  fleet.SetGuest([](const std::string& data) { return "heard " + data; });
  std::map<std::string, std::string> options;
  auto tunnel = rt::RunTask(loop, fleet.OpenTunnel("p", "u", 1, "console", options));
  ASSERT_TRUE(tunnel.ok());
  TunnelFrame frame{.channel = TunnelFrame::Channel::kIn, .data = "ls"};
  EXPECT_TRUE(rt::RunTask(loop, (*tunnel)->Write(frame)).ok());
  auto answer = rt::RunTask(loop, (*tunnel)->Read());
  ASSERT_TRUE(answer.ok() && answer->has_value());
  EXPECT_EQ((*answer)->data, "heard ls");
}

}  // namespace
}  // namespace berth::fleet
