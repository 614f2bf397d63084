// SPDX-License-Identifier: Apache-2.0
// Defends conversations with guests against a real TLS server on loopback: what is typed arrives,
// what is said is printed, an exit status is kept, a refusal is told in the server's words.
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cli/guests/forwarding.h"
#include "cli/guests/input.h"
#include "cli/guests/lasting_talk.h"
#include "cli/guests/terminal_talk.h"
#include "cli/https/signed_requests.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/testing/http_fixture.h"
#include "rt/scope.h"

namespace berth::cli {
namespace {

using net::WebSocket;

WebSocket::Message Binary(char channel, std::string_view data) {
  std::string bytes(1, channel);
  return {.kind = WebSocket::Kind::kBinary, .data = bytes.append(data)};
}

// A guest that says back what it hears, on both channels, and ends as the target says.
rt::Task<Status> Serve(WebSocket* socket, std::string end) {
  for (;;) {
    CO_TRY(WebSocket::Message message, co_await socket->Receive());
    if (message.data.front() == 4) continue;
    if (message.data.front() != 0) break;
    const std::string heard = message.data.substr(1);
    CO_TRY_STATUS(co_await socket->Send(Binary(1, heard)));
    CO_TRY_STATUS(co_await socket->Send(Binary(2, "e:" + heard)));
  }
  if (end == "cut") co_return OkStatus();
  CO_TRY_STATUS(co_await socket->Send(Binary(3, end)));
  co_return OkStatus();
}

rt::Task<net::HttpResponse> Answer(net::HttpRequest request) {
  net::HttpResponse response;
  std::string end = R"({"status":"Success"})";
  if (request.target.ends_with("/three")) {
    end = R"({"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"3"}]}})";
  }
  if (request.target.ends_with("/broken")) {
    end = R"({"status":"Failure","reason":"InternalError","message":"the guest is gone"})";
  }
  if (request.target.ends_with("/cut")) end = "cut";
  response.websocket = [end](WebSocket& socket) { return Serve(&socket, end); };
  co_return response;
}

// A machine whose guest ends, is off for a while, and starts again. The person leaves when it has
// said hello for the second time.
struct Restarting {
  int person = -1;  // where keys come from
  int calls = 0;
  int last_status = 0;  // not 0: the last answer, instead of a guest
  std::string typed;    // when its guest has said hello for the first time
};

rt::Task<Status> SayHello(WebSocket* socket, Restarting* machine, int call) {
  CO_TRY_STATUS(co_await socket->Send(Binary(1, "hello " + std::to_string(call) + ";")));
  if (call == 1) {
    const auto size = static_cast<ssize_t>(machine->typed.size());
    CHECK(::write(machine->person, machine->typed.data(), machine->typed.size()) == size);
    CO_TRY_STATUS(co_await socket->Send(Binary(3, R"({"status":"Success"})")));
    co_return OkStatus();
  }
  const char key = kEscape;
  CHECK(::write(machine->person, &key, 1) == 1);
  const auto left = co_await socket->Receive();
  co_return OkStatus();
}

rt::Task<Status> SayOff(WebSocket* socket) {
  co_return co_await socket->Send(
      Binary(3, R"({"status":"Failure","reason":"InternalError","message":"it is off"})"));
}

rt::Task<net::HttpResponse> AnswerRestarting(Restarting* machine, net::HttpRequest request) {
  (void)request;
  net::HttpResponse response;
  const int call = ++machine->calls;
  if (call == 2) {
    response.websocket = [](WebSocket& socket) { return SayOff(&socket); };
  } else if (call == 3 || (call > 3 && machine->last_status != 0)) {
    response.status = call == 3 ? 503 : machine->last_status;
  } else {
    response.websocket = [machine, call](WebSocket& socket) {
      return SayHello(&socket, machine, call);
    };
  }
  co_return response;
}

class Guests : public testing::Test {
 protected:
  struct Outcome {
    Result<int> code = 0;
    std::string out;
    std::string err;
  };

