// SPDX-License-Identifier: Apache-2.0
// HTTP/2 over real sockets keeps the contract of net/rpc.h.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "net/conformance/rpc_contract.h"
#include "net/h2/h2_server.h"
#include "net/h2/h2_under_test.h"

namespace berth::net {
namespace {

class OverH2 final : public H2UnderTest {
 public:
  rt::Task<Result<std::unique_ptr<RpcServer>>> Serve(RpcRoutes routes) override {
    CO_TRY(H2ServerOptions options, ServerOptions());
    CO_TRY(auto server, H2Server::Start(loop_, std::move(options), std::move(routes)));
    co_return std::unique_ptr<RpcServer>(std::move(server));
  }
};

class H2ContractTest : public testing::TestWithParam<RpcContract> {};

TEST_P(H2ContractTest, Holds) {
  OverH2 network;
  RunRpcContract(GetParam(), network);
}

INSTANTIATE_TEST_SUITE_P(Contracts,
                         H2ContractTest,
                         testing::ValuesIn(RpcContracts()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace berth::net
