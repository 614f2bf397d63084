// SPDX-License-Identifier: Apache-2.0
// Defends what goes over the wire and what comes back, against a real TLS server on loopback: who
// we say we are, whom we believe, errors with their next step, and streams as they come.
#include "cli/https/https_transport.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "cli/failure.h"
#include "net/http_server.h"
#include "net/testing/http_fixture.h"
#include "rt/asio/loop_thread.h"
#include "rt/sleep.h"

namespace berth::cli {
namespace {

net::HttpResponse TextAnswer(int status, std::string text) {
  net::HttpResponse answer;
  answer.status = status;
  answer.body.emplace_back(std::move(text));
  return answer;
}

// The request as text, so that tests see what arrived without sharing memory with the server.
std::string Echo(const net::HttpRequest& request) {
  std::string text = request.method + " " + request.target + "\n";
  for (const net::Header& header : request.headers.all()) {
    text += header.name + ": " + header.value + "\n";
  }
  text += request.peer.certificate_der.empty() ? "no certificate\n" : "a certificate\n";
  return text + "\n" + request.body;
}

rt::Task<Status> WriteLines(net::BodyWriter* writer, std::string name, int lines) {
  for (int i = 0; i < lines; ++i) {
    std::vector<Bytes> parts;
    parts.emplace_back(name + std::to_string(i) + "\n");
    CO_TRY_STATUS(co_await writer->Write(std::move(parts)));
  }
  co_return OkStatus();
}

rt::Task<Status> WriteOneAndStay(net::BodyWriter* writer) {
  CO_TRY_STATUS(co_await WriteLines(writer, "once", 1));
  co_return co_await rt::Sleep(Duration::Hours(1));
}

rt::Task<net::HttpResponse> Answer(net::HttpRequest request) {
  const std::string& target = request.target;
  if (target.ends_with("/never")) {
    const Status ended = co_await rt::Sleep(Duration::Hours(1));
    co_return TextAnswer(500, std::string(ended.message()));
  }
  if (target.ends_with("/missing")) {
    co_return TextAnswer(404, R"({"kind":"Status","reason":"NotFound","message":"no such thing"})");
  }
  net::HttpResponse answer;
  if (target.ends_with("/silent")) {
    answer.stream = [](net::BodyWriter& writer) { return WriteOneAndStay(&writer); };
    co_return answer;
  }
  if (target.contains("/lines/")) {
    const std::string name = target.substr(target.rfind('/') + 1);
    answer.stream = [name](net::BodyWriter& writer) { return WriteLines(&writer, name, 3); };
    co_return answer;
  }
  co_return TextAnswer(200, Echo(request));
}

rt::Task<Result<std::unique_ptr<net::HttpServer>>> StartServer(
    rt::AsioLoop* loop, std::shared_ptr<const net::TlsContext> tls) {
  net::HttpServerOptions options;
  options.tls = std::move(tls);
  co_return net::HttpServer::Start(*loop, std::move(options), &Answer);
}

class HttpsTransportTest : public testing::Test {
 protected:
  HttpsTransportTest() {
    auto started = thread_.Await(StartServer(&thread_.loop(), tls_.server()));
    CHECK(started.ok()) << started.status();
    server_ = *std::move(started);
    connection_.server = "https://" + server_->address();
    connection_.certificate_authority = tls_.pki().ca_pem();
  }
  ~HttpsTransportTest() override {
    const Status stopped = thread_.Await(server_->Stop());
    CHECK(stopped.ok()) << stopped;
    const Status gone = thread_.Await(Destroy(&server_));
    CHECK(gone.ok()) << gone;
  }

  static rt::Task<Status> Destroy(std::unique_ptr<net::HttpServer>* server) {
    server->reset();
    co_return OkStatus();
  }
  std::unique_ptr<Transport> Connect() const {
    auto transport = ConnectHttps(connection_);
    CHECK(transport.ok()) << transport.status();
    return *std::move(transport);
  }
  std::string Arrived(Request request) const {
    const auto answer = Connect()->Send(std::move(request));
    CHECK(answer.ok()) << answer.status();
    EXPECT_EQ(answer->status, 200);
    return answer->body;
  }
  Status FailureOfGet(const std::string& path) const {
    return Connect()->Send({.path = path}).status();
  }

