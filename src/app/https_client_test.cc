// SPDX-License-Identifier: Apache-2.0
// The client over HTTPS keeps the contract of all clients, against a whole server: TLS, RBAC,
// store.
#include "client/http/https_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "apis/registry.h"
#include "app/server_under_test.h"
#include "client/conformance/client_contract.h"
#include "meta/scheme.h"

namespace berth::app {
namespace {

class HttpsUnderTest final : public client::ClientUnderTest {
 public:
  HttpsUnderTest()
      : scheme_(apis::AllKinds(), {"ironcore.dev"}),
        client_(server_.http(), scheme_, client::HttpsClientOptions{}) {}

  client::Client& client() override { return client_; }
  client::Binder& binder() override { return client_; }
  Status Run(rt::Task<Status> task) override { return server_.Run(std::move(task)); }

 private:
  ServerUnderTest server_;
  meta::Scheme scheme_;
  client::HttpsClient client_;
};

class HttpsClientContract : public testing::TestWithParam<client::ClientContract> {};

TEST_P(HttpsClientContract, Holds) {
  client::RunClientContract([] { return std::make_unique<HttpsUnderTest>(); }, GetParam());
}

INSTANTIATE_TEST_SUITE_P(All,
                         HttpsClientContract,
                         testing::ValuesIn(client::ClientContracts().begin(),
                                           client::ClientContracts().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace berth::app
