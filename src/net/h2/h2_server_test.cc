// SPDX-License-Identifier: Apache-2.0
// What only the HTTP/2 body promises: certificates, limits on connections, silence.
#include "net/h2/h2_server.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <memory>
#include <string>
#include <vector>

#include "net/h2/h2_test_world.h"
#include "net/socket.h"
#include "net/tls_stream.h"
#include "rt/deadline.h"
#include "rt/scope.h"

namespace berth::net {
namespace {

constexpr Duration kLimit = Duration::Seconds(20);

std::string PinOf(const std::string& pem) {
  const std::string der = *CertificateDer(pem);
  std::array<unsigned char, 32> digest{};
  EVP_Digest(der.data(), der.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return "sha256:" + HexEncode({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

rt::Task<Result<std::string>> CallOnce(H2World* world,
                                       RpcCredentials credentials,
                                       std::string method) {
  CO_TRY(auto channel, co_await world->Dial(std::move(credentials)));
  RpcOptions options;
  Result<std::string> answer = co_await channel->Call(method, "hello", options);
  CO_TRY_STATUS(co_await channel->Close());
  co_return answer;
}

// Opens the doors once somebody waits in front of them, and says what that one heard.
rt::Task<Status> WaitAtTheDoor(H2World* world) {
  rt::TaskScope opening(world->loop);
  size_t inside = 1;
  opening.Spawn("open", [](H2World* w, size_t* seen) -> rt::Task<Status> {
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(20)));
    *seen = w->server->connections();
    w->server->Open();
    co_return OkStatus();
  }(world, &inside));
  CO_TRY(const std::string answer,
         co_await CallOnce(world, world->Client("host-1"), H2World::kEcho));
  EXPECT_EQ(answer, "hello");
  EXPECT_EQ(inside, 0U);
  co_return co_await opening.Join();
}
TEST(H2Server, WhoComesBeforeTheDoorsAreOpenIsServedThen) {
  H2World world;
  H2ServerOptions options;
  options.doors = Acceptor::Doors::kWhenOpened;
  EXPECT_EQ(world.Run(options, WaitAtTheDoor), OkStatus());
}

rt::Task<Status> CertificateIsShown(H2World* world) {
  const RpcCredentials credentials = world->Client("host-1");
  const std::string der = *CertificateDer(credentials.certificate_pem);
  CO_TRY(const std::string seen, co_await CallOnce(world, credentials, H2World::kCertificate));
  EXPECT_EQ(seen, der);
  CO_TRY(const std::string again, co_await CallOnce(world, credentials, H2World::kCertificate));
  EXPECT_EQ(again, der);
  co_return OkStatus();
}
TEST(H2Server, ShowsTheCertificateOfAPeerAsItCame) {
  H2World world;
  EXPECT_EQ(world.Run({}, CertificateIsShown), OkStatus());
}

rt::Task<Status> ExpiredIsMarked(H2World* world) {
  const TestIdentity expired =
      world->pki.IssueClient("host-1", {.from = Duration::Hours(-2), .until = Duration::Hours(-1)});
  const RpcCredentials late{.ca_pem = world->pki.ca_pem(),
                            .certificate_pem = expired.certificate_pem,
                            .key_pem = expired.key_pem};
  CO_TRY(const std::string state, co_await CallOnce(world, late, H2World::kState));
  EXPECT_EQ(state, std::to_string(static_cast<int>(CertificateState::kExpired)));
  CO_TRY(const std::string valid,
         co_await CallOnce(world, world->Client("host-2"), H2World::kState));
  EXPECT_EQ(valid, std::to_string(static_cast<int>(CertificateState::kValid)));
  RpcCredentials nobody;
  nobody.ca_pem = world->pki.ca_pem();
  CO_TRY(const std::string none, co_await CallOnce(world, nobody, H2World::kState));
  EXPECT_EQ(none, std::to_string(static_cast<int>(CertificateState::kNone)));
  TestPki other("another CA");
  const TestIdentity foreign =
      other.IssueClient("host-1", {.from = Duration::Hours(-2), .until = Duration::Hours(-1)});
  const RpcCredentials forged{.ca_pem = world->pki.ca_pem(),
                              .certificate_pem = foreign.certificate_pem,
                              .key_pem = foreign.key_pem};
  const auto refused = co_await CallOnce(world, forged, H2World::kState);
  EXPECT_EQ(refused.status().reason(), Reason::kUnauthorized) << refused.status();
  co_return OkStatus();
}
TEST(H2Server, MarksAnExpiredCertificateIfAskedTo) {
  H2World world;
  TlsServerOptions tls = world.Tls();
  tls.expired_client_certificates = ExpiredCertificates::kMark;
  H2ServerOptions options;
  options.tls = *NewH2ServerTls(tls);
  EXPECT_EQ(world.Run(options, ExpiredIsMarked), OkStatus());
}

rt::Task<Status> ExpiredIsRefused(H2World* world) {
  const TestIdentity expired =
      world->pki.IssueClient("host-1", {.from = Duration::Hours(-2), .until = Duration::Hours(-1)});
  const RpcCredentials late{.ca_pem = world->pki.ca_pem(),
                            .certificate_pem = expired.certificate_pem,
                            .key_pem = expired.key_pem};
  const auto refused = co_await CallOnce(world, late, H2World::kState);
  EXPECT_EQ(refused.status().reason(), Reason::kUnauthorized) << refused.status();
  EXPECT_NE(refused.status().message().find("expired"), std::string_view::npos) << refused.status();
  co_return OkStatus();
}
TEST(H2Server, RefusesAnExpiredCertificateAndSaysSo) {
  H2World world;
  EXPECT_EQ(world.Run({}, ExpiredIsRefused), OkStatus());
}

// Whoever joined another cluster has such a certificate: "unauthorized" alone would not tell him.
rt::Task<Status> ForeignIsRefused(H2World* world) {
  TestPki other("another CA");
  const TestIdentity foreign = other.IssueClient("host-1");
  const RpcCredentials forged{.ca_pem = world->pki.ca_pem(),
                              .certificate_pem = foreign.certificate_pem,
                              .key_pem = foreign.key_pem};
  const auto refused = co_await CallOnce(world, forged, H2World::kState);
  EXPECT_EQ(refused.status().reason(), Reason::kUnauthorized) << refused.status();
  EXPECT_NE(refused.status().message().find("does not know the CA of our certificate"),
            std::string_view::npos)
      << refused.status();
  co_return OkStatus();
}
TEST(H2Server, C15_RefusesACertificateOfAnotherCaAndSaysSo) {
  // The port of sessions marks who has expired; others refuse him.
  for (const auto expired : {ExpiredCertificates::kMark, ExpiredCertificates::kRefuse}) {
    H2World world;
    TlsServerOptions tls = world.Tls();
    tls.expired_client_certificates = expired;
    H2ServerOptions options;
    options.tls = *NewH2ServerTls(tls);
    EXPECT_EQ(world.Run(options, ForeignIsRefused), OkStatus());
  }
}

rt::Task<Status> PinnedOnly(H2World* world) {
  RpcCredentials pinned;
  pinned.ca_pin = PinOf(world->pki.ca_pem());
  CO_TRY(const std::string answer, co_await CallOnce(world, pinned, H2World::kEcho));
  EXPECT_EQ(answer, "hello");
  // The leaf's own hash is no CA's; another CA's is not in the chain.
  for (const std::string& pem : {world->Tls().certificate_pem, TestPki("other").ca_pem()}) {
    RpcCredentials wrong;
    wrong.ca_pin = PinOf(pem);
    const auto refused = co_await CallOnce(world, wrong, H2World::kEcho);
    EXPECT_EQ(refused.status().reason(), Reason::kUnauthorized) << refused.status();
  }
  RpcCredentials malformed;
  malformed.ca_pin = "sha256:12";
  const auto bad = co_await CallOnce(world, malformed, H2World::kEcho);
  EXPECT_EQ(bad.status().reason(), Reason::kBadRequest) << bad.status();
  RpcCredentials trusting;
  const auto nobody = co_await CallOnce(world, trusting, H2World::kEcho);
  EXPECT_EQ(nobody.status().reason(), Reason::kBadRequest) << nobody.status();
  co_return OkStatus();
}
TEST(H2Server, IsTrustedByThePinOfItsCa) {
  H2World world;
  EXPECT_EQ(world.Run({}, PinnedOnly), OkStatus());
}

// A pinned CA that is in the chain does not help a leaf that another CA has signed.
TEST(H2Server, ALeafOfAnotherCaIsNotTrustedBesideAPinnedOne) {
  H2World world;
  TestPki impostor("test CA");
  const TestIdentity identity = impostor.IssueServer({"127.0.0.1"});
  TlsServerOptions tls = world.Tls();
  tls.certificate_pem = identity.certificate_pem + world.pki.ca_pem();
  tls.key_pem = identity.key_pem;
  H2ServerOptions options;
  options.tls = *NewH2ServerTls(tls);
  const auto script = [](H2World* served) -> rt::Task<Status> {
    RpcCredentials pinned;
    pinned.ca_pin = PinOf(served->pki.ca_pem());
    const auto refused = co_await CallOnce(served, pinned, H2World::kEcho);
    EXPECT_EQ(refused.status().reason(), Reason::kUnauthorized) << refused.status();
    co_return OkStatus();
  };
  EXPECT_EQ(world.Run(options, script), OkStatus());
}

rt::Task<Status> TooManyOfOneIdentity(H2World* world) {
  std::vector<std::unique_ptr<RpcChannel>> channels;
  for (int i = 0; i < 2; ++i) {
    CO_TRY(auto channel, co_await world->Dial(world->Client("host-1")));
    channels.push_back(std::move(channel));
  }
  RpcOptions options;
  auto third = co_await world->Dial(world->Client("host-1"));
  if (third.ok()) {  // the refusal may come after the server's settings
    const auto answer = co_await (*third)->Call(H2World::kEcho, "x", options);
    EXPECT_EQ(answer.status().reason(), Reason::kUnavailable) << answer.status();
    CO_TRY_STATUS(co_await (*third)->Close());
  } else {
    EXPECT_EQ(third.status().reason(), Reason::kUnavailable) << third.status();
  }
  CO_TRY(const std::string other,
         co_await CallOnce(world, world->Client("host-2"), H2World::kEcho));
  EXPECT_EQ(other, "hello");
  CO_TRY_STATUS(co_await channels.front()->Close());
  while (world->server->connections() > 1) CO_TRY_STATUS(co_await rt::Yield());
  CO_TRY(const std::string again,
         co_await CallOnce(world, world->Client("host-1"), H2World::kEcho));
  EXPECT_EQ(again, "hello");
  co_return co_await channels.back()->Close();
}
TEST(H2Server, LimitsTheConnectionsOfOneIdentity) {
  H2World world;
  H2ServerOptions options;
  options.connections_per_identity_max = 2;
  EXPECT_EQ(world.Run(options, TooManyOfOneIdentity), OkStatus());
}

rt::Task<Status> TooManyConnections(H2World* world) {
  CO_TRY(auto first, co_await world->Dial(world->Client("host-1")));
  RpcOptions options;
  CO_TRY(auto session, co_await first->Open(H2World::kDeaf, options));
  options.deadline = kLimit;
  CO_TRY_STATUS(co_await first->Call(H2World::kEcho, "heard of both", options));
  const auto second = co_await world->Dial(world->Client("host-2"));
  EXPECT_EQ(second.status().reason(), Reason::kUnavailable) << second.status();
  EXPECT_TRUE(first->usable());
  session.reset();
  co_return co_await first->Close();
}
TEST(H2Server, LimitsItsConnections) {
  H2World world;
  H2ServerOptions options;
  options.connections_max = 1;
  EXPECT_EQ(world.Run(options, TooManyConnections), OkStatus());
}
TEST(H2Server, LimitsTheConnectionsOfOneAddress) {
  H2World world;
  H2ServerOptions options;
  options.connections_per_address_max = 1;
  EXPECT_EQ(world.Run(options, TooManyConnections), OkStatus());
}

rt::Task<Status> WaitUntilUnusable(RpcChannel* channel) {
  while (channel->usable()) CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(5)));
  co_return OkStatus();
}

rt::Task<Status> IdleMakesWay(H2World* world) {
  CO_TRY(auto idle, co_await world->Dial(world->Client("host-1")));
  CO_TRY(const std::string answer,
         co_await CallOnce(world, world->Client("host-2"), H2World::kEcho));
  EXPECT_EQ(answer, "hello");
  CO_TRY_STATUS(co_await rt::WithDeadline(WaitUntilUnusable(idle.get()), kLimit));
  co_return co_await idle->Close();
}
TEST(H2Server, AConnectionWithoutCallsMakesWayForANewOne) {
  H2World world;
  H2ServerOptions options;
  options.connections_max = 1;
  EXPECT_EQ(world.Run(options, IdleMakesWay), OkStatus());
}

// Peers that say nothing take every place: no certificate has been seen, nor its absence.
rt::Task<Status> SilenceMakesWay(H2World* world) {
  std::vector<std::unique_ptr<Socket>> silent;
  for (int i = 0; i < 5; ++i) {
    CO_TRY(const int fd, co_await ConnectTcp(&world->loop, "127.0.0.1", world->server->port()));
    silent.push_back(std::make_unique<Socket>(world->loop, fd));
  }
  CO_TRY(const std::string answer,
         co_await CallOnce(world, world->Client("host-1"), H2World::kEcho));
  EXPECT_EQ(answer, "hello");
  co_return OkStatus();
}
rt::Task<Status> NewHostsStay(H2World* world) {
  CO_TRY(auto host, co_await world->Dial(world->Client("host-1")));
  CO_TRY_STATUS(co_await SilenceMakesWay(world));
  EXPECT_TRUE(host->usable());
  RpcOptions options;
  options.deadline = kLimit;
  CO_TRY(const std::string answer, co_await host->Call(H2World::kEcho, "x", options));
  EXPECT_EQ(answer, "x");
  co_return co_await host->Close();
}
TEST(H2Server, WhoOnlyKnocksDoesNotThrowOutAHostThatHasJustComeIn) {
  H2World world;
  H2ServerOptions options;
  options.connections_max = 3;
  EXPECT_EQ(world.Run(options, NewHostsStay), OkStatus());
}

TEST(H2Server, AHandshakeThatDoesNotGoOnMakesWayForANewOne) {
  H2World world;
  H2ServerOptions options;
  options.connections_max = 3;
  EXPECT_EQ(world.Run(options, SilenceMakesWay), OkStatus());
}

rt::Task<Status> AllComeBack(H2World* world) {
  constexpr int kHosts = 40;
  std::vector<std::unique_ptr<RpcChannel>> hosts(kHosts);
  rt::TaskScope coming(world->loop);
  for (int i = 0; i < kHosts; ++i) {
    coming.Spawn("host",
                 [](H2World* w, std::unique_ptr<RpcChannel>* host, int number) -> rt::Task<Status> {
                   CO_TRY(*host, co_await w->Dial(w->Client("host-" + std::to_string(number))));
                   co_return OkStatus();
                 }(world, &hosts[i], i));
  }
  CO_TRY_STATUS(co_await coming.Join());
  for (const auto& host : hosts) {
    if (host == nullptr) co_return Unavailable("a host was refused");
    EXPECT_TRUE(host->usable());
    CO_TRY_STATUS(co_await host->Close());
  }
  co_return OkStatus();
}
TEST(H2Server, HostsOfOneAddressMayAllComeBackAtOnce) {
  H2World world;
  H2ServerOptions options;
  options.connections_max = 40;
  options.anonymous = {.connections_max = 1, .connections_per_address_max = 1};
  EXPECT_EQ(world.Run(options, AllComeBack), OkStatus());
}

rt::Task<Status> IdleIsClosed(H2World* world) {
  CO_TRY(auto channel, co_await world->Dial(world->Client("host-1")));
  CO_TRY_STATUS(co_await rt::WithDeadline(WaitUntilUnusable(channel.get()), kLimit));
  while (world->server->connections() > 0) {
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(5)));
  }
  co_return co_await channel->Close();
}
TEST(H2Server, ClosesAConnectionWithoutCalls) {
  H2World world;
  H2ServerOptions options;
  options.limits.idle_timeout = Duration::Millis(50);
  EXPECT_EQ(world.Run(options, IdleIsClosed), OkStatus());
}

