// SPDX-License-Identifier: Apache-2.0
// A whole server in a folder of its own, and an HTTPS connection to it as its administrator: for
// tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/server.h"
#include "app/server_options.h"
#include "base/check.h"
#include "cli/kubeconfig/connection.h"
#include "net/http_client.h"
#include "net/tls.h"
#include "rt/asio/asio_loop.h"

namespace berth::app {

class ServerUnderTest {
 public:
  ServerUnderTest() : folder_(PrivateFolder()) {
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
  }
  ~ServerUnderTest() {
    http_.reset();
    const Status stopped = rt::RunTask(loop_, server_->Stop());
    EXPECT_TRUE(stopped.ok()) << stopped;
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  ServerUnderTest(const ServerUnderTest&) = delete;
  ServerUnderTest& operator=(const ServerUnderTest&) = delete;

  rt::AsioLoop& loop() { return loop_; }
  net::HttpClient& http() { return *http_; }
  template <class T>
  T Run(rt::Task<T> task) {
    return rt::RunTask(loop_, std::move(task));
  }

 private:
  static ServerOptions OptionsFor(const std::string& folder) {
    ServerOptions options;
    options.data_dir = folder;
    options.port = 0;
    const Status parsed = ParseDomains(kDefaultDomains, options);
    CHECK(parsed.ok()) << parsed;
    return options;
  }
  static std::string PrivateFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth_test_XXXXXX").string();
    CHECK(::mkdtemp(pattern.data()) != nullptr) << pattern;
    return pattern;
  }

  const std::string folder_;
  rt::AsioLoop loop_{"test"};
  std::unique_ptr<Server> server_;
  std::unique_ptr<net::HttpClient> http_;
};

}  // namespace berth::app
