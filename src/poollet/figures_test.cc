// SPDX-License-Identifier: Apache-2.0
// What a host says of its figures while it runs: what is used, again and again; what there is, as
// soon as its runtime has something else.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "berth/agent/v1/agent.pb.h"
#include "poollet/poollet_world.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;
using Answered = fleet::Answer::Verdict;

constexpr int64_t kGiB = int64_t{1} << 30;
// What is not urgent goes with the next heartbeat.
constexpr Duration kSlack = Duration::Seconds(3);

class Figures : public testing::Test {
 protected:
  Figures() { world_.StartAndSync(); }
  runtime::FakeHostOptions& fake() { return world_.host.fake().state().options(); }
  Duration interval() const { return world_.host.options.host.statistics_interval; }
  // Until the runtime was asked again, and what it said has reached the server.
  bool Soon(const std::function<bool()>& done) { return world_.Until(done, interval() + kSlack); }
  const fleet::Answer& Ask(uint64_t number, const FakeGateway::Wish& wish) {
    const std::string key = "1/" + std::to_string(number);
    world_.server.Offer(1, number, "offered-" + std::to_string(number), wish);
    CHECK(world_.Until([&] { return world_.server.answers.contains(key); }));
    world_.server.Release(1, number);
    return world_.server.answers.at(key);
  }

  World world_;
};

TEST_F(Figures, C13_C18_StatisticsAreSaidPeriodically) {
  constexpr int64_t kDisk = 10 << 20;
  world_.server.Desire("m1",
                       {.resources = {{"cpu", 1000}, {"memory", kGiB}, {"storage", kDisk}},
                        .edit = [](auto& assign) {
                          pb::MachineVolume& disk = *assign.mutable_machine()->add_volumes();
                          disk.set_name("root");
                          disk.set_device("oda");
                          disk.set_local_disk(true);
                          disk.set_local_disk_bytes(kDisk);
                        }});
  ASSERT_TRUE(world_.UntilState("m1", "Running"));
  ASSERT_TRUE(Soon([&] { return world_.server.statistics.contains("m1"); }));
  fleet::Statistics before = world_.server.statistics.at("m1");
  // What a fake guest uses: a quarter of its cores, half of its memory, its whole disk.
  for (int round = 0; round < 3; ++round) {
    const size_t told = world_.server.statistics_told;
    const Time said = world_.loop.Now();
    ASSERT_TRUE(Soon([&] { return world_.server.statistics_told > told; })) << round;
    EXPECT_GE(world_.loop.Now() - said, interval() - kSlack) << round;
    for (const char* uid : {"m1", ""}) {
      const fleet::Statistics& now = world_.server.statistics.at(uid);
      EXPECT_NEAR(now.cpu_cores, 0.25, 0.03) << uid << round;
      EXPECT_EQ(now.memory_bytes, kGiB / 2) << uid << round;
      EXPECT_EQ(now.disk_bytes, kDisk) << uid << round;
    }
    EXPECT_NEAR(world_.server.statistics.at("").load, 0.25, 0.03);
    const fleet::Statistics& now = world_.server.statistics.at("m1");
    EXPECT_GT(now.network_receive_bytes, before.network_receive_bytes);
    EXPECT_GT(now.network_send_bytes, before.network_send_bytes);
    EXPECT_GT(now.time, before.time);
    before = now;
  }
}

TEST_F(Figures, C13_C18_OfWhatIsGoneNothingIsSaidAnyMore) {
  world_.server.Desire("m1", {});
  ASSERT_TRUE(world_.UntilState("m1", "Running"));
  ASSERT_TRUE(Soon([&] { return world_.server.statistics.contains("m1"); }));
  world_.server.Remove("m1", 1);
  ASSERT_TRUE(world_.Until([&] { return world_.server.gone.contains("m1"); }));
  world_.loop.RunFor(kSlack);  // what was measured before was said
  world_.server.statistics.clear();
  ASSERT_TRUE(Soon([&] { return !world_.server.statistics.empty(); }));
  EXPECT_FALSE(world_.server.statistics.contains("m1"));
  EXPECT_EQ(world_.server.statistics.at("").memory_bytes, 0);
}

