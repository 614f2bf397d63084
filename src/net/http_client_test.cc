// SPDX-License-Identifier: Apache-2.0
// The client: kept connections, deadlines, limits, streams, and servers that misbehave.
#include "net/http_client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "net/http_server.h"
#include "net/socket.h"
#include "net/testing/http_fixture.h"
#include "rt/event.h"
#include "rt/join_all.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

struct World {
  rt::AsioLoop loop;
  TestTls tls;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<HttpClient> client;
  std::vector<std::string> peers;  // of the requests, in order
  rt::Event go_on;
};

rt::Task<Status> StreamUntilTold(World* world, BodyWriter* writer) {
  std::vector<Bytes> first = {Bytes("first")};
  CO_TRY_STATUS(co_await writer->Write(std::move(first)));
  CO_TRY_STATUS(co_await world->go_on.Wait());
  std::vector<Bytes> second = {Bytes("second")};
  CO_TRY_STATUS(co_await writer->Write(std::move(second)));
  co_return OkStatus();
}

rt::Task<Status> StreamAndFail(BodyWriter* writer) {
  std::vector<Bytes> first = {Bytes("first")};
  CO_TRY_STATUS(co_await writer->Write(std::move(first)));
  co_return Internal("broken");
}

rt::Task<HttpResponse> Handle(World* world, HttpRequest request) {
  world->peers.push_back(request.peer.address);
  HttpResponse response;
  if (request.target == "/stream") {
    response.stream = [world](BodyWriter& writer) { return StreamUntilTold(world, &writer); };
  } else if (request.target == "/cut") {
    response.stream = [](BodyWriter& writer) { return StreamAndFail(&writer); };
  } else if (request.target == "/wait") {
    const Status ended = co_await rt::Sleep(Duration::Hours(1));
    EXPECT_EQ(ended.reason(), Reason::kCancelled);
  } else if (request.target == "/big") {
    response.body = {Bytes(std::string(100'000, 'b'))};
  } else if (request.target == "/missing") {
    response.status = 404;
    response.body = {Bytes("no such thing")};
  } else {
    response.body = {Bytes(request.method), Bytes(" "), Bytes(request.body)};
  }
  co_return response;
}

using Script = std::function<rt::Task<Status>(World*)>;

rt::Task<Status> RunScript(World* world, HttpServerOptions options, Script script) {
  options.tls = world->tls.server();
  options.drain_timeout = Duration::Millis(100);
  world->server = *HttpServer::Start(
      world->loop, options, [world](HttpRequest r) { return Handle(world, std::move(r)); });
  world->client =
      *HttpClient::New(world->loop,
                       {.url = "https://127.0.0.1:" + std::to_string(world->server->port()),
                        .tls = world->tls.client()});
  const Status status = co_await script(world);
  world->client.reset();
  CO_TRY_STATUS(co_await world->server->Stop());
  co_return status;
}

void Serve(Script script, HttpServerOptions options = {}) {
  World world;
  EXPECT_EQ(rt::RunTask(world.loop, RunScript(&world, options, std::move(script))), OkStatus());
}

HttpClientRequest Post(std::string body) {
  HttpClientRequest request;
  request.method = "POST";
  request.body = {Bytes(body)};
  return request;
}

HttpClientRequest Get(std::string target) {
  HttpClientRequest request;
  request.target = std::move(target);
  return request;
}

rt::Task<Status> KeepAlive(World* world) {
  for (int i = 0; i < 5; ++i) {
    CO_TRY(const HttpClientResponse response, co_await world->client->Send(Post("hi")));
    EXPECT_EQ(response.body, "POST hi");
  }
  for (const std::string& peer : world->peers) EXPECT_EQ(peer, world->peers.front());
  EXPECT_EQ(world->server->connections(), 1U);
  HttpClientRequest head = Get("/big");
  head.method = "HEAD";
  CO_TRY(const HttpClientResponse bodiless, co_await world->client->Send(head));
  EXPECT_EQ(bodiless.headers.Get("content-length"), "100000");
  EXPECT_EQ(bodiless.body, "");
  CO_TRY(const HttpClientResponse missing, co_await world->client->Send(Get("/missing")));
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.body, "no such thing");
  EXPECT_EQ(world->server->connections(), 1U);
  co_return OkStatus();
}
TEST(HttpClient, KeepsItsConnection) { Serve(KeepAlive); }

rt::Task<Status> SendMany(World* world, int count, int* done) {
  for (int i = 0; i < count; ++i) {
    const std::string body = "n" + std::to_string(i);
    CO_TRY(const HttpClientResponse response, co_await world->client->Send(Post(body)));
    EXPECT_EQ(response.body, "POST " + body);
    ++*done;
  }
  co_return OkStatus();
}

rt::Task<Status> Thousand(World* world) {
  int done = 0;
  rt::TaskScope scope(world->loop);
  for (int i = 0; i < 16; ++i) scope.Spawn("send", SendMany(world, 63, &done));
  CO_TRY_STATUS(co_await scope.Join());
  EXPECT_EQ(done, 1008);
  EXPECT_EQ(world->server->connections(), 16U);
  co_return OkStatus();
}
TEST(HttpClient, SendsAThousandRequestsOverSixteenConnections) { Serve(Thousand); }

rt::Task<Status> Stale(World* world) {
  CO_TRY_STATUS(co_await world->client->Send(Get("/")));
  while (world->server->connections() > 0) CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(1)));
  CO_TRY_STATUS(co_await world->client->Send(Post("again")));
  EXPECT_NE(world->peers[0], world->peers[1]);
  co_return OkStatus();
}
TEST(HttpClient, NoticesThatAKeptConnectionWasClosed) {
  Serve(Stale, {.idle_timeout = Duration::Millis(20)});
}