// Keeps the socket open and says nothing.
rt::Task<Status> SilentPeerIsGivenUp(H2World* world) {
  CO_TRY(const auto context,
         TlsContext::NewClient({.ca_pem = world->pki.ca_pem(), .alpn = {"h2"}}));
  CO_TRY(const int fd, co_await ConnectTcp(&world->loop, "127.0.0.1", world->server->port()));
  CO_TRY(const auto stream,
         co_await TlsStream::Connect(&world->loop, fd, context, "127.0.0.1", kLimit));
  const std::string hello =
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9);
  const std::string_view part = hello;
  CO_TRY_STATUS(co_await stream->Write(std::span(&part, 1)));
  std::array<char, 1024> scratch{};
  for (;;) {
    auto read = co_await rt::WithDeadline(stream->Read(scratch), kLimit);
    EXPECT_FALSE(!read.ok() && read.status().Is(Reason::kTimeout)) << "the server waits on";
    if (!read.ok() || *read == 0) co_return OkStatus();
  }
}
TEST(H2Server, GivesUpAPeerThatAnswersNoPing) {
  H2World world;
  H2ServerOptions options;
  options.limits.keepalive_interval = Duration::Millis(40);
  options.limits.keepalive_timeout = Duration::Millis(40);
  EXPECT_EQ(world.Run(options, SilentPeerIsGivenUp), OkStatus());
}

