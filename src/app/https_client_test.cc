// SPDX-License-Identifier: Apache-2.0
// The client over HTTPS keeps the contract of all clients, against a whole server: TLS, RBAC,
// store.
#include "client/http/https_client.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "apis/registry.h"
#include "app/server.h"
#include "app/server_options.h"
#include "base/check.h"
#include "cli/kubeconfig/connection.h"
#include "client/conformance/client_contract.h"
#include "meta/scheme.h"
#include "net/http_client.h"
#include "net/tls.h"
#include "rt/asio/asio_loop.h"

namespace berth::app {
namespace {

ServerOptions OptionsFor(const std::string& folder) {
  ServerOptions options;
  options.data_dir = folder;
  options.port = 0;
  const Status parsed = ParseDomains(kDefaultDomains, options);
  CHECK(parsed.ok()) << parsed;
  return options;
}

std::string PrivateFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "https_client_XXXXXX").string();
  CHECK(::mkdtemp(pattern.data()) != nullptr) << pattern;
  return pattern;
}

class HttpsUnderTest final : public client::ClientUnderTest {
 public:
  HttpsUnderTest() : folder_(PrivateFolder()), scheme_(apis::AllKinds(), {"ironcore.dev"}) {
    auto started = rt::RunTask(loop_, Server::Start(loop_, OptionsFor(folder_)));
    CHECK(started.ok()) << started.status();
    server_ = *std::move(started);
    const auto config = cli::LoadKubeconfig(
        {.origin = cli::KubeconfigOrigin::kFlag, .paths = {server_->kubeconfig_path()}});
    CHECK(config.ok()) << config.status();
    const auto connection = cli::ResolveConnection(*config, {});
    CHECK(connection.ok()) << connection.status();
    auto tls = net::TlsContext::NewClient({.ca_pem = connection->certificate_authority,
                                           .certificate_pem = connection->client_certificate,
                                           .key_pem = connection->client_key});
    CHECK(tls.ok()) << tls.status();
    net::HttpClientOptions options;
    options.url = connection->server;
    options.tls = *tls;
    auto http = net::HttpClient::New(loop_, std::move(options));
    CHECK(http.ok()) << http.status();
    http_ = *std::move(http);
    client_ = std::make_unique<client::HttpsClient>(*http_, scheme_, client::HttpsClientOptions{});
  }

  ~HttpsUnderTest() override {
    client_.reset();
    http_.reset();
    const Status stopped = rt::RunTask(loop_, server_->Stop());
    EXPECT_TRUE(stopped.ok()) << stopped;
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  client::Client& client() override { return *client_; }
  client::Binder& binder() override { return *client_; }
  Status Run(rt::Task<Status> task) override { return rt::RunTask(loop_, std::move(task)); }

 private:
  std::string folder_;
  meta::Scheme scheme_;
  rt::AsioLoop loop_{"test"};
  std::unique_ptr<Server> server_;
  std::unique_ptr<net::HttpClient> http_;
  std::unique_ptr<client::HttpsClient> client_;
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
