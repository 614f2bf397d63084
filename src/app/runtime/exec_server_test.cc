// SPDX-License-Identifier: Apache-2.0
// Defends that a URL of a console does once and for its time only, that there are not too many, and
// whom one lets in.
#include "app/runtime/exec_server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "net/http_client.h"
#include "rt/sleep.h"
#include "rt/thread_pool.h"

namespace berth::app {
namespace {

rt::Task<Result<std::unique_ptr<iri::AttachStream>>> Refuse(int* opened) {
  ++*opened;
  co_return Conflict("machine \"m-1\" is off");
}

struct World {
  explicit World(ExecServer::Options options) : server(loop, files, std::move(options)) {}
  ~World() { CHECK(rt::RunTask(loop, server.Stop()).ok()); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Result<std::string> Grant() {
    return server.Grant([this] { return Refuse(&opened); });
  }
  rt::AsioLoop loop{"test"};
  rt::ThreadPool files{rt::ThreadPool::Options()};
  ExecServer server;
  int opened = 0;
};

// What the console says first, or why it is not opened.
rt::Task<Result<std::string>> Use(World* world, std::string url) {
  net::HttpClientOptions options;
  options.url = url;
  CO_TRY(const auto client, net::HttpClient::New(world->loop, std::move(options)));
  net::HttpClientRequest request;
  request.target = url.substr(url.find("/exec/"));
  CO_TRY(const auto socket, co_await client->OpenWebSocket(std::move(request)));
  CO_TRY(net::WebSocket::Message message, co_await socket->Receive());
  CO_TRY_STATUS(co_await socket->Close(1000, ""));
  co_return std::move(message.data);
}

TEST(ExecServer, AUrlDoesOnce) {
  World world(ExecServer::Options{});
  const auto url = world.Grant();
  ASSERT_TRUE(url.ok()) << url.status();
  const auto first = rt::RunTask(world.loop, Use(&world, *url));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->front(), '\3');
  EXPECT_TRUE(first->contains("is off")) << *first;
  EXPECT_EQ(rt::RunTask(world.loop, Use(&world, *url)).status().reason(), Reason::kNotFound);
  EXPECT_EQ(world.opened, 1);
}

TEST(ExecServer, AUrlDoesForItsTime) {
  World world(ExecServer::Options{.url_life = Duration::Nanos(1)});
  const auto url = world.Grant();
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(rt::RunTask(world.loop, Use(&world, *url)).status().reason(), Reason::kNotFound);
  EXPECT_EQ(world.opened, 0);
}

TEST(ExecServer, ThereAreNotTooManyUrls) {
  World world(ExecServer::Options{.url_life = Duration::Hours(1), .urls_max = 2});
  const auto first = world.Grant();
  ASSERT_TRUE(first.ok() && world.Grant().ok());
  EXPECT_EQ(world.Grant().status().reason(), Reason::kTooManyRequests);
  ASSERT_TRUE(rt::RunTask(world.loop, Use(&world, *first)).ok());
  EXPECT_TRUE(world.Grant().ok()) << "one was used";
}

TEST(ExecServer, LetsInWhoeverMayCallTheRuntime) {
  constexpr uid_t kPoollet = 4711;
  constexpr uid_t kStranger = 4712;
  struct Case {
    std::optional<uid_t> peer;
    Reason reason;
  };
  const Case cases[] = {{.peer = 0, .reason = Reason::kOk},
                        {.peer = geteuid(), .reason = Reason::kOk},
                        {.peer = kPoollet, .reason = Reason::kOk},
                        {.peer = kStranger, .reason = Reason::kForbidden},
                        {.peer = std::nullopt, .reason = Reason::kForbidden}};
  for (const Case& one : cases) {
    ExecServer::Options options;
    options.allowed = {kPoollet};
    options.owner_of = [&one](uint16_t, uint16_t) { return one.peer; };
    World world(std::move(options));
    const auto url = world.Grant();
    ASSERT_TRUE(url.ok()) << url.status();
    const auto said = rt::RunTask(world.loop, Use(&world, *url));
    EXPECT_EQ(said.status().reason(), one.reason)
        << (one.peer ? std::to_string(*one.peer) : "nobody") << ": " << said.status();
    EXPECT_EQ(world.opened, one.reason == Reason::kOk ? 1 : 0);
  }
}

}  // namespace
}  // namespace berth::app
