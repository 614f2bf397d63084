// SPDX-License-Identifier: Apache-2.0
// The in-process client keeps the contract of all clients.
#include "apiserver/registry/loopback_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "apiserver/registry/registry_world.h"
#include "client/conformance/client_contract.h"

namespace berth::apiserver {
namespace {

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

}  // namespace
}  // namespace berth::apiserver
