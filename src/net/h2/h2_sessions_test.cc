// SPDX-License-Identifier: Apache-2.0
// Defends: one port serves HTTP/1.1 to whoever asks for it and gRPC to who asks for nothing else;
// gRPC's connections are bounded, and those without calls make room.
#include "net/h2/h2_sessions.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/h2/h2_test_world.h"
#include "net/http_client.h"
#include "rt/deadline.h"

namespace berth::net {
namespace {

constexpr Duration kLimit = Duration::Seconds(20);

rt::Task<HttpResponse> SayHello(HttpRequest) {
  HttpResponse response;
  response.body.emplace_back(std::string_view("hello"));
  co_return response;
}

// An HTTP server that has the routes of the H2World too.
struct World : H2World {
  explicit World(size_t connections_max = 256)
      : grpc({.limits = {}, .connections_max = connections_max}, Routes()) {}

  using Test = rt::Task<Status> (*)(World*);
  Status Run(Test test) { return rt::RunTask(loop, RunTest(test)); }
  rt::Task<Status> RunTest(Test test) {
    HttpServerOptions options;
    TlsServerOptions tls = Tls();
    tls.alpn = {"http/1.1", "h2"};
    CO_TRY(options.tls, TlsContext::NewServer(tls));
    options.h2 = &grpc;
    CO_TRY(http, HttpServer::Start(loop, std::move(options), SayHello));
    const Status status = co_await test(this);
    CO_TRY_STATUS(co_await http->Stop());
    http.reset();
    co_return status;
  }
  rt::Task<Result<std::unique_ptr<RpcChannel>>> DialHttp(const std::string& name) {
    return DialHttp(Client(name));
  }
  rt::Task<Result<std::unique_ptr<RpcChannel>>> DialHttp(RpcCredentials credentials) {
    return dialer.Dial(http->address(), std::move(credentials), kDialLimit);
  }

  H2Sessions grpc;
  std::unique_ptr<HttpServer> http;
};

rt::Task<Status> BothAreServed(World* world) {
  CO_TRY(auto channel, co_await world->DialHttp("host-1"));
  RpcOptions options;
  options.deadline = kLimit;
  CO_TRY(const std::string answer, co_await channel->Call(H2World::kEcho, "x", options));
  EXPECT_EQ(answer, "x");
  // As browsers and Go's clients do: they have both, and prefer the other.
  for (const std::vector<std::string>& alpn :
       std::vector<std::vector<std::string>>{{"h2", "http/1.1"}, {"http/1.1"}, {}}) {
    HttpClientOptions client_options;
    client_options.url = "https://" + world->http->address();
    CO_TRY(client_options.tls,
           TlsContext::NewClient({.ca_pem = world->pki.ca_pem(), .alpn = alpn}));
    CO_TRY(auto client, HttpClient::New(world->loop, std::move(client_options)));
    HttpClientRequest request;
    CO_TRY(const auto response, co_await client->Send(std::move(request)));
    EXPECT_EQ(response.body, "hello");
  }
  co_return co_await channel->Close();
}
TEST(H2Sessions, ShareThePortOfAnHttpServer) {
  World world;
  EXPECT_EQ(world.Run(BothAreServed), OkStatus());
}

rt::Task<Status> WaitUntilUnusable(RpcChannel* channel) {
  while (channel->usable()) CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(5)));
  co_return OkStatus();
}

rt::Task<Status> RoomIsMade(World* world) {
  CO_TRY(auto busy, co_await world->DialHttp("host-1"));
  RpcOptions options;
  CO_TRY(auto stream, co_await busy->Open(H2World::kDeaf, options));
  CO_TRY(auto idle, co_await world->DialHttp("host-2"));
  CO_TRY(auto next, co_await world->DialHttp("host-3"));
  CO_TRY_STATUS(co_await rt::WithDeadline(WaitUntilUnusable(idle.get()), kLimit));
  EXPECT_TRUE(busy->usable());
  CO_TRY(auto other, co_await next->Open(H2World::kDeaf, options));
  // All are in use.
  auto refused = co_await world->DialHttp("host-4");
  if (refused.ok()) {
    CO_TRY_STATUS(co_await rt::WithDeadline(WaitUntilUnusable(refused->get()), kLimit));
    CO_TRY_STATUS(co_await (*refused)->Close());
  }
  EXPECT_TRUE(busy->usable() && next->usable());
  EXPECT_LE(world->grpc.size(), 3U);
  stream.reset();
  other.reset();
  for (RpcChannel* channel : {busy.get(), idle.get(), next.get()}) {
    CO_TRY_STATUS(co_await channel->Close());
  }
  co_return OkStatus();
}
TEST(H2Sessions, EndIdleConnectionsForNewOnesAndRefuseMore) {
  World world(2);
  EXPECT_EQ(world.Run(RoomIsMade), OkStatus());
}

rt::Task<Status> ControllerComesAllTheSame(World* world) {
  std::vector<std::unique_ptr<RpcChannel>> nobodies;
  std::vector<std::unique_ptr<MessageStream>> calls;
  const RpcOptions options;
  for (int i = 0; i < 2; ++i) {
    CO_TRY(auto nobody, co_await world->DialHttp(world->Nobody()));
    CO_TRY(auto call, co_await nobody->Open(H2World::kEcho, options));
    nobodies.push_back(std::move(nobody));
    calls.push_back(std::move(call));
  }
  CO_TRY(auto controller, co_await world->DialHttp("controller"));
  RpcOptions limited;
  limited.deadline = kLimit;
  CO_TRY(const std::string answer, co_await controller->Call(H2World::kEcho, "x", limited));
  EXPECT_EQ(answer, "x");
  CO_TRY_STATUS(co_await rt::WithDeadline(WaitUntilUnusable(nobodies[0].get()), kLimit));
  calls.clear();
  for (const auto& nobody : nobodies) CO_TRY_STATUS(co_await nobody->Close());
  co_return co_await controller->Close();
}
TEST(H2Sessions, ThoseOfNobodyMakeWayWithHalfACallToo) {
  World world(2);
  EXPECT_EQ(world.Run(ControllerComesAllTheSame), OkStatus());
}

rt::Task<Status> StreamEndsWithTheServer(World* world) {
  CO_TRY(auto channel, co_await world->DialHttp("host-1"));
  RpcOptions options;
  CO_TRY(auto stream, co_await channel->Open(H2World::kDeaf, options));
  // Until it is known to the other end.
  options.deadline = kLimit;
  CO_TRY_STATUS(co_await channel->Call(H2World::kEcho, "x", options));
  CO_TRY_STATUS(co_await world->http->Stop());
  const auto ended = co_await rt::WithDeadline(stream->Read(), kLimit);
  EXPECT_EQ(ended.status().reason(), Reason::kUnavailable) << ended.status();
  EXPECT_EQ(ended.status().message(), "the server is shutting down");
  co_return co_await channel->Close();
}
TEST(H2Sessions, EndWithTheServerAndSayWhy) {
  World world;
  EXPECT_EQ(world.Run(StreamEndsWithTheServer), OkStatus());
}

}  // namespace
}  // namespace berth::net