rt::Task<Status> PingsKeepAlive(H2World* world) {
  CO_TRY(auto channel, co_await world->Dial(world->Client("host-1")));
  RpcOptions options;
  CO_TRY(auto stream, co_await channel->Open(H2World::kDeaf, options));
  CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(300)));
  EXPECT_TRUE(channel->usable()) << "a quiet stream is kept by pings";
  stream.reset();
  co_return co_await channel->Close();
}
TEST(H2Server, KeepsAQuietStream) {
  H2World world;
  H2ServerOptions options;
  options.limits.keepalive_interval = Duration::Millis(40);
  options.limits.keepalive_timeout = Duration::Millis(100);
  EXPECT_EQ(world.Run(options, PingsKeepAlive), OkStatus());
}

rt::Task<Status> CallsOverTheLimitWait(H2World* world) {
  CO_TRY(auto channel, co_await world->Dial(world->Client("host-1")));
  RpcOptions options;
  std::vector<std::unique_ptr<MessageStream>> streams;
  for (int i = 0; i < 3; ++i) {
    CO_TRY(auto stream, co_await channel->Open(H2World::kDeaf, options));
    streams.push_back(std::move(stream));
  }
  options.deadline = Duration::Millis(100);
  const auto waiting = co_await channel->Call(H2World::kEcho, "x", options);
  EXPECT_EQ(waiting.status().reason(), Reason::kTimeout) << waiting.status();
  streams.clear();
  options.deadline = kLimit;
  CO_TRY(const std::string answer, co_await channel->Call(H2World::kEcho, "x", options));
  EXPECT_EQ(answer, "x");
  co_return co_await channel->Close();
}
TEST(H2Server, LimitsTheCallsOfOneConnection) {
  H2World world;
  H2ServerOptions options;
  options.limits.streams_max = 3;
  EXPECT_EQ(world.Run(options, CallsOverTheLimitWait), OkStatus());
}

}  // namespace
}  // namespace berth::net
