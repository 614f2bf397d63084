// SPDX-License-Identifier: Apache-2.0
// TLS between our own ends: who is trusted, who is refused, and how clearly that is said.
#include "net/tls.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <string>

#include "net/http_client.h"
#include "net/http_server.h"
#include "net/testing/http_fixture.h"
#include "net/tls_stream.h"
#include "rt/join_all.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

struct World {
  rt::AsioLoop loop;
  TestTls tls;
  std::unique_ptr<HttpServer> server;
};

rt::Task<HttpResponse> Handle(HttpRequest request) {
  HttpResponse response;
  response.body = {Bytes(request.peer.certificate_der.empty() ? "anonymous" : "certified"),
                   Bytes(request.body)};
  co_return response;
}

using Script = std::function<rt::Task<Status>(World*)>;

rt::Task<Status> RunScript(World* world, HttpServerOptions options, Script script) {
  if (options.tls == nullptr) options.tls = world->tls.server();
  world->server = *HttpServer::Start(world->loop, options, Handle);
  const Status status = co_await script(world);
  CO_TRY_STATUS(co_await world->server->Stop());
  co_return status;
}

void Serve(Script script, HttpServerOptions options = {}) {
  World world;
  EXPECT_EQ(rt::RunTask(world.loop, RunScript(&world, options, std::move(script))), OkStatus());
}

std::unique_ptr<HttpClient> NewClient(World* world,
                                      std::shared_ptr<const TlsContext> tls,
                                      std::string host = "127.0.0.1") {
  return *HttpClient::New(
      world->loop,
      {.url = "https://" + host + ":" + std::to_string(world->server->port()), .tls = tls});
}

rt::Task<Status> Anonymous(World* world) {
  auto client = NewClient(world, world->tls.client());
  HttpClientRequest request;
  CO_TRY(const HttpClientResponse response, co_await client->Send(request));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "anonymous");
  auto by_name = NewClient(world, world->tls.client(), "localhost");
  CO_TRY(const HttpClientResponse again, co_await by_name->Send(request));
  EXPECT_EQ(again.body, "anonymous");
  co_return OkStatus();
}
TEST(Tls, ServesAClientWithoutACertificate) { Serve(Anonymous); }

rt::Task<Status> Certified(World* world) {
  auto client = NewClient(world, world->tls.client(world->tls.pki().IssueClient("alice")));
  HttpClientRequest request;
  for (int i = 0; i < 3; ++i) {
    CO_TRY(const HttpClientResponse response, co_await client->Send(request));
    EXPECT_EQ(response.body, "certified");
    client->DropIdle();  // the next one connects anew: no resumption skips the certificate
  }
  co_return OkStatus();
}
TEST(Tls, HandsTheClientsCertificateToTheHandler) { Serve(Certified); }

struct RefusedClient {
  const char* name;
  std::function<std::shared_ptr<const TlsContext>(World*)> tls;
  ClientCertificates mode;
  const char* says;
};

rt::Task<Status> CheckRefusedClient(World* world, const RefusedClient* test) {
  world->server->SetTls(world->tls.server(test->mode));
  auto client = NewClient(world, test->tls(world));
  HttpClientRequest request;
  const Result<HttpClientResponse> response = co_await client->Send(request);
  EXPECT_EQ(response.status().reason(), Reason::kUnavailable) << response.status();
  EXPECT_NE(response.status().message().find(test->says), std::string_view::npos)
      << response.status();
  EXPECT_NE(response.status().message().find("127.0.0.1"), std::string_view::npos)
      << response.status();
  co_return OkStatus();
}

