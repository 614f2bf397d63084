// SPDX-License-Identifier: Apache-2.0
// The server over plain TCP, seen byte by byte: framing, limits, timeouts, what it refuses, and
// what happens when a peer goes away.
#include "net/http_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <string>

#include "net/testing/http_fixture.h"
#include "rt/event.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

// What the handlers under test know.
struct World {
  rt::AsioLoop loop;
  std::unique_ptr<HttpServer> server;
  int handled = 0;
  rt::Event reached;
  Status handler_ended;
  Status write_ended;
};

Bytes Text(std::string_view text) { return Bytes(text); }

rt::Task<Status> StreamThree(BodyWriter* writer) {
  for (const std::string_view part : {"one ", "two ", "three"}) {
    std::vector<Bytes> parts = {Text(part.substr(0, 1)), Text(part.substr(1))};
    CO_TRY_STATUS(co_await writer->Write(std::move(parts)));
  }
  co_return OkStatus();
}

rt::Task<Status> StreamForever(World* world, BodyWriter* writer) {
  std::vector<Bytes> first = {Text("first")};
  CO_TRY_STATUS(co_await writer->Write(std::move(first)));
  world->reached.Set();
  world->handler_ended = co_await rt::Sleep(Duration::Hours(1));
  co_return world->handler_ended;
}

rt::Task<Status> StreamFlood(World* world, BodyWriter* writer) {
  const Bytes block = Text(std::string(64 * 1024, 'x'));
  for (;;) {
    std::vector<Bytes> parts = {block};
    world->write_ended = co_await writer->Write(std::move(parts));
    if (!world->write_ended.ok()) break;
  }
  world->reached.Set();
  co_return world->write_ended;
}

rt::Task<HttpResponse> Handle(World* world, HttpRequest request) {
  ++world->handled;
  HttpResponse response;
  response.headers.Set("Content-Type", "text/plain");
  if (request.target == "/wait") {
    world->reached.Set();
    world->handler_ended = co_await rt::Sleep(Duration::Hours(1));
  } else if (request.target == "/slow") {
    world->reached.Set();
    world->handler_ended = co_await rt::Sleep(Duration::Millis(20));
  } else if (request.target == "/stream") {
    response.stream = [](BodyWriter& writer) { return StreamThree(&writer); };
  } else if (request.target == "/forever") {
    response.stream = [world](BodyWriter& writer) { return StreamForever(world, &writer); };
  } else if (request.target == "/flood") {
    response.stream = [world](BodyWriter& writer) { return StreamFlood(world, &writer); };
  } else if (request.target == "/none") {
    response.status = 204;
  } else if (request.target == "/split") {
    response.headers.Set("X-Evil", "a\r\nX-Injected: 1");
  }
  response.body = {Text(request.method + " " + request.target + " "), Text(request.body)};
  co_return response;
}

using Script = std::function<rt::Task<Status>(World*)>;

rt::Task<Status> RunScript(World* world, HttpServerOptions options, Script script) {
  Result<std::unique_ptr<HttpServer>> server = HttpServer::Start(
      world->loop, options, [world](HttpRequest r) { return Handle(world, std::move(r)); });
  EXPECT_TRUE(server.ok()) << server.status();
  world->server = *std::move(server);
  const Status status = co_await script(world);
  CO_TRY_STATUS(co_await world->server->Stop());
  co_return status;
}

void Serve(Script script, HttpServerOptions options = {}) {
  World world;
  options.drain_timeout = Duration::Millis(200);
  EXPECT_EQ(rt::RunTask(world.loop, RunScript(&world, options, std::move(script))), OkStatus());
}

// Sends bytes on a fresh connection, closes our side, and gives everything that came back.
rt::Task<Result<std::string>> Exchange(World* world, std::string bytes) {
  CO_TRY(auto client, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await client->Write(std::move(bytes)));
  co_return co_await client->ReadAll();
}

struct RefusedCase {
  const char* name;
  std::string request;
  int status;
  const char* says;
};