  rt::LoopThread thread_{"server"};
  net::TestTls tls_;
  std::unique_ptr<net::HttpServer> server_;
  Connection connection_;
};

TEST_F(HttpsTransportTest, CarriesTheRequestAsItIs) {
  Request request{.method = "POST",
                  .path = "/api/v1/namespaces",
                  .query = {{"labelSelector", "app=web,tier in (a)"}},
                  .body = "{}"};
  request.headers.Set("Content-Type", "application/json");
  const std::string text = Arrived(std::move(request));
  EXPECT_TRUE(text.starts_with("POST /api/v1/namespaces?labelSelector=app%3Dweb")) << text;
  EXPECT_TRUE(text.contains("Content-Type: application/json\n")) << text;
  EXPECT_TRUE(text.contains("User-Agent: berth/")) << text;
  EXPECT_TRUE(text.ends_with("\n\n{}")) << text;
}

TEST_F(HttpsTransportTest, AddsThePathOfTheServersUrl) {
  connection_.server += "/clusters/one/";
  EXPECT_TRUE(Arrived({.path = "/version"}).starts_with("GET /clusters/one/version\n"));
}

TEST_F(HttpsTransportTest, SaysNothingAboutWhoWeAreUnlessItIsTold) {
  const std::string text = Arrived({.path = "/version"});
  EXPECT_FALSE(text.contains("Authorization")) << text;
  EXPECT_FALSE(text.contains("Impersonate")) << text;
  EXPECT_TRUE(text.contains("\nno certificate\n")) << text;
}

TEST_F(HttpsTransportTest, ShowsTokenAndCertificate) {
  connection_.token = "s3cret";
  const net::TestIdentity identity = tls_.pki().IssueClient("ann");
  connection_.client_certificate = identity.certificate_pem;
  connection_.client_key = identity.key_pem;
  const std::string text = Arrived({.path = "/version"});
  EXPECT_TRUE(text.contains("Authorization: Bearer s3cret\n")) << text;
  EXPECT_TRUE(text.contains("\na certificate\n")) << text;
}

TEST_F(HttpsTransportTest, ImpersonatesInEveryRequest) {
  connection_.impersonate_user = "ann";
  connection_.impersonate_groups = {"dev", "ops, night"};
  const auto transport = Connect();
  for (int i = 0; i < 2; ++i) {
    const auto answer = transport->Send({.path = "/version"});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_TRUE(answer->body.contains("Impersonate-User: ann\n")) << answer->body;
    EXPECT_TRUE(answer->body.contains("Impersonate-Group: dev\n")) << answer->body;
    EXPECT_TRUE(answer->body.contains("Impersonate-Group: ops, night\n")) << answer->body;
  }
}

TEST_F(HttpsTransportTest, WhateverTheServerAnswersIsAnAnswer) {
  const auto answer = Connect()->Send({.path = "/missing"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 404);
  EXPECT_TRUE(answer->body.contains("no such thing"));
}

TEST_F(HttpsTransportTest, BelievesOnlyServersOfItsAuthority) {
  connection_.certificate_authority = net::TestPki("another CA").ca_pem();
  connection_.token = "s3cret";
  const Status status = FailureOfGet("/version");
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(status.message().contains("certificate")) << status;
}

TEST_F(HttpsTransportTest, BelievesAServerUnderTheNameThatItIsToldToExpect) {
  connection_.tls_server_name = "localhost";
  EXPECT_TRUE(FailureOfGet("/version").ok());
  connection_.tls_server_name = "elsewhere.example.org";
  EXPECT_FALSE(FailureOfGet("/version").ok());
}

TEST_F(HttpsTransportTest, AServerThatIsNotThereIsUnreachable) {
  // The port of a listener that is gone.
  auto other = thread_.Await(StartServer(&thread_.loop(), tls_.server()));
  ASSERT_TRUE(other.ok()) << other.status();
  connection_.server = "https://" + (*other)->address();
  EXPECT_TRUE(thread_.Await((*other)->Stop()).ok());
  EXPECT_TRUE(thread_.Await(Destroy(&*other)).ok());
  EXPECT_EQ(ExitCodeOf(FailureOfGet("/version")), ExitCode::kUnreachable);
}

TEST_F(HttpsTransportTest, ASlowAnswerEndsWithTheNextStep) {
  connection_.request_timeout = Duration::Millis(50);
  const Status status = FailureOfGet("/never");
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUnreachable) << status;
  EXPECT_TRUE(FailureOf(status).next_step.contains("--request-timeout")) << status;
}

TEST_F(HttpsTransportTest, CredentialsThatCannotBeUsedAreToldBeforeAnythingIsSent) {
  connection_.client_certificate = "no certificate";
  connection_.client_key = "no key";
  const Status status = ConnectHttps(connection_).status();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(FailureOf(status).next_step.contains("berth config view")) << status;
}

TEST_F(HttpsTransportTest, StreamsComeAsTheyAreWrittenUntilAllHaveEnded) {
  const auto transport = Connect();
  auto streams = transport->Open({{.path = "/lines/a"}, {.path = "/lines/b"}});
  ASSERT_TRUE(streams.ok()) << streams.status();
  std::vector<std::string> texts(2);
  for (int ended = 0; ended < 2;) {
    auto chunk = (*streams)->Next(Duration::Seconds(20));
    ASSERT_TRUE(chunk.ok()) << chunk.status();
    ended += chunk->bytes.empty() ? 1 : 0;
    texts.at(chunk->stream) += chunk->bytes;
  }
  EXPECT_EQ(texts[0], "a0\na1\na2\n");
  EXPECT_EQ(texts[1], "b0\nb1\nb2\n");
}

TEST_F(HttpsTransportTest, ASilentStreamIsATimeoutAndStaysOpen) {
  const auto transport = Connect();
  auto streams = transport->Open({{.path = "/silent"}});
  ASSERT_TRUE(streams.ok()) << streams.status();
  const auto first = (*streams)->Next(Duration::Seconds(20));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->bytes, "once0\n");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE((*streams)->Next(Duration::Millis(10)).status().Is(Reason::kTimeout));
  }
}

TEST_F(HttpsTransportTest, ARefusedStreamIsTheErrorThatTheServerWrote) {
  const auto transport = Connect();
  const auto streams = transport->Open({{.path = "/lines/a"}, {.path = "/missing"}});
  EXPECT_EQ(ExitCodeOf(streams.status()), ExitCode::kNotFound) << streams.status();
  EXPECT_TRUE(streams.status().message().contains("no such thing")) << streams.status();
}

}  // namespace
}  // namespace berth::cli
