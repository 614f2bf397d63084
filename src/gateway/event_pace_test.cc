// SPDX-License-Identifier: Apache-2.0
// Of an honest host every event arrives, however many guests it has: it says no more of them than
// the welcome allows, and the network may hold some back (PROTOCOL 5.8).
#include <gtest/gtest.h>

#include "apis/k8s/event.h"
#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

constexpr size_t kGuests = 100;

class EventPaceTest : public testing::Test {
 protected:
  EventPaceTest() {
    world_.Enrol("host");
    const std::string pool = host_.Join("pool");
    for (size_t i = 0; i < kGuests; ++i) {
      const meta::Object machine = world_.MakeMachine("m-" + std::to_string(i));
      client::BindRequest request = apiserver::PlacementWorld::RequestFor(
          {apiserver::PlacementWorld::ItemFor(machine, "pool", pool, {{"cpu", 1}})});
      CHECK(world_.Bind(std::move(request)).ok()) << i;
      uids_.push_back(machine.metadata().uid);
    }
    CHECK(host_.WaitAssigns(kGuests));
  }
  // The next ones lost power with their host.
  void TellOf(size_t count) {
    host_.Say([&](agent::HostBatch& batch) {
      for (size_t i = 0; i < count && told_ < kGuests; ++i) {
        agent::HostEvent& event = *batch.add_events();
        event.set_uid(uids_[told_++]);
        event.set_type("Warning");
        event.set_reason("HostLostPower");
        event.set_message("the host was switched off or rebooted");
      }
    });
  }
  size_t Arrived() {
    world_.Pass(Duration::Seconds(2));
    const auto all = world_.Run(world_.client().List(apis::k8s::kCoreEventKind, {}));
    CHECK(all.ok()) << all.status();
    std::set<std::string> uids;
    for (const meta::Object& object : all->items) {
      const auto& event = object.as<apis::k8s::CoreEvent>();
      if (event.reason == "HostLostPower") uids.insert(event.involved_object.uid);
    }
    return uids.size();
  }

  GatewayWorld world_;
  TestHost host_{world_, "host"};
  std::vector<std::string> uids_;
  size_t told_ = 0;
};

TEST_F(EventPaceTest, R5_8_EventsAtThePaceOfTheWelcomeAllArrive) {
  const size_t per_second = host_.welcome()->limits().events_per_second();
  ASSERT_EQ(per_second, static_cast<size_t>(kEventsPerSecond));
  while (told_ < kGuests) {
    TellOf(per_second);
    world_.Pass(Duration::Seconds(1));
  }
  EXPECT_EQ(Arrived(), kGuests);
  EXPECT_EQ(host_.refused(), "");
}

TEST_F(EventPaceTest, R5_8_EventsThatTheNetworkHeldBackAllArrive) {
  const size_t per_second = host_.welcome()->limits().events_per_second();
  while (told_ < kGuests) {
    TellOf(per_second * 3 / 2);
    world_.Pass(Duration::Millis(1500));
  }
  EXPECT_EQ(Arrived(), kGuests);
}

}  // namespace
}  // namespace berth::gateway
