// SPDX-License-Identifier: Apache-2.0
// A server whose connections have a thread of their own keeps the contract of net/rpc.h.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "net/conformance/rpc_contract.h"
#include "net/h2/h2_dialer.h"
#include "net/relay/threaded_server.h"
#include "net/testing/test_pki.h"
#include "rt/asio/asio_loop.h"

namespace berth::net {
namespace {

class OverARelay final : public RpcUnderTest {
 public:
  rt::Loop& loop() override { return loop_; }
  Status Run(rt::Task<Status> task) override { return rt::RunTask(loop_, std::move(task)); }
  rt::Task<Result<std::unique_ptr<RpcServer>>> Serve(RpcRoutes routes) override {
    const TestIdentity identity = pki_.IssueServer({"127.0.0.1"});
    TlsServerOptions tls;
    tls.certificate_pem = identity.certificate_pem + pki_.ca_pem();
    tls.key_pem = identity.key_pem;
    tls.client_certificates = ClientCertificates::kOptional;
    tls.client_ca_pem = pki_.ca_pem();
    H2ServerOptions options;
    CO_TRY(options.tls, NewH2ServerTls(tls));
    options.drain_timeout = Duration::Millis(100);
    CO_TRY(auto server,
           co_await ThreadedServer::Start(&loop_, std::move(options), std::move(routes)));
    co_return std::unique_ptr<RpcServer>(std::move(server));
  }
  RpcDialer& dialer() override { return dialer_; }
  RpcCredentials credentials() override { return Credentials(pki_); }
  RpcCredentials stranger() override { return Credentials(other_pki_); }
  std::string dead_address() override { return "127.0.0.1:1"; }

 private:
  RpcCredentials Credentials(TestPki& issuer) {
    const TestIdentity identity = issuer.IssueClient("host-1");
    return {.ca_pem = pki_.ca_pem(),
            .certificate_pem = identity.certificate_pem,
            .key_pem = identity.key_pem};
  }

  rt::AsioLoop loop_;
  TestPki pki_;
  TestPki other_pki_{"another CA"};
  H2Dialer dialer_{loop_};
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