  // Talks to the server with this input.
  using Escape = TerminalTalk::Ends::Escape;
  Outcome Talk(const std::string& target,
               const std::string& typed,
               Escape escape = Escape::kPassed) {
    int pipe[2] = {};
    CHECK(::pipe(pipe) == 0);
    CHECK(::write(pipe[1], typed.data(), typed.size()) == static_cast<ssize_t>(typed.size()));
    ::close(pipe[1]);
    std::ostringstream out;
    std::ostringstream err;
    Outcome outcome;
    {
      auto input = Input::Of(pipe[0]);
      CHECK(input.ok());
      TerminalTalk::Ends ends{.out = out, .err = err, .input = input->get(), .escape = escape};
      outcome.code = rt::RunTask(loop_, RunTalk(this, target, ends));
    }
    ::close(pipe[0]);
    outcome.out = out.str();
    outcome.err = err.str();
    return outcome;
  }
  static rt::Task<Result<int>> RunTalk(Guests* guests,
                                       std::string target,
                                       TerminalTalk::Ends ends) {
    net::HttpServerOptions options;
    options.tls = guests->tls_.server();
    CO_TRY(const auto server, net::HttpServer::Start(guests->loop_, std::move(options), &Answer));
    Connection connection;
    connection.server = "https://" + server->address();
    connection.certificate_authority = guests->tls_.pki().ca_pem();
    CO_TRY(const auto client, NewHttpClient(guests->loop_, connection));
    net::HttpClientRequest request;
    request.target = target;
    Result<int> code = Internal("no socket");
    {
      auto socket = co_await client->OpenWebSocket(std::move(request));
      CHECK(socket.ok()) << socket.status();
      TerminalTalk talk(guests->loop_, **socket, ends);
      code = co_await talk.Run();
    }
    const Status stopped = co_await server->Stop();
    CHECK(stopped.ok());
    co_return code;
  }

  Outcome TalkLasting(Restarting machine,
                      LastingTalk::Begin begin,
                      Escape escape = Escape::kLeaves) {
    int pipe[2] = {};
    CHECK(::pipe(pipe) == 0);
    machine.person = pipe[1];
    std::ostringstream out;
    std::ostringstream err;
    Outcome outcome;
    {
      auto input = Input::Of(pipe[0]);
      CHECK(input.ok());
      TerminalTalk::Ends ends{.out = out, .err = err, .input = input->get(), .escape = escape};
      outcome.code = rt::RunTask(loop_, RunLasting(this, &machine, ends, begin));
    }
    ::close(pipe[0]);
    ::close(pipe[1]);
    outcome.out = out.str();
    outcome.err = err.str();
    return outcome;
  }
  static rt::Task<Result<int>> RunLasting(Guests* guests,
                                          Restarting* machine,
                                          TerminalTalk::Ends ends,
                                          LastingTalk::Begin begin) {
    net::HttpServerOptions options;
    options.tls = guests->tls_.server();
    const auto answer = [machine](net::HttpRequest request) {
      return AnswerRestarting(machine, std::move(request));
    };
    CO_TRY(const auto server, net::HttpServer::Start(guests->loop_, std::move(options), answer));
    Connection connection;
    connection.server = "https://" + server->address();
    connection.certificate_authority = guests->tls_.pki().ca_pem();
    CO_TRY(const auto client, NewHttpClient(guests->loop_, connection));
    const LastingTalk::Open open = [&client] {
      net::HttpClientRequest request;
      request.target = "/console";
      return client->OpenWebSocket(std::move(request));
    };
    LastingTalk talk(guests->loop_, open, ends, begin);
    const Result<int> code = co_await talk.Run();
    const Status stopped = co_await server->Stop();
    CHECK(stopped.ok());
    co_return code;
  }

  rt::AsioLoop loop_{"test"};
  net::TestTls tls_;
};

TEST_F(Guests, WhatIsTypedArrivesAndWhatIsSaidIsPrinted) {
  const Outcome ended = Talk("/zero", "hello");
  ASSERT_TRUE(ended.code.ok()) << ended.code.status();
  EXPECT_EQ(*ended.code, 0);
  EXPECT_EQ(ended.out, "hello");
  EXPECT_EQ(ended.err, "e:hello");
}

TEST_F(Guests, AnExitStatusIsTheConversations) {
  const Outcome ended = Talk("/three", "x");
  ASSERT_TRUE(ended.code.ok()) << ended.code.status();
  EXPECT_EQ(*ended.code, 3);
}

TEST_F(Guests, WhoLeavesWithItsKeyHasLeftWell) {
  const Outcome left = Talk("/broken", "\x1d", Escape::kLeaves);
  ASSERT_TRUE(left.code.ok()) << left.code.status();
  EXPECT_EQ(*left.code, 0);
}

