// SPDX-License-Identifier: Apache-2.0
// A server whose connections have a thread of their own keeps the contract of net/rpc.h.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "net/conformance/rpc_contract.h"
#include "net/h2/h2_under_test.h"
#include "net/relay/threaded_server.h"

namespace berth::net {
namespace {

class OverARelay final : public H2UnderTest {
 public:
  rt::Task<Result<std::unique_ptr<RpcServer>>> Serve(RpcRoutes routes) override {
    CO_TRY(H2ServerOptions options, ServerOptions());
    CO_TRY(auto server,
           co_await ThreadedServer::Start(&loop_, std::move(options), std::move(routes)));
    co_return std::unique_ptr<RpcServer>(std::move(server));
  }
};

class RelayContractTest : public testing::TestWithParam<RpcContract> {};

TEST_P(RelayContractTest, Holds) {
  OverARelay network;
  RunRpcContract(GetParam(), network);
}

INSTANTIATE_TEST_SUITE_P(Contracts,
                         RelayContractTest,
                         testing::ValuesIn(RpcContracts()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace berth::net
