// SPDX-License-Identifier: Apache-2.0
// Defends: of several servers another one is asked when one is gone, silent or cut off, and nothing
// that may not happen twice is sent twice. The servers are real ones, on loopback.
#include "cli/https/servers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cli/failure.h"
#include "cli/https/https_transport.h"
#include "net/http_server.h"
#include "net/owned_fd.h"
#include "net/socket.h"
#include "net/testing/http_fixture.h"
#include "rt/asio/loop_thread.h"
#include "rt/sleep.h"

namespace berth::cli {
namespace {

// One server of several: says who it is, and counts what it was asked.
struct Behaviour {
  std::string name;
  int status = 200;
  bool hangs = false;    // what it is asked, besides /livez
  bool is_alive = true;  // answers /livez
  std::atomic<int> asked = 0;
};

rt::Task<net::HttpResponse> Answer(Behaviour* behaviour, net::HttpRequest request) {
  net::HttpResponse answer;
  const bool is_probe = request.target == "/livez";
  if (!is_probe) ++behaviour->asked;
  if (is_probe ? !behaviour->is_alive : behaviour->hangs) {
    const Status ended = co_await rt::Sleep(Duration::Hours(1));
    answer.status = ended.ok() ? 500 : 503;
    co_return answer;
  }
  answer.status = behaviour->status;
  answer.body.emplace_back(behaviour->name);
  co_return answer;
}

rt::Task<Result<std::unique_ptr<net::HttpServer>>> StartServer(
    rt::AsioLoop* loop, std::shared_ptr<const net::TlsContext> tls, Behaviour* behaviour) {
  net::HttpServerOptions options;
  options.tls = std::move(tls);
  co_return net::HttpServer::Start(
      *loop, std::move(options), [behaviour](net::HttpRequest request) {
        return Answer(behaviour, std::move(request));
      });
}

class ServersTest : public testing::Test {
 protected:
  ServersTest() {
    connection_.certificate_authority = tls_.pki().ca_pem();
    first_.name = "first";
    second_.name = "second";
    for (Behaviour* behaviour : {&first_, &second_}) {
      auto started = thread_.Await(StartServer(&thread_.loop(), tls_.server(), behaviour));
      CHECK(started.ok()) << started.status();
      running_.push_back(*std::move(started));
    }
    connection_.server = "https://" + running_[0]->address();
    connection_.others = {"https://" + running_[1]->address()};
  }
  ~ServersTest() override {
    const Status gone = thread_.Await(StopAll(&running_));
    CHECK(gone.ok()) << gone;
  }

  static rt::Task<Status> StopAll(std::vector<std::unique_ptr<net::HttpServer>>* servers) {
    for (auto& server : *servers) {
      CO_TRY_STATUS(co_await server->Stop());
      server.reset();
    }
    servers->clear();
    co_return OkStatus();
  }
  std::unique_ptr<Transport> Connect() const {
    auto transport = ConnectHttps(connection_, times_);
    CHECK(transport.ok()) << transport.status();
    return *std::move(transport);
  }
  // A port that a connection stands to, and where nobody ever answers.
  std::string Silent() {
    auto fd = net::BindTcp("127.0.0.1", 0);
    CHECK(fd.ok()) << fd.status();
    ports_.push_back(std::make_unique<net::OwnedFd>(*fd));
    const Status listening = net::Listen(*fd);
    CHECK(listening.ok()) << listening;
    return "https://" + net::LocalAddress(*fd);
  }
  // A port where nobody listens, and nobody else can.
  std::string Gone() {
    auto fd = net::BindTcp("127.0.0.1", 0);
    CHECK(fd.ok()) << fd.status();
    ports_.push_back(std::make_unique<net::OwnedFd>(*fd));
    return "https://" + net::LocalAddress(*fd);
  }
  static Request Post() { return {.method = "POST", .path = "/api/v1/namespaces", .body = "{}"}; }