TEST(Tls, RefusesClientsItCannotTrust) {
  TestPki stranger("stranger");
  const TestIdentity foreign = stranger.IssueClient("mallory");
  const std::vector<RefusedClient> cases = {
      {"of another authority",
       [&](World* world) { return world->tls.client(foreign); },
       ClientCertificates::kOptional,
       "unknown ca"},
      {"expired",
       [](World* world) {
         return world->tls.client(world->tls.pki().IssueClient(
             "old", {.from = Duration::Hours(-2), .until = Duration::Hours(-1)}));
       },
       ClientCertificates::kOptional,
       "expired"},
      {"not valid yet",
       [](World* world) {
         return world->tls.client(world->tls.pki().IssueClient(
             "young", {.from = Duration::Hours(1), .until = Duration::Hours(2)}));
       },
       ClientCertificates::kOptional,
       "certificate"},
      {"with a server's certificate",
       [](World* world) { return world->tls.client(world->tls.pki().IssueServer({"localhost"})); },
       ClientCertificates::kOptional,
       "certificate"},
      {"without one where one is required",
       [](World* world) { return world->tls.client(); },
       ClientCertificates::kRequired,
       "certificate required"},
  };
  for (const RefusedClient& test : cases) {
    SCOPED_TRACE(test.name);
    Serve([&test](World* world) { return CheckRefusedClient(world, &test); });
  }
}

struct RefusedServer {
  const char* name;
  std::function<TestIdentity(World*)> identity;
  std::string client_ca;
  const char* says;
};

rt::Task<Status> CheckRefusedServer(World* world, const RefusedServer* test) {
  const TestIdentity identity = test->identity(world);
  world->server->SetTls(*TlsContext::NewServer(
      {.certificate_pem = identity.certificate_pem, .key_pem = identity.key_pem}));
  const std::string ca = test->client_ca.empty() ? world->tls.pki().ca_pem() : test->client_ca;
  auto client = NewClient(world, *TlsContext::NewClient({.ca_pem = ca}));
  HttpClientRequest request;
  const Result<HttpClientResponse> response = co_await client->Send(request);
  EXPECT_EQ(response.status().reason(), Reason::kUnavailable) << response.status();
  EXPECT_NE(response.status().message().find(test->says), std::string_view::npos)
      << response.status();
  co_return OkStatus();
}

TEST(Tls, SaysWhyAServerIsNotTrusted) {
  TestPki stranger("stranger");
  const auto right = [](World* world) { return world->tls.pki().IssueServer({"127.0.0.1"}); };
  const std::vector<RefusedServer> cases = {
      {"wrong CA", right, stranger.ca_pem(), "certificate signed by unknown authority"},
      {"wrong name",
       [](World* world) { return world->tls.pki().IssueServer({"example.org"}); },
       "",
       "certificate is not valid for 127.0.0.1"},
      {"expired",
       [](World* world) {
         return world->tls.pki().IssueServer(
             {"127.0.0.1"}, {.from = Duration::Hours(-2), .until = Duration::Hours(-1)});
       },
       "",
       "certificate has expired"},
      {"a client's certificate",
       [](World* world) { return world->tls.pki().IssueClient("bob"); },
       "",
       "certificate"},
  };
  for (const RefusedServer& test : cases) {
    SCOPED_TRACE(test.name);
    Serve([&test](World* world) { return CheckRefusedServer(world, &test); });
  }
}

rt::Task<Status> SwapCertificates(World* world) {
  TestPki next("next");
  const TestIdentity identity = next.IssueServer({"127.0.0.1"});
  auto before = NewClient(world, world->tls.client());
  HttpClientRequest request;
  CO_TRY_STATUS(co_await before->Send(request));
  world->server->SetTls(*TlsContext::NewServer(
      {.certificate_pem = identity.certificate_pem, .key_pem = identity.key_pem}));
  CO_TRY_STATUS(co_await before->Send(request));  // on the connection that it has
  auto after = NewClient(world, *TlsContext::NewClient({.ca_pem = next.ca_pem()}));
  CO_TRY_STATUS(co_await after->Send(request));
  before->DropIdle();
  const auto refused = co_await before->Send(request);
  EXPECT_FALSE(refused.ok());
  co_return OkStatus();
}
TEST(Tls, ReloadsCertificatesForNewConnections) { Serve(SwapCertificates); }