TEST_F(Figures, D5_ACapacityThatChangesIsToldAndIsWhatOffersAreMeasuredBy) {
  const auto capacity = [this](const std::string& dimension) {
    return world_.server.facts.at("MachinePool").capacity.at(dimension);
  };
  ASSERT_EQ(capacity("cpu"), fake().capacity.at("cpu"));
  ASSERT_EQ(Ask(1, {}).verdict, Answered::kAccepted);
  fake().capacity["cpu"] = 400;
  ASSERT_TRUE(Soon([&] { return capacity("cpu") == 400; }));
  EXPECT_EQ(Ask(2, {}).missing.at("cpu"), 600);
  fake().capacity["cpu"] = 16'000;
  fake().capacity["memory"] = 64 * kGiB;
  ASSERT_TRUE(Soon([&] { return capacity("cpu") == 16'000; }));
  EXPECT_EQ(capacity("memory"), 64 * kGiB);
  EXPECT_EQ(Ask(3, {}).verdict, Answered::kAccepted);
}

TEST_F(Figures, D5_ClassesThatComeChangeOrGoAreTold) {
  const auto& of_machines = world_.server.classes["MachinePool"];
  const auto& of_volumes = world_.server.classes["VolumePool"];
  ASSERT_EQ(of_machines.size(), 3U);
  ASSERT_TRUE(of_volumes.contains("slow"));
  const FakeGateway::Wish medium{.class_name = "medium",
                                 .resources = {{"cpu", 2000}, {"memory", 4 * kGiB}}};
  const FakeGateway::Wish huge{.class_name = "huge",
                               .resources = {{"cpu", 6000}, {"memory", 16 * kGiB}}};
  EXPECT_EQ(Ask(1, medium).verdict, Answered::kAccepted);
  EXPECT_EQ(Ask(2, huge).reason, "ClassUnknown");

  iri::MachineClass fresh;
  fresh.name = "huge";
  fresh.capabilities = {{"cpu", 6}, {"memory", 16 * kGiB}};
  fake().machine_classes.push_back(fresh);
  ASSERT_TRUE(Soon([&] { return of_machines.contains("huge"); }));
  EXPECT_EQ(of_machines.at("huge").at("cpu"), 6);
  EXPECT_EQ(Ask(3, huge).verdict, Answered::kAccepted);

  fake().machine_classes.back().capabilities["cpu"] = 5;
  ASSERT_TRUE(Soon([&] { return of_machines.at("huge").at("cpu") == 5; }));
  EXPECT_EQ(Ask(4, huge).reason, "ClassDiffers");

  std::erase_if(fake().machine_classes,
                [](const auto& offered) { return offered.name == "medium"; });
  std::erase_if(fake().volume_classes, [](const auto& offered) { return offered.name == "slow"; });
  ASSERT_TRUE(
      Soon([&] { return !of_machines.contains("medium") && !of_volumes.contains("slow"); }));
  EXPECT_TRUE(of_machines.contains("small"));
  EXPECT_TRUE(of_volumes.contains("fast"));
  EXPECT_EQ(Ask(5, medium).reason, "ClassUnknown");
  EXPECT_EQ(Ask(6, {}).verdict, Answered::kAccepted);

  const size_t told = world_.server.classes_told;
  world_.loop.RunFor(interval() * 3);
  EXPECT_EQ(world_.server.classes_told, told) << "what stays is not said again";
}

TEST_F(Figures, D5_AMachineOfAClassThatIsNotOfferedAnyMoreStays) {
  FakeGateway::Wish wish{.class_name = "medium",
                         .resources = {{"cpu", 2000}, {"memory", 4 * kGiB}}};
  world_.server.Desire("m1", wish);
  ASSERT_TRUE(world_.UntilState("m1", "Running"));
  std::erase_if(fake().machine_classes,
                [](const auto& offered) { return offered.name == "medium"; });
  ASSERT_TRUE(Soon([&] { return !world_.server.classes["MachinePool"].contains("medium"); }));
  wish.generation = 2;
  world_.server.Desire("m1", wish);
  world_.loop.RunFor(Duration::Seconds(30));
  EXPECT_FALSE(world_.server.refused.contains("m1"));
  EXPECT_EQ(world_.host.Running("m1"), 1);
}

// It was away while its host changed, and the session with the server, too.
TEST_F(Figures, D5_WhatChangedWhileNobodyWasThereIsAnnounced) {
  world_.server.Down();
  fake().capacity["cpu"] = 16'000;
  fake().machine_classes.resize(1);
  world_.loop.RunFor(interval() + kSlack);
  world_.server.Up();
  ASSERT_TRUE(
      world_.Until([&] { return world_.server.sessions == 2 && world_.server.is_synced(); }));
  EXPECT_EQ(world_.server.facts.at("MachinePool").capacity.at("cpu"), 16'000);
  EXPECT_EQ(world_.server.classes.at("MachinePool").size(), 1U);
}

}  // namespace
}  // namespace berth::poollet