  // Long enough for a busy machine; tests shorten what they wait for.
  ServerTimes times_{.head_start = Duration::Seconds(20),
                     .silence = Duration::Seconds(20),
                     .sign_of_life = Duration::Seconds(20)};
  rt::LoopThread thread_{"servers"};
  net::TestTls tls_;
  Behaviour first_;
  Behaviour second_;
  std::vector<std::unique_ptr<net::HttpServer>> running_;
  std::vector<std::unique_ptr<net::OwnedFd>> ports_;
  Connection connection_;
};

TEST_F(ServersTest, TheFirstIsAskedWhileItIsThere) {
  const auto transport = Connect();
  for (int i = 0; i < 3; ++i) {
    const auto answer = transport->Send({.path = "/api/v1/namespaces"});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->body, "first");
  }
  EXPECT_EQ(second_.asked, 0);
}

TEST_F(ServersTest, WhatCouldNotBeSentIsSentToTheNext) {
  times_.head_start = Duration::Millis(50);
  for (const std::string& url : {Gone(), Silent()}) {
    connection_.server = url;
    const auto transport = Connect();
    const int before = second_.asked;
    for (int i = 0; i < 2; ++i) {
      const auto answer = transport->Send(Post());
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_EQ(answer->body, "second");
    }
    EXPECT_EQ(second_.asked, before + 2);
  }
}

TEST_F(ServersTest, AReadGoesOnElsewhereWhenTheServerFallsSilent) {
  times_.silence = Duration::Millis(50);
  times_.sign_of_life = Duration::Millis(1500);
  first_.hangs = true;
  first_.is_alive = false;
  const auto transport = Connect();
  for (int i = 0; i < 2; ++i) {
    const auto answer = transport->Send({.path = "/api/v1/namespaces"});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->body, "second");
  }
  EXPECT_EQ(first_.asked, 1) << "it is not asked again";
}

TEST_F(ServersTest, AWriteThatMayHaveHappenedIsNotSentAgain) {
  times_.silence = Duration::Millis(50);
  times_.sign_of_life = Duration::Millis(1500);
  first_.hangs = true;
  first_.is_alive = false;
  const auto transport = Connect();
  const Status status = transport->Send(Post()).status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUnreachable) << status;
  EXPECT_TRUE(FailureOf(status).message.contains("whether it was carried out is not known"))
      << status;
  EXPECT_TRUE(FailureOf(status).next_step.contains("look at the object")) << status;
  EXPECT_EQ(second_.asked, 0);
}

TEST_F(ServersTest, ASlowServerThatLivesIsWaitedFor) {
  times_.silence = Duration::Millis(50);
  first_.hangs = true;
  connection_.request_timeout = Duration::Millis(900);
  const Status status = Connect()->Send({.path = "/api/v1/namespaces"}).status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUnreachable) << status;
  EXPECT_TRUE(FailureOf(status).next_step.contains("--request-timeout")) << status;
  EXPECT_EQ(second_.asked, 0);
}

TEST_F(ServersTest, AReadIsAskedElsewhereIfTheServerIsCutOff) {
  first_.status = 503;
  const auto read = Connect()->Send({.path = "/api/v1/namespaces"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->body, "second");
  const auto ready = Connect()->Send({.path = "/readyz"});
  ASSERT_TRUE(ready.ok()) << ready.status();
  EXPECT_EQ(ready->body, "first") << "what a server says about itself is its answer";
  const auto write = Connect()->Send(Post());
  ASSERT_TRUE(write.ok()) << write.status();
  EXPECT_EQ(write->status, 503);
}

TEST_F(ServersTest, StreamsAreOpenedElsewhereToo) {
  connection_.server = Gone();
  const auto transport = Connect();
  auto streams = transport->Open({{.path = "/api/v1/namespaces"}});
  ASSERT_TRUE(streams.ok()) << streams.status();
  const auto chunk = (*streams)->Next(Duration::Seconds(20));
  ASSERT_TRUE(chunk.ok()) << chunk.status();
  EXPECT_EQ(chunk->bytes, "second");
}

TEST_F(ServersTest, TheReasonOfEachIsTold) {
  connection_.server = Gone();
  connection_.others = {"https://localhost:1"};
  const Status status = Connect()->Send({.path = "/version"}).status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUnreachable) << status;
  EXPECT_TRUE(status.message().contains("none of 2 servers can be reached: ")) << status;
  EXPECT_TRUE(status.message().contains(connection_.server)) << status;
  EXPECT_TRUE(status.message().contains("https://localhost:1")) << status;
}

TEST(MayRepeat, OnlyWhatMayHappenTwice) {
  EXPECT_TRUE(MayRepeat({.path = "/api"}));
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH"}) {
    EXPECT_FALSE(MayRepeat({.method = method, .path = "/api"})) << method;
    EXPECT_TRUE(MayRepeat({.method = method, .path = "/api", .query = {{"dryRun", "All"}}}));
  }
  Request apply{.method = "PATCH", .path = "/api"};
  apply.headers.Set("Content-Type", "application/apply-patch+yaml");
  EXPECT_TRUE(MayRepeat(apply));
  apply.headers.Set("Content-Type", "application/merge-patch+json");
  EXPECT_FALSE(MayRepeat(apply));
}

}  // namespace
}  // namespace berth::cli