TEST_F(Guests, TheKeyLeavesAmidWhatIsTypedQuicklyToo) {
  const Outcome left = Talk("/broken", "typed\x1d!", Escape::kLeaves);
  ASSERT_TRUE(left.code.ok()) << left.code.status();
  EXPECT_EQ(*left.code, 0);
  EXPECT_FALSE(left.out.contains('!')) << "what is behind the key is not for the guest";
}

TEST_F(Guests, WhatAPipeBringsMayHaveTheKeyInItAndAloneItLeaves) {
  const std::string data("\x1f\x8b\x1d\0image\x1d", 10);
  const Outcome ended = Talk("/zero", data, Escape::kLeavesAlone);
  ASSERT_TRUE(ended.code.ok()) << ended.code.status();
  EXPECT_EQ(ended.out, data);
  const Outcome left = Talk("/broken", "\x1d", Escape::kLeavesAlone);
  ASSERT_TRUE(left.code.ok()) << left.code.status();
  EXPECT_EQ(*left.code, 0);
}

TEST_F(Guests, AGuestThatBreaksSaysWhyAndASilentEndIsAnError) {
  EXPECT_EQ(Talk("/broken", "x").code.status().message(), "the guest is gone");
  EXPECT_EQ(Talk("/cut", "x").code.status().reason(), Reason::kUnavailable);
}

TEST_F(Guests, AConsoleIsThereAgainWhenItsGuestIs) {
  const Outcome left = TalkLasting({}, LastingTalk::Begin::kAtOnce);
  ASSERT_TRUE(left.code.ok()) << left.code.status();
  EXPECT_EQ(*left.code, 0);
  EXPECT_EQ(left.out, "hello 1;hello 4;");
  EXPECT_EQ(left.err,
            "\r\n[the guest has ended: waiting for it; Ctrl-] leaves]\r\n[it is there again]\r\n");
}

TEST_F(Guests, AConsoleThatIsWaitedForIsLeftByTheKeyAloneIfAPipeBringsIt) {
  const std::string typed = "dd\x1d\n";
  const Outcome waits =
      TalkLasting({.typed = typed}, LastingTalk::Begin::kAtOnce, Escape::kLeavesAlone);
  ASSERT_TRUE(waits.code.ok()) << waits.code.status();
  EXPECT_EQ(waits.out, "hello 1;hello 4;");
  EXPECT_NE(waits.err.find("waiting for it; Ctrl-] alone leaves]"), std::string::npos) << waits.err;
  const Outcome left = TalkLasting({.typed = typed}, LastingTalk::Begin::kAtOnce);
  ASSERT_TRUE(left.code.ok()) << left.code.status();
  EXPECT_FALSE(left.out.contains("hello 4;")) << "on a terminal any key of them is the key";
}

TEST_F(Guests, AConsoleOfAMachineThatIsGoneEnds) {
  const Outcome ended = TalkLasting({.last_status = 404}, LastingTalk::Begin::kAtOnce);
  EXPECT_EQ(ended.code.status().reason(), Reason::kNotFound);
  EXPECT_EQ(ended.out, "hello 1;");
}

TEST_F(Guests, AConsoleThatIsNotThereAtFirstIsWaitedForIfAsked) {
  const Outcome refused = TalkLasting({.calls = 1}, LastingTalk::Begin::kAtOnce);
  EXPECT_EQ(refused.code.status().message(), "it is off");
  const Outcome waited = TalkLasting({.calls = 1}, LastingTalk::Begin::kWaits);
  ASSERT_TRUE(waited.code.ok()) << waited.code.status();
  EXPECT_EQ(waited.out, "hello 4;");
  EXPECT_EQ(waited.err,
            "\r\n[it is off: waiting for it; Ctrl-] leaves]\r\n[it is there again]\r\n");
}

TEST(Forwarding, PortsAreReadAsOtherToolsReadThem) {
  struct Case {
    std::string text;
    int local;
    int remote;
  };
  for (const Case& c :
       {Case{"80", 80, 80}, Case{"8080:80", 8080, 80}, Case{":80", 0, 80}, Case{"0:80", 0, 80}}) {
    const auto port = ParseForwardedPort(c.text);
    ASSERT_TRUE(port.ok()) << c.text;
    EXPECT_EQ(port->local, c.local) << c.text;
    EXPECT_EQ(port->remote, c.remote) << c.text;
  }
  for (const std::string bad : {"", ":", "x", "80:", "80:0", "65536", "1:2:3", "-1"}) {
    EXPECT_EQ(ParseForwardedPort(bad).status().reason(), Reason::kBadRequest) << bad;
  }
}

}  // namespace
}  // namespace berth::cli