rt::Task<Status> CheckRefused(World* world, const RefusedCase* test) {
  Result<std::string> answer = co_await Exchange(world, test->request);
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (!answer.ok()) co_return answer.status();
  EXPECT_TRUE(answer->starts_with("HTTP/1.1 " + std::to_string(test->status))) << *answer;
  EXPECT_NE(answer->find("Connection: close"), std::string::npos) << *answer;
  EXPECT_NE(answer->find(test->says), std::string::npos) << *answer;
  EXPECT_EQ(world->handled, 0);
  co_return OkStatus();
}

TEST(HttpServer, RefusesWhatSmugglersSend) {
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  const std::string many = [] {
    std::string text = "GET / HTTP/1.1\r\nHost: a\r\n";
    for (size_t i = 0; i <= kHeaderFieldsMax; ++i) text += "X: y\r\n";
    return text + "\r\n";
  }();
  const std::vector<RefusedCase> cases = {
      {"both length and chunked",
       post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400,
       "malformed"},
      {"chunked and length",
       post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
       400,
       "malformed"},
      {"two lengths", post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400, "malformed"},
      {"two equal lengths",
       post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
       400,
       "more than one Content-Length"},
      {"a list of equal lengths", post + "Content-Length: 3, 3\r\n\r\nabc", 400, "no number"},
      {"two encodings",
       post + "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400,
       "more than one Transfer-Encoding"},
      {"a first line of something else", "EHLO example.org\r\n", 400, "none of HTTP"},
      {"a list of lengths", post + "Content-Length: 3, 4\r\n\r\nabc", 400, "malformed"},
      {"a negative length", post + "Content-Length: -3\r\n\r\nabc", 400, "malformed"},
      {"a length with a plus", post + "Content-Length: +3\r\n\r\nabc", 400, "malformed"},
      {"two encodings",
       post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400,
       "malformed"},
      {"an unknown encoding",
       post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
       501,
       "not chunked"},
      {"gzip, chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, "chunked"},
      {"chunked in 1.0",
       "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400,
       "HTTP/1.0"},
      {"bare CR", "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400, "CR without LF"},
      {"bare LF", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400, "without CR"},
      {"folded line", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400, "folded"},
      {"NUL", std::string("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 35), 400, "control"},
      {"space before colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400, "malformed"},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400, "Host"},
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "Host"},
      {"no target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n", 400, ""},
      {"no path", "GET evil HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target"},
      {"HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, "HTTP/1.1"},
      {"no HTTP at all", "\x16\x03\x01\x02\x03\r\n\r\n", 400, "control"},
      {"too many fields", many, 431, "256"},
      {"an endless head", "GET /" + std::string(70'000, 'a'), 431, "65536"},
      {"a big head",
       "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(70'000, 'a') + "\r\n\r\n",
       431,
       "65536"},
      {"a body too big by its length", post + "Content-Length: 3145729\r\n\r\n", 413, "3145728"},
      {"a broken chunk", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "chunk"},
      {"a chunk too big", post + "Transfer-Encoding: chunked\r\n\r\n300001\r\n", 413, "3145728"},
      {"an endless chunk size",
       post + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(70'000, 'a'),
       400,
       "no end"},
      {"another expectation", post + "Content-Length: 3\r\nExpect: tea\r\n\r\n", 417, "tea"},
  };
  for (const RefusedCase& test : cases) {
    SCOPED_TRACE(test.name);
    Serve([&test](World* world) { return CheckRefused(world, &test); });
  }
}

struct AnswerCase {
  const char* name;
  std::string request;
  std::vector<std::string> contains;
};

rt::Task<Status> CheckAnswer(World* world, const AnswerCase* test) {
  Result<std::string> answer = co_await Exchange(world, test->request);
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (!answer.ok()) co_return answer.status();
  for (const std::string& part : test->contains) {
    EXPECT_NE(answer->find(part), std::string::npos) << "want " << part << " in " << *answer;
  }
  co_return OkStatus();
}

TEST(HttpServer, AnswersWhatItShould) {
  const std::string close = "Connection: close\r\n";
  const std::vector<AnswerCase> cases = {
      {"a get",
       "GET /a?b=c HTTP/1.1\r\nHost: a\r\n" + close + "\r\n",
       {"HTTP/1.1 200 OK\r\n", "Content-Length: 11\r\n", "Date: ", "\r\n\r\nGET /a?b=c "}},
      {"a post with a length",
       "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" + close + "\r\nhello",
       {"Content-Length: 13\r\n", "POST /p hello"}},
      {"a chunked post with extensions and trailers",
       "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" + close +
           "\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\nX-Trailer: 1\r\n\r\n",
       {"POST /p hello"}},
      {"an absolute target",
       "GET http://a/b?c HTTP/1.1\r\nHost: a\r\n" + close + "\r\n",
       {"GET /b?c "}},
      {"a head has a length and no body",
       "HEAD /h HTTP/1.1\r\nHost: a\r\n" + close + "\r\n",
       {"Content-Length: 8\r\n", "\r\n\r\n"}},
      {"204 has no length",
       "GET /none HTTP/1.1\r\nHost: a\r\n" + close + "\r\n",
       {"HTTP/1.1 204 No Content\r\n", "text/plain\r\nDate"}},
      {"a stream is chunked",
       "GET /stream HTTP/1.1\r\nHost: a\r\n" + close + "\r\n",
       {"Transfer-Encoding: chunked\r\n",
        "\r\n\r\n4\r\none \r\n4\r\ntwo \r\n5\r\nthree\r\n0\r\n\r\n"}},
      {"a stream to HTTP/1.0 ends with the connection",
       "GET /stream HTTP/1.0\r\n\r\n",
       {"Connection: close\r\n", "\r\n\r\none two three"}},
      {"expected continue",
       "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n" + close +
           "\r\nhi",
       {"POST / hi"}},
      {"a value cannot start a line",
       "GET /split HTTP/1.1\r\nHost: a\r\n" + close + "\r\n",
       {"X-Evil: a  X-Injected: 1\r\n"}},
      {"two requests at once are answered in order",
       "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n" + close + "\r\n",
       {"GET /1 HTTP/1.1 200 OK", "GET /2 "}},
  };
  for (const AnswerCase& test : cases) {
    SCOPED_TRACE(test.name);
    Serve([&test](World* world) { return CheckAnswer(world, &test); });
  }
}

rt::Task<Status> SendContinue(World* world) {
  CO_TRY(auto client, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await client->Write(
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
  CO_TRY(const std::string interim, co_await client->ReadUntil("\r\n\r\n"));
  EXPECT_EQ(interim, "HTTP/1.1 100 Continue\r\n\r\n");
  CO_TRY_STATUS(co_await client->Write("hi"));
  CO_TRY(const std::string answer, co_await client->ReadUntil("POST / hi"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  co_return OkStatus();
}
TEST(HttpServer, AsksForABodyThatWaits) { Serve(SendContinue); }

rt::Task<Status> SendBytewise(World* world) {
  CO_TRY(auto client, co_await RawClient::Connect(&world->loop, world->server->port()));
  const std::string request =
      "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
  for (const char c : request) {
    CO_TRY_STATUS(co_await client->Write(std::string(1, c)));
    CO_TRY_STATUS(co_await rt::Yield());
    CO_TRY_STATUS(co_await rt::Yield());
  }
  CO_TRY(const std::string answer, co_await client->ReadUntil("abc0123456789abcdef"));
  co_return OkStatus();
}
TEST(HttpServer, ReadsARequestThatComesByteByByte) { Serve(SendBytewise); }

rt::Task<Status> SendSlowHead(World* world) {
  CO_TRY(auto client, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await client->Write("GET / HTTP/1.1\r\nHo"));
  CO_TRY(const std::string answer, co_await client->ReadAll());
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 ")) << answer;
  co_return OkStatus();
}
TEST(HttpServer, CutsASlowSenderOfAHead) {
  Serve(SendSlowHead, {.header_timeout = Duration::Millis(30)});
}

rt::Task<Status> SendSlowBody(World* world) {
  CO_TRY(auto client, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(
      co_await client->Write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"));
  CO_TRY(const std::string answer, co_await client->ReadAll());
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 ")) << answer;
  co_return OkStatus();
}
TEST(HttpServer, CutsASlowSenderOfABody) {
  Serve(SendSlowBody, {.body_timeout = Duration::Millis(30)});
}

// Others may send meanwhile; the limit is that of one body and a half.
constexpr size_t kCrowdBytes = 90'000;
rt::Task<Status> SendTwoLargeBodies(World* world) {
  const std::string head = fmt::format(
      "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", kCrowdBytes);
  const std::string body(kCrowdBytes, 'x');
  CO_TRY(auto slow, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await slow->Write(head + body.substr(1)));
  CO_TRY(auto chunked, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await chunked->Write(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n" + body));
  // The newest makes the oldest go, whichever way they come.
  CO_TRY(const std::string refused, co_await slow->ReadAll());
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 503 ")) << refused;
  EXPECT_NE(refused.find("Retry-After: 1"), std::string::npos) << refused;
  CO_TRY(auto newest, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await newest->Write(head + body));
  CO_TRY(const std::string answer, co_await newest->ReadAll());
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer.substr(0, 200);
  CO_TRY(const std::string other, co_await chunked->ReadAll());
  EXPECT_TRUE(other.starts_with("HTTP/1.1 503 ")) << other.substr(0, 200);
  co_return OkStatus();
}
TEST(HttpServer, GivesUpTheSlowestOfTooManyBodies) {
  Serve(SendTwoLargeBodies, {.body_bytes_max = 100'000});
}

rt::Task<Status> StayIdle(World* world) {
  CO_TRY(auto client, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY(const std::string nothing, co_await client->ReadAll());
  EXPECT_EQ(nothing, "");
  co_return OkStatus();
}
TEST(HttpServer, ClosesAnIdleConnectionWithoutAWord) {
  Serve(StayIdle, {.idle_timeout = Duration::Millis(30)});
}

rt::Task<Status> ReadNothing(World* world) {
  CO_TRY(auto client, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await client->Write("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n"));
  CO_TRY_STATUS(co_await world->reached.Wait());
  EXPECT_EQ(world->write_ended.reason(), Reason::kTimeout);
  co_return OkStatus();
}
TEST(HttpServer, CutsASlowReader) { Serve(ReadNothing, {.write_timeout = Duration::Millis(50)}); }

rt::Task<Status> GoAway(World* world, std::string target) {
  CO_TRY(auto client, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await client->Write("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n"));
  CO_TRY_STATUS(co_await world->reached.Wait());
  client.reset();
  while (world->server->connections() > 0) CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(1)));
  EXPECT_EQ(world->handler_ended.reason(), Reason::kCancelled);
  co_return OkStatus();
}
TEST(HttpServer, CancelsTheHandlerWhenItsClientIsGone) {
  Serve([](World* world) { return GoAway(world, "/wait"); });
}
TEST(HttpServer, CancelsAnIdleStreamWhenItsClientIsGone) {
  Serve([](World* world) { return GoAway(world, "/forever"); });
}

rt::Task<Status> TooMany(World* world) {
  CO_TRY(auto idle, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY(auto stream, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await stream->Write("GET /forever HTTP/1.1\r\nHost: a\r\n\r\n"));
  CO_TRY(const std::string answer, co_await stream->ReadUntil("first"));
  // Whoever does nothing gives way to the third one, which is served.
  CO_TRY(auto third, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await third->Write("GET /forever HTTP/1.1\r\nHost: a\r\n\r\n"));
  CO_TRY(const std::string again, co_await third->ReadUntil("first"));
  const Result<std::string> nothing = co_await idle->ReadAll();
  EXPECT_EQ(nothing.ok() ? *nothing : "", "");
  // Now nobody is idle.
  while (world->server->connections() > 2) CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(1)));
  CO_TRY(auto fourth, co_await RawClient::Connect(&world->loop, world->server->port()));
  const Result<std::string> refused = co_await fourth->ReadAll();
  EXPECT_EQ(refused.ok() ? *refused : "", "");
  co_return OkStatus();
}
TEST(HttpServer, TakesNoMoreConnectionsThanAllowed) { Serve(TooMany, {.connections_max = 2}); }

rt::Task<Status> TooManyOfOneAddress(World* world) {
  CO_TRY(auto first, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await first->Write("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"));
  CO_TRY(const std::string answer, co_await first->ReadUntil("GET /1 "));
  CO_TRY(auto second, co_await RawClient::Connect(&world->loop, world->server->port()));
  const Result<std::string> nothing = co_await second->ReadAll();
  EXPECT_EQ(nothing.ok() ? *nothing : "", "");
  first.reset();
  while (world->server->connections() > 0) CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(1)));
  CO_TRY(auto third, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await third->Write("GET /3 HTTP/1.1\r\nHost: a\r\n\r\n"));
  CO_TRY(const std::string again, co_await third->ReadUntil("GET /3 "));
  co_return OkStatus();
}
TEST(HttpServer, TakesNoMoreConnectionsOfOneAddressThanAllowed) {
  Serve(TooManyOfOneAddress, {.connections_per_address_max = 1});
}

rt::Task<Status> StopServer(World* world) { co_return co_await world->server->Stop(); }

rt::Task<Status> Drain(World* world) {
  CO_TRY(auto idle, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY(auto slow, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY(auto watch, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await watch->Write("GET /forever HTTP/1.1\r\nHost: a\r\n\r\n"));
  CO_TRY(const std::string first, co_await watch->ReadUntil("first\r\n"));
  world->reached.Reset();
  CO_TRY_STATUS(co_await slow->Write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"));
  CO_TRY_STATUS(co_await world->reached.Wait());
  rt::TaskScope stopping(world->loop);
  stopping.Spawn("stop", StopServer(world));
  CO_TRY(const std::string nothing, co_await idle->ReadAll());
  EXPECT_EQ(nothing, "");
  CO_TRY(const std::string answer, co_await slow->ReadAll());
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
  const Result<std::string> cut = co_await watch->ReadAll();
  EXPECT_TRUE(!cut.ok() || !cut->ends_with("0\r\n\r\n")) << "a cut stream must look cut";
  CO_TRY_STATUS(co_await stopping.Join());
  const auto refused = co_await RawClient::Connect(&world->loop, world->server->port());
  EXPECT_FALSE(refused.ok());
  co_return OkStatus();
}
TEST(HttpServer, FinishesRequestsAndCutsStreamsWhenItStops) { Serve(Drain); }

rt::Task<Status> StopAroundAHangingHandler(World* world) {
  CO_TRY(auto client, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await client->Write("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"));
  CO_TRY_STATUS(co_await world->reached.Wait());
  CO_TRY_STATUS(co_await world->server->Stop());
  EXPECT_EQ(world->handler_ended.reason(), Reason::kCancelled);
  co_return OkStatus();
}
TEST(HttpServer, CancelsHandlersThatOutlastTheDrain) { Serve(StopAroundAHangingHandler); }

rt::Task<Status> Nothing(World*) { co_return OkStatus(); }
TEST(HttpServer, SaysWhyItCannotListen) {
  Serve(Nothing);
  rt::AsioLoop loop;
  const auto bad = HttpServer::Start(loop, {.address = "localhost"}, nullptr);
  EXPECT_EQ(bad.status().reason(), Reason::kBadRequest);
  const auto foreign = HttpServer::Start(loop, {.address = "192.0.2.1", .port = 1}, nullptr);
  EXPECT_EQ(foreign.status().reason(), Reason::kUnavailable);
  EXPECT_NE(foreign.status().message().find("192.0.2.1:1"), std::string::npos);
}

}  // namespace
}  // namespace berth::net
