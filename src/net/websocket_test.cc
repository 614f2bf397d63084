// SPDX-License-Identifier: Apache-2.0
// WebSockets between our own ends, over TLS: messages, pings, closing from either side, limits, and
// a peer that breaks the rules.
#include "net/websocket.h"

#include <gtest/gtest.h>

#include <string>

#include "net/http_client.h"
#include "net/http_server.h"
#include "net/testing/http_fixture.h"
#include "net/websocket_codec.h"
#include "rt/event.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

struct World {
  rt::AsioLoop loop;
  TestTls tls;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<HttpClient> client;
  Status receive_ended;
  rt::Event reached;
  rt::Event ended;
};

WebSocket::Message TextMessage(std::string text) {
  return {.kind = WebSocket::Kind::kText, .data = std::move(text)};
}

rt::Task<Status> Echo(World* world, WebSocket* socket) {
  for (;;) {
    Result<WebSocket::Message> message = co_await socket->Receive();
    if (!message.ok()) {
      world->receive_ended = message.status();
      world->ended.Set();
      co_return message.status();
    }
    if (message->data == "close me") co_return co_await socket->Close(4000, "as you wish");
    if (message->data == "fail") co_return Internal("something broke");
    CO_TRY_STATUS(co_await socket->Send(*std::move(message)));
  }
}

rt::Task<Status> Ignore(World* world) {
  world->reached.Set();
  world->receive_ended = co_await rt::Sleep(Duration::Hours(1));
  world->ended.Set();
  co_return world->receive_ended;
}

rt::Task<HttpResponse> Handle(World* world, HttpRequest request) {
  HttpResponse response;
  if (request.target == "/echo") {
    response.headers.Set("Sec-WebSocket-Protocol", "v4.channel.k8s.io");
    response.websocket = [world](WebSocket& socket) { return Echo(world, &socket); };
  } else if (request.target == "/ignore") {
    response.websocket = [world](WebSocket&) { return Ignore(world); };
  } else {
    response.status = 403;
    response.body = {Bytes("not for you")};
  }
  co_return response;
}

using Script = std::function<rt::Task<Status>(World*)>;

rt::Task<Status> RunScript(World* world, Script script) {
  HttpServerOptions options;
  options.tls = world->tls.server();
  options.websocket_message_max = 100'000;
  world->server = *HttpServer::Start(
      world->loop, options, [world](HttpRequest r) { return Handle(world, std::move(r)); });
  world->client =
      *HttpClient::New(world->loop,
                       {.url = "https://127.0.0.1:" + std::to_string(world->server->port()),
                        .tls = world->tls.client()});
  const Status status = co_await script(world);
  CO_TRY_STATUS(co_await world->server->Stop());
  co_return status;
}

void Serve(Script script) {
  World world;
  EXPECT_EQ(rt::RunTask(world.loop, RunScript(&world, std::move(script))), OkStatus());
}

HttpClientRequest Get(std::string target) {
  HttpClientRequest request;
  request.target = std::move(target);
  return request;
}

rt::Task<Status> EchoMessages(World* world) {
  CO_TRY(auto socket, co_await world->client->OpenWebSocket(Get("/echo")));
  for (const size_t size : {0U, 5U, 200U, 70'000U, 100'000U}) {
    WebSocket::Message sent{.kind = WebSocket::Kind::kBinary, .data = std::string(size, 'm')};
    CO_TRY_STATUS(co_await socket->Send(sent));
    CO_TRY(const WebSocket::Message got, co_await socket->Receive());
    EXPECT_EQ(got.kind, WebSocket::Kind::kBinary);
    EXPECT_EQ(got.data, sent.data);
  }
  CO_TRY_STATUS(co_await socket->Send(TextMessage("héllo")));
  CO_TRY(const WebSocket::Message text, co_await socket->Receive());
  EXPECT_EQ(text.kind, WebSocket::Kind::kText);
  CO_TRY_STATUS(co_await socket->Close(1000, "done"));
  CO_TRY_STATUS(co_await world->ended.Wait());
  EXPECT_EQ(world->receive_ended, Unavailable("websocket: closed by the peer with 1000 done"));
  const Status late = co_await socket->Send(TextMessage("late"));
  EXPECT_EQ(late.reason(), Reason::kUnavailable);
  co_return OkStatus();
}
TEST(WebSocket, CarriesMessagesBothWays) { Serve(EchoMessages); }