// A client of TLS 1.2, straight from OpenSSL, on a blocking socket of its own thread's making would
// be simpler; here its first flight is enough to see the refusal.
rt::Task<Status> OldProtocol(World* world) {
  SSL_CTX* ctx = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
  SSL* ssl = SSL_new(ctx);
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
  SSL_set_connect_state(ssl);
  SSL_do_handshake(ssl);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out, &data);
  const std::string hello(data, static_cast<size_t>(size));
  SSL_free(ssl);
  SSL_CTX_free(ctx);
  CO_TRY(auto raw, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await raw->Write(hello));
  CO_TRY(const std::string answer, co_await raw->ReadAll());
  // An alert record: fatal, protocol_version.
  EXPECT_EQ(answer.size(), 7U);
  if (answer.size() != 7U) co_return OkStatus();
  EXPECT_EQ(answer[0], 21);
  EXPECT_EQ(answer[5], 2);
  EXPECT_EQ(answer[6], 70);
  co_return OkStatus();
}
TEST(Tls, RefusesTls12) { Serve(OldProtocol); }

rt::Task<Status> PlainHttp(World* world) {
  CO_TRY(auto raw, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY_STATUS(co_await raw->Write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  CO_TRY(const std::string answer, co_await raw->ReadAll());
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
  EXPECT_NE(answer.find("this is an HTTPS port"), std::string::npos);
  co_return OkStatus();
}
TEST(Tls, TellsAPlainClientWhereItIs) { Serve(PlainHttp); }

rt::Task<Status> SilentHandshakes(World* world) {
  // Two silent peers take both places; the third is served at once, in the place of the first.
  CO_TRY(auto one, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY(auto two, co_await RawClient::Connect(&world->loop, world->server->port()));
  auto client = NewClient(world, world->tls.client());
  HttpClientRequest request;
  CO_TRY_STATUS(co_await client->Send(request));
  CO_TRY(const std::string nothing, co_await one->ReadAll());
  EXPECT_EQ(nothing, "");
  co_return OkStatus();
}
TEST(Tls, PeersThatNeverFinishAHandshakeKeepNobodyOut) {
  Serve(SilentHandshakes, {.handshakes_max = 2, .handshake_timeout = Duration::Hours(1)});
}

rt::Task<Status> SilentHandshake(World* world) {
  CO_TRY(auto one, co_await RawClient::Connect(&world->loop, world->server->port()));
  CO_TRY(const std::string nothing, co_await one->ReadAll());
  EXPECT_EQ(nothing, "");
  co_return OkStatus();
}
TEST(Tls, LimitsTheTimeOfAHandshake) {
  Serve(SilentHandshake, {.handshake_timeout = Duration::Millis(50)});
}

rt::Task<Status> ReadSlowly(World* world) {
  CO_TRY(auto raw,
         co_await RawClient::ConnectTls(&world->loop, world->server->port(), world->tls.client()));
  const std::string body(2'000'000, 'b');
  CO_TRY_STATUS(
      co_await raw->Write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n"
                          "Connection: close\r\n\r\n" +
                          body));
  CO_TRY(const std::string answer, co_await raw->ReadAll());
  EXPECT_TRUE(answer.ends_with(std::string_view(body))) << answer.size();
  co_return OkStatus();
}
TEST(Tls, MovesBodiesOfManyRecords) { Serve(ReadSlowly); }

TEST(TlsContext, SaysWhatIsWrongWithItsInputs) {
  TestPki pki;
  const TestIdentity good = pki.IssueServer({"localhost"});
  const TestIdentity other = pki.IssueServer({"localhost"});
  struct Case {
    const char* name;
    TlsServerOptions options;
    const char* says;
  };
  const std::vector<Case> cases = {
      {"no certificate", {.certificate_pem = "", .key_pem = good.key_pem}, "no PEM certificate"},
      {"garbage",
       {.certificate_pem = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n",
        .key_pem = good.key_pem},
       "certificate: "},
      {"no key", {.certificate_pem = good.certificate_pem, .key_pem = "key"}, "private key"},
      {"another's key",
       {.certificate_pem = good.certificate_pem, .key_pem = other.key_pem},
       "does not belong"},
      {"no client CA",
       {.certificate_pem = good.certificate_pem,
        .key_pem = good.key_pem,
        .client_certificates = ClientCertificates::kOptional},
       "client CA bundle"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    const auto context = TlsContext::NewServer(test.options);
    EXPECT_EQ(context.status().reason(), Reason::kBadRequest);
    EXPECT_NE(context.status().message().find(test.says), std::string_view::npos)
        << context.status();
  }
}

}  // namespace
}  // namespace berth::net