rt::Task<Status> Deadline(World* world) {
  const SendOptions options{.deadline = Duration::Millis(30)};
  const auto late = co_await world->client->Send(Get("/wait"), options);
  EXPECT_EQ(late.status().reason(), Reason::kTimeout) << late.status();
  EXPECT_NE(late.status().message().find("GET https://127.0.0.1:"), std::string_view::npos);
  // The half-used connection is gone, and with it the handler.
  while (world->server->connections() > 0) CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(1)));
  co_return OkStatus();
}
TEST(HttpClient, GivesUpAtItsDeadline) { Serve(Deadline); }

rt::Task<Status> TooBig(World* world) {
  const SendOptions options{.body_max = 99'999};
  const auto refused = co_await world->client->Send(Get("/big"), options);
  EXPECT_EQ(refused.status().reason(), Reason::kRequestTooLarge) << refused.status();
  CO_TRY(const HttpClientResponse whole, co_await world->client->Send(Get("/big")));
  EXPECT_EQ(whole.body.size(), 100'000U);
  // The server refuses ours; its answer arrives although we were still writing.
  const std::string large(8 * 1024 * 1024, 'x');
  CO_TRY(const HttpClientResponse answer, co_await world->client->Send(Post(large)));
  EXPECT_EQ(answer.status, 413);
  co_return OkStatus();
}
TEST(HttpClient, ObeysLimitsOfBothSides) { Serve(TooBig); }

rt::Task<Status> ReadStream(World* world) {
  CO_TRY(auto stream, co_await world->client->Open(Get("/stream")));
  EXPECT_EQ(stream->status(), 200);
  CO_TRY(const std::string first, co_await stream->Read());
  EXPECT_EQ(first, "first");
  world->go_on.Set();
  CO_TRY(const std::string second, co_await stream->Read());
  EXPECT_EQ(second, "second");
  CO_TRY(const std::string end, co_await stream->Read());
  EXPECT_EQ(end, "");
  CO_TRY(auto cut, co_await world->client->Open(Get("/cut")));
  CO_TRY(const std::string before, co_await cut->Read());
  EXPECT_EQ(before, "first");
  const Result<std::string> after = co_await cut->Read();
  EXPECT_EQ(after.status().reason(), Reason::kUnavailable) << "a cut stream is no ended stream";
  co_return OkStatus();
}
TEST(HttpClient, ReadsAStreamAsItArrives) { Serve(ReadStream); }

rt::Task<Status> ReadOne(HttpStream* stream, Result<std::string>* out) {
  *out = co_await stream->Read();
  co_return OkStatus();
}

rt::Task<Status> CancelStream(World* world) {
  CO_TRY(auto stream, co_await world->client->Open(Get("/stream")));
  CO_TRY_STATUS(co_await stream->Read());
  Result<std::string> read = std::string();
  rt::TaskScope scope(world->loop);
  scope.Spawn("read", ReadOne(stream.get(), &read));
  CO_TRY_STATUS(co_await scope.Close());
  EXPECT_EQ(read.status().reason(), Reason::kCancelled);
  world->go_on.Set();
  CO_TRY(const std::string later, co_await stream->Read());
  EXPECT_EQ(later, "second") << "a cancelled read took nothing";
  co_return OkStatus();
}
TEST(HttpClient, LosesNothingWhenAReadIsCancelled) { Serve(CancelStream); }

TEST(HttpClient, SaysWhatItCannotReach) {
  rt::AsioLoop loop;
  struct Case {
    std::string url;
    const char* says;
  };
  // Port 1 of the loopback has no listener; .invalid is never a name.
  const std::vector<Case> cases = {
      {"http://127.0.0.1:1", "connect to 127.0.0.1:1: Connection refused"},
      {"unix:///nonexistent/socket", "/nonexistent/socket: No such file"},
      {"http://berth.invalid:80", "connect to berth.invalid:80: "},
  };
  for (const Case& test : cases) {
    auto client = *HttpClient::New(loop, {.url = test.url});
    const auto response = rt::RunTask(loop, client->Send(Get("/")));
    EXPECT_EQ(response.status().reason(), Reason::kUnavailable);
    EXPECT_NE(response.status().message().find(test.says), std::string_view::npos)
        << response.status();
  }
  EXPECT_EQ(HttpClient::New(loop, {.url = "https://a"}).status().reason(), Reason::kBadRequest);
  EXPECT_EQ(HttpClient::New(loop, {.url = "a:b"}).status().reason(), Reason::kBadRequest);
}

// A server that says what the test wants, over and over.
rt::Task<Status> Recite(rt::AsioLoop* loop, Socket* listener, std::string text) {
  for (;;) {
    CO_TRY_STATUS(co_await listener->Readable());
    const int fd = ::accept(listener->fd(), nullptr, nullptr);
    if (fd < 0) continue;
    RawClient peer(std::make_unique<PlainStream>(*loop, fd));
    CO_TRY_STATUS(co_await peer.ReadUntil("\r\n\r\n"));
    CO_TRY_STATUS(co_await peer.Write(text));
    peer.stream().Shutdown();
  }
}

rt::Task<Status> Listen(rt::AsioLoop* loop, std::string text, Result<HttpClientResponse>* out) {
  CO_TRY(const int fd, ListenTcp("127.0.0.1", 0));
  const std::string address = LocalAddress(fd);
  Socket listener(*loop, fd);
  rt::TaskScope scope(*loop);
  scope.Spawn("recite", Recite(loop, &listener, std::move(text)));
  auto client = *HttpClient::New(*loop, {.url = "http://" + address});
  *out = co_await client->Send(Get("/"));
  co_return co_await scope.Close();
}

TEST(HttpClient, SurvivesOddServers) {
  struct Case {
    const char* name;
    std::string text;
    int status;  // 0: an error
    const char* says;
  };
  const std::vector<Case> cases = {
      {"body to the end", "HTTP/1.1 200 OK\r\n\r\nall of it", 200, "all of it"},
      {"continue first",
       "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok",
       201,
       "ok"},
      {"short body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", 0, "middle of the body"},
      {"no answer", "", 0, "ended before the answer"},
      {"garbage", "SSH-2.0-OpenSSH_9.2\r\n\r\n\r\n", 0, "answer: only HTTP/1.1"},
      {"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", 0, "HTTP/1.1"},
      {"an endless head", "HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'a'), 0, "65536"},
      {"a broken chunk",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
       0,
       "chunk"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    rt::AsioLoop loop;
    Result<HttpClientResponse> response = HttpClientResponse();
    EXPECT_EQ(rt::RunTask(loop, Listen(&loop, test.text, &response)), OkStatus());
    if (test.status == 0) {
      EXPECT_EQ(response.status().reason(), Reason::kUnavailable);
      EXPECT_NE(response.status().message().find(test.says), std::string_view::npos)
          << response.status();
    } else {
      ASSERT_TRUE(response.ok()) << response.status();
      EXPECT_EQ(response->status, test.status);
      EXPECT_EQ(response->body, test.says);
    }
  }
}

}  // namespace
}  // namespace berth::net