rt::Task<Status> ServerCloses(World* world) {
  CO_TRY(auto socket, co_await world->client->OpenWebSocket(Get("/echo")));
  CO_TRY_STATUS(co_await socket->Send(TextMessage("close me")));
  const auto closed = co_await socket->Receive();
  EXPECT_EQ(closed.status(), Unavailable("websocket: closed by the peer with 4000 as you wish"));
  CO_TRY(auto failing, co_await world->client->OpenWebSocket(Get("/echo")));
  CO_TRY_STATUS(co_await failing->Send(TextMessage("fail")));
  const auto failed = co_await failing->Receive();
  EXPECT_EQ(failed.status(),
            Unavailable("websocket: closed by the peer with 1011 something broke"));
  co_return OkStatus();
}
TEST(WebSocket, TellsWhyTheServerCloses) { Serve(ServerCloses); }

rt::Task<Status> Refused(World* world) {
  const auto forbidden = co_await world->client->OpenWebSocket(Get("/other"));
  EXPECT_EQ(forbidden.status().reason(), Reason::kForbidden) << forbidden.status();
  EXPECT_NE(forbidden.status().message().find("not for you"), std::string_view::npos);
  CO_TRY(const HttpClientResponse plain, co_await world->client->Send(Get("/echo")));
  EXPECT_EQ(plain.status, 426);
  co_return OkStatus();
}
TEST(WebSocket, IsOnlyGivenToThoseWhoAskRightly) { Serve(Refused); }

rt::Task<Status> GoAway(World* world) {
  CO_TRY(auto socket, co_await world->client->OpenWebSocket(Get("/ignore")));
  CO_TRY_STATUS(co_await world->reached.Wait());
  socket.reset();
  CO_TRY_STATUS(co_await world->ended.Wait());
  EXPECT_EQ(world->receive_ended.reason(), Reason::kCancelled);
  co_return OkStatus();
}
TEST(WebSocket, CancelsAHandlerThatDoesNotEvenListen) { Serve(GoAway); }

rt::Task<Status> StopServer(World* world) { co_return co_await world->server->Stop(); }

rt::Task<Status> Drain(World* world) {
  CO_TRY(auto socket, co_await world->client->OpenWebSocket(Get("/ignore")));
  CO_TRY_STATUS(co_await world->reached.Wait());
  rt::TaskScope scope(world->loop);
  scope.Spawn("stop", StopServer(world));
  const auto closed = co_await socket->Receive();
  EXPECT_EQ(closed.status().reason(), Reason::kUnavailable);
  co_return co_await scope.Join();
}
TEST(WebSocket, EndsWhenTheServerStops) { Serve(Drain); }

constexpr std::string_view kUpgrade =
    "GET /echo HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

rt::Task<Status> RawFrames(World* world) {
  CO_TRY(auto raw,
         co_await RawClient::ConnectTls(&world->loop, world->server->port(), world->tls.client()));
  // A ping right behind the request, before the answer: it must not be lost.
  const std::string ping = WsFrameHead(WsOpcode::kPing, 2, 0) + "hi";
  CO_TRY_STATUS(co_await raw->Write(std::string(kUpgrade) + ping));
  CO_TRY(const std::string head, co_await raw->ReadUntil("\r\n\r\n"));
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << head;
  EXPECT_NE(head.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), std::string::npos);
  EXPECT_NE(head.find("Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n"), std::string::npos);
  EXPECT_EQ(head.find("Content-Length"), std::string::npos);
  CO_TRY(const std::string pong, co_await raw->ReadUntil("\x8a\x02hi"));
  // An unmasked frame ends it with 1002.
  CO_TRY_STATUS(co_await raw->Write("\x81\x02hi"));
  CO_TRY(const std::string closing, co_await raw->ReadUntil("must mask its frames"));
  EXPECT_EQ(closing.substr(2, 2), "\x03\xea");
  CO_TRY_STATUS(co_await world->ended.Wait());
  EXPECT_EQ(world->receive_ended.reason(), Reason::kBadRequest);
  co_return OkStatus();
}
TEST(WebSocket, AnswersPingsAndClosesOnBrokenFrames) { Serve(RawFrames); }

rt::Task<Status> TooBig(World* world) {
  CO_TRY(auto socket, co_await world->client->OpenWebSocket(Get("/echo")));
  WebSocket::Message big{.data = std::string(100'001, 'm')};
  CO_TRY_STATUS(co_await socket->Send(std::move(big)));
  const auto closed = co_await socket->Receive();
  EXPECT_NE(closed.status().message().find("1009"), std::string_view::npos) << closed.status();
  co_return OkStatus();
}
TEST(WebSocket, RefusesMessagesAboveTheLimit) { Serve(TooBig); }

}  // namespace
}  // namespace berth::net
