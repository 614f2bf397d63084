// SPDX-License-Identifier: Apache-2.0
// The in-process client keeps the contract of all clients.
#include "apiserver/registry/loopback_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/placement.h"
#include "apiserver/registry/registry_world.h"
#include "client/conformance/client_contract.h"
#include "meta/json.h"

namespace berth::apiserver {
namespace {

// Something in every part, and amounts that are written in another way than they are stored.
constexpr std::string_view kMachine = R"({
  "metadata": {"name": "full", "namespace": "default", "labels": {"app": "web", "tier": "front"},
               "annotations": {"note": "a b"}},
  "spec": {
    "machineClassRef": {"name": "small"}, "power": "On", "image": "registry.example/os:1",
    "tolerations": [
      {"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}],
    "volumes": [{"name": "root", "device": "oda", "localDisk": {"size": "1024Mi"}},
                {"name": "data", "volumeRef": {"name": "data"}}],
    "networkInterfaces": [{"name": "primary", "networkInterfaceRef": {"name": "nic"}}]}})";

class LoopbackUnderTest final : public client::ClientUnderTest {
 public:
  explicit LoopbackUnderTest(uint64_t seed) : world_(seed) { world_.MakeNamespace("default"); }
  client::Client& client() override { return world_.client(); }
  client::Binder& binder() override { return world_.client(); }
  Status Run(rt::Task<Status> task) override { return world_.Run(std::move(task)); }

 private:
  RegistryWorld world_;
};

class LoopbackClientContract : public testing::TestWithParam<client::ClientContract> {};

TEST_P(LoopbackClientContract, Holds) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    client::RunClientContract([seed] { return std::make_unique<LoopbackUnderTest>(seed); },
                              GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(All,
                         LoopbackClientContract,
                         testing::ValuesIn(client::ClientContracts().begin(),
                                           client::ClientContracts().end()),
                         [](const auto& info) { return std::string(info.param.name); });

// A follower gets the object that the writer encoded, without a detour: it must not be told from
// what is read.
TEST(LoopbackWatch, ShowsWhatIsRead) {
  RegistryWorld world(1);
  world.MakeNamespace("default");
  auto watch = world.Run(world.client().Watch(apis::compute::kMachineKind, {}));
  ASSERT_TRUE(watch.ok()) << watch.status();
  auto machine = meta::DecodeJsonAs<apis::compute::Machine>(kMachine);
  ASSERT_TRUE(machine.ok()) << machine.status();
  Result<meta::Object> created = world.Run(world.client().Create(
      meta::Object::Of(apis::compute::kMachineKind, *std::move(machine)), {}));
  ASSERT_TRUE(created.ok()) << created.status();
  const client::ObjectKey key{.namespace_ = "default", .name = "full"};
  const auto expect_seen = [&](std::string_view what) {
    SCOPED_TRACE(what);
    const auto events = world.Run((*watch)->Next());
    ASSERT_TRUE(events.ok()) << events.status();
    ASSERT_EQ(events->size(), 1U);
    const auto read = world.Run(world.client().Get(apis::compute::kMachineKind, key));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(static_cast<const meta::Object&>(events->front().object), *read);
  };
  expect_seen("created");
  created->metadata().labels["more"] = "yes";
  created = world.Run(world.client().Update(*created, {}));
  ASSERT_TRUE(created.ok()) << created.status();
  expect_seen("changed");
  apis::SetScheduled(
      *created, "False", "Unschedulable", "no room", WallTime::FromMicros(1'700'000'000'123'456));
  created =
      world.Run(world.client().Update(*created, {.subresource = client::Subresource::kStatus}));
  ASSERT_TRUE(created.ok()) << created.status();
  expect_seen("status");
}

}  // namespace
}  // namespace berth::apiserver
