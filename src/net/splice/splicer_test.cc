// SPDX-License-Identifier: Apache-2.0
// Connections are passed on as they are, to the target alone, and nobody waits for what cannot be.
#include "net/splice/splicer.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/h2/h2_dialer.h"
#include "net/h2/h2_server.h"
#include "net/owned_fd.h"
#include "net/socket.h"
#include "net/splice/threaded_splicer.h"
#include "net/testing/test_pki.h"
#include "net/tls.h"
#include "net/url.h"
#include "rt/deadline.h"
#include "rt/join_all.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

constexpr Duration kLimit = Duration::Seconds(20);
constexpr char kEcho[] = "/test/Echo";
// Nobody listens there.
constexpr char kDead[] = "127.0.0.1:1";

using StreamPtr = std::unique_ptr<PlainStream>;

// A server that takes connections and says nothing by itself.
class Leader {
 public:
  explicit Leader(rt::AsioLoop& loop)
      : acceptor_(loop, ListenTcp("127.0.0.1", 0).value(), [this, &loop](int fd) {
          taken.push_back(std::make_unique<PlainStream>(loop, fd));
        }) {}
  const std::string& address() const { return acceptor_.address(); }
  rt::Task<Status> Stop() {
    taken.clear();
    return acceptor_.Stop();
  }
  std::vector<StreamPtr> taken;

 private:
  Acceptor acceptor_;
};

struct World {
  explicit World(SplicerOptions options)
      : splicer(loop,
                ListenTcp("127.0.0.1", 0).value(),
                options,
                {.open = open, .passed = passed, .refused = refused, .unreachable = unreachable}) {}

  void GoTo(const std::string& name, std::vector<std::string> addresses) {
    splicer.SetTarget(
        {.name = name, .addresses = std::move(addresses), .until = loop.Now() + kLimit});
  }

  rt::AsioLoop loop;
  metrics::Registry registry;
  metrics::Gauge& open = registry.GetGauge("open", "");
  metrics::Counter& passed = registry.GetCounter("passed", "");
  metrics::Counter& refused = registry.GetCounter("refused", "");
  metrics::Counter& unreachable = registry.GetCounter("unreachable", "");
  Leader leader{loop};
  Splicer splicer;
};

rt::Task<Status> Eventually(std::function<bool()> holds) {
  for (int looks = 0; !holds(); ++looks) {
    if (looks > 20'000) co_return Timeout("it has not come to that");
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(1)));
  }
  co_return OkStatus();
}

rt::Task<Result<StreamPtr>> Knock(World* world) {
  CO_TRY(const HostPort where, ParseHostPort(world->splicer.address(), 0));
  CO_TRY(const int fd, co_await ConnectTcp(&world->loop, where.host, where.port));
  co_return std::make_unique<PlainStream>(world->loop, fd);
}

rt::Task<Status> Say(Stream* stream, std::string words) {
  const std::string_view part = words;
  co_return co_await stream->Write(std::span(&part, 1));
}

// What comes until there is so much of it, or an end.
rt::Task<Result<std::string>> Hear(Stream* stream, size_t want) {
  std::string heard;
  std::vector<char> piece(64 * 1024);
  stream->SetReadDeadline(stream->loop().Now() + kLimit);
  while (heard.size() < want) {
    CO_TRY(const size_t n, co_await stream->Read(piece));
    if (n == 0) break;
    heard.append(piece.data(), n);
  }
  co_return heard;
}

// Whether nothing comes but the end.
rt::Task<bool> IsClosed(Stream* stream) {
  const auto heard = co_await Hear(stream, 1);
  // Closed in the middle of what was said is a reset.
  co_return heard.ok() ? heard->empty() : heard.status().Is(Reason::kUnavailable);
}

rt::Task<Result<StreamPtr>> Pass(World* world) {
  const size_t before = world->leader.taken.size();
  CO_TRY(StreamPtr host, co_await Knock(world));
  std::function<bool()> taken = [world, before] { return world->leader.taken.size() > before; };
  CO_TRY_STATUS(co_await Eventually(std::move(taken)));
  co_return host;
}

void Play(SplicerOptions options, const std::function<rt::Task<Status>(World*)>& script) {
  World world(options);
  const Status played = rt::RunTask(world.loop, script(&world));
  EXPECT_TRUE(played.ok()) << played;
  EXPECT_TRUE(rt::RunTask(world.loop, world.splicer.Stop()).ok());
  EXPECT_TRUE(rt::RunTask(world.loop, world.leader.Stop()).ok());
  EXPECT_EQ(world.splicer.connections(), 0U);
  EXPECT_EQ(world.splicer.bytes_held(), 0U);
  EXPECT_EQ(world.open.value(), 0);
}

const SplicerOptions kAtOnce{.again_within = Duration()};

rt::Task<Status> PassBothWays(World* world) {
  world->GoTo("a", {world->leader.address()});
  CO_TRY(const StreamPtr host, co_await Pass(world));
  Stream* leader = world->leader.taken[0].get();
  CO_TRY_STATUS(co_await Say(host.get(), "hello"));
  CO_TRY(const std::string hello, co_await Hear(leader, 5));
  EXPECT_EQ(hello, "hello");
  CO_TRY_STATUS(co_await Say(leader, "welcome"));
  CO_TRY(const std::string welcome, co_await Hear(host.get(), 7));
  EXPECT_EQ(welcome, "welcome");
  EXPECT_EQ(world->open.value(), 1);
  EXPECT_EQ(world->passed.value(), 1);
  co_return OkStatus();
}
TEST(Splicer, PassesBytesBothWays) { Play(kAtOnce, PassBothWays); }

rt::Task<Status> TryOthersFirst(World* world) {
  world->GoTo("a", {world->leader.address()});
  CO_TRY(const StreamPtr first, co_await Knock(world));
  EXPECT_TRUE(co_await IsClosed(first.get()));
  EXPECT_EQ(world->refused.value(), 1);
  CO_TRY(const StreamPtr second, co_await Pass(world));
  EXPECT_EQ(world->passed.value(), 1);
  co_return OkStatus();
}
TEST(Splicer, WhoComesAgainIsPassedOn) { Play({}, TryOthersFirst); }

constexpr Duration kSoon = Duration::Millis(20);

// Renewals of certificates come long after the session has begun.
rt::Task<Status> ComeBackDuringASession(World* world) {
  world->GoTo("a", {world->leader.address()});
  std::vector<StreamPtr> knocks;
  while (world->leader.taken.empty()) {
    CO_TRY(StreamPtr knock, co_await Knock(world));
    knocks.push_back(std::move(knock));
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(1)));
  }
  CO_TRY_STATUS(co_await rt::Sleep(kSoon * 3));
  CO_TRY_STATUS((co_await Pass(world)).status());
  co_return OkStatus();
}
TEST(Splicer, WhoHasASessionThroughHereIsPassedOnAtOnce) {
  Play({.again_within = kSoon}, ComeBackDuringASession);
}

rt::Task<Status> FindTheWayOn(World* world) {
  world->GoTo("a", {"no:port:at:all", world->splicer.address(), world->leader.address()});
  CO_TRY(const StreamPtr host, co_await Pass(world));
  // Those by which it was found out end, and go round no more.
  std::function<bool()> alone = [world] { return world->splicer.connections() == 1; };
  co_return co_await Eventually(std::move(alone));
}
TEST(Splicer, WhatLeadsBackHereOrIsNoAddressIsPassedOver) { Play(kAtOnce, FindTheWayOn); }

rt::Task<Status> HoldBack(World* world) {
  constexpr size_t kBytes = 64UL * 1024 * 1024;  // more than the kernel keeps
  world->GoTo("a", {world->leader.address()});
  CO_TRY(const StreamPtr host, co_await Pass(world));
  rt::TaskScope speaking(world->loop);
  std::string words(kBytes, 'x');
  words.back() = 'y';
  speaking.Spawn("say", Say(host.get(), std::move(words)));
  // The leader takes nothing: what is between the two stays small, and the host waits.
  std::function<bool()> is_held = [world] { return world->splicer.bytes_held() > 0; };
  CO_TRY_STATUS(co_await Eventually(std::move(is_held)));
  EXPECT_LE(world->splicer.bytes_held(), Splicer::kPieceBytesMax);
  EXPECT_EQ(speaking.size(), 1U);
  // The other direction goes on meanwhile.
  Stream* leader = world->leader.taken[0].get();
  CO_TRY_STATUS(co_await Say(leader, "grant"));
  CO_TRY(const std::string grant, co_await Hear(host.get(), 5));
  EXPECT_EQ(grant, "grant");
  CO_TRY(const std::string heard, co_await Hear(leader, kBytes));
  EXPECT_EQ(heard.size(), kBytes);
  EXPECT_EQ(heard.back(), 'y');
  co_return co_await speaking.Join();
}
TEST(Splicer, ReadsNothingThatTheOtherEndDoesNotTake) { Play(kAtOnce, HoldBack); }

rt::Task<Status> GiveUpTheDeaf(World* world) {
  world->GoTo("a", {world->leader.address()});
  CO_TRY(const StreamPtr host, co_await Pass(world));
  const Status said = co_await Say(host.get(), std::string(64UL * 1024 * 1024, 'x'));
  EXPECT_FALSE(said.ok());
  co_return OkStatus();
}
TEST(Splicer, AnEndThatTakesNothingIsGivenUp) {
  Play({.again_within = Duration(), .write_limit = Duration::Millis(50)}, GiveUpTheDeaf);
}

rt::Task<Status> CloseEither(World* world) {
  world->GoTo("a", {world->leader.address()});
  std::function<bool()> is_over = [world] { return world->splicer.connections() == 0; };
  for (const bool host_first : {true, false}) {
    CO_TRY(StreamPtr host, co_await Pass(world));
    StreamPtr leader = std::move(world->leader.taken.back());
    StreamPtr& first = host_first ? host : leader;
    StreamPtr& second = host_first ? leader : host;
    CO_TRY_STATUS(co_await Say(first.get(), "bye"));
    first.reset();
    CO_TRY(const std::string heard, co_await Hear(second.get(), 100));
    EXPECT_EQ(heard, "bye") << "the last words come before the end";
    second.reset();
    CO_TRY_STATUS(co_await Eventually(is_over));
  }
  co_return OkStatus();
}
TEST(Splicer, WhenOneEndClosesTheOtherIsClosed) { Play(kAtOnce, CloseEither); }

rt::Task<Status> CloseStubborn(World* world) {
  world->GoTo("a", {world->leader.address()});
  CO_TRY(StreamPtr host, co_await Pass(world));
  host.reset();
  // The leader does not close.
  std::function<bool()> is_over = [world] { return world->splicer.connections() == 0; };
  co_return co_await Eventually(std::move(is_over));
}
TEST(Splicer, AnEndThatDoesNotCloseIsNotWaitedForLong) {
  Play({.again_within = Duration(), .farewell_limit = Duration::Millis(10)}, CloseStubborn);
}

rt::Task<Result<bool>> Closes(World* world) {
  CO_TRY(const StreamPtr host, co_await Knock(world));
  co_return co_await IsClosed(host.get());
}

rt::Task<Status> Refuse(World* world) {
  CO_TRY(const bool without, co_await Closes(world));
  EXPECT_TRUE(without) << "nobody leads";
  world->splicer.SetTarget({.name = "a",
                            .addresses = {world->leader.address()},
                            .until = world->loop.Now() - Duration::Millis(1)});
  CO_TRY(const bool expired, co_await Closes(world));
  EXPECT_TRUE(expired) << "its lease is over";
  world->GoTo("a", {});
  CO_TRY(const bool nowhere, co_await Closes(world));
  EXPECT_TRUE(nowhere) << "it is not known where it is";
  EXPECT_EQ(world->refused.value(), 3);
  EXPECT_TRUE(world->leader.taken.empty());
  co_return OkStatus();
}
TEST(Splicer, WithoutALeaderWhoComesIsClosedAtOnce) { Play(kAtOnce, Refuse); }

rt::Task<Status> ChangeTarget(World* world) {
  world->GoTo("a", {world->leader.address()});
  CO_TRY(const StreamPtr host, co_await Pass(world));
  world->GoTo("a", {world->leader.address()});  // the lease is renewed
  CO_TRY_STATUS(co_await Say(host.get(), "on"));
  CO_TRY(const std::string on, co_await Hear(world->leader.taken[0].get(), 2));
  EXPECT_EQ(on, "on");
  // The same server, which leads again after another one did, is another leader.
  world->GoTo("b", {world->leader.address()});
  EXPECT_TRUE(co_await IsClosed(host.get()));
  EXPECT_TRUE(co_await IsClosed(world->leader.taken[0].get()));
  CO_TRY(const StreamPtr next, co_await Pass(world));
  world->splicer.SetTarget({});
  EXPECT_TRUE(co_await IsClosed(next.get()));
  co_return OkStatus();
}
TEST(Splicer, AnotherLeaderClosesWhatWentToTheLastOne) { Play(kAtOnce, ChangeTarget); }

rt::Task<Status> Crowd(World* world) {
  world->GoTo("a", {world->leader.address()});
  CO_TRY(StreamPtr first, co_await Pass(world));
  CO_TRY(const StreamPtr second, co_await Pass(world));
  CO_TRY(const StreamPtr third, co_await Knock(world));
  EXPECT_TRUE(co_await IsClosed(third.get()));
  EXPECT_EQ(world->refused.value(), 1);
  first.reset();
  world->leader.taken[0].reset();
  std::function<bool()> has_room = [world] { return world->splicer.connections() == 1; };
  CO_TRY_STATUS(co_await Eventually(std::move(has_room)));
  CO_TRY(const StreamPtr fourth, co_await Pass(world));
  co_return OkStatus();
}
TEST(Splicer, HasSoManyConnectionsAndNoMore) {
  Play({.connections_max = 2, .again_within = Duration()}, Crowd);
}

rt::Task<Status> FindTheWay(World* world) {
  world->GoTo("a", {kDead});
  CO_TRY(const StreamPtr host, co_await Knock(world));
  EXPECT_TRUE(co_await IsClosed(host.get()));
  EXPECT_EQ(world->unreachable.value(), 1);
  // Nobody waits for it again so soon.
  CO_TRY(const StreamPtr next, co_await Knock(world));
  EXPECT_TRUE(co_await IsClosed(next.get()));
  EXPECT_EQ(world->refused.value(), 1);
  // Another leader is another matter, and of its addresses one is enough.
  world->GoTo("b", {kDead, world->leader.address()});
  CO_TRY(const StreamPtr passed, co_await Pass(world));
  EXPECT_EQ(world->unreachable.value(), 1);
  world->GoTo("b", {kDead, world->leader.address()});
  CO_TRY_STATUS(co_await Say(passed.get(), "on"));
  CO_TRY(const std::string on, co_await Hear(world->leader.taken[0].get(), 2));
  EXPECT_EQ(on, "on");
  co_return OkStatus();
}
TEST(Splicer, ALeaderThatIsNotReachedIsNotWaitedFor) {
  Play({.failed_pause = Duration::Hours(1), .again_within = Duration()}, FindTheWay);
}

rt::Task<Result<std::string>> Echo(RpcCall call, std::string request) {
  co_return request + (call.peer.certificate_der.empty() ? "" : " of a host");
}

struct TlsWorld {
  explicit TlsWorld(World& the_world) : world(the_world) {
    const TestIdentity server_identity = pki.IssueServer({"127.0.0.1"});
    TlsServerOptions tls;
    tls.certificate_pem = server_identity.certificate_pem + pki.ca_pem();
    tls.key_pem = server_identity.key_pem;
    tls.client_certificates = ClientCertificates::kOptional;
    tls.client_ca_pem = pki.ca_pem();
    H2ServerOptions options;
    options.tls = NewH2ServerTls(tls).value();
    RpcRoutes routes;
    routes.unary[kEcho] = {.handler = Echo};
    server = H2Server::Start(world.loop, std::move(options), std::move(routes)).value();
    const TestIdentity identity = pki.IssueClient("host-1");
    credentials = {.ca_pem = pki.ca_pem(),
                   .certificate_pem = identity.certificate_pem,
                   .key_pem = identity.key_pem};
  }
  World& world;
  TestPki pki;
  H2Dialer dialer{world.loop};
  std::unique_ptr<H2Server> server;
  RpcCredentials credentials;
};

rt::Task<Status> Encrypt(World* world) {
  TlsWorld tls(*world);
  // Closed before a byte of TLS is as good as refused: no reason to doubt the certificate.
  const auto refused = co_await tls.dialer.Dial(world->splicer.address(), tls.credentials, kLimit);
  EXPECT_TRUE(refused.status().Is(Reason::kUnavailable)) << refused.status();
  EXPECT_FALSE(IsTrustFailure(refused.status()));
  world->GoTo("a", {tls.server->address()});
  auto dialled = co_await tls.dialer.Dial(world->splicer.address(), tls.credentials, kLimit);
  Status status = dialled.status();
  if (dialled.ok()) {
    RpcOptions options;
    const auto answer = co_await (*dialled)->Call(kEcho, "a word", std::move(options));
    EXPECT_TRUE(answer.ok() && *answer == "a word of a host") << answer.status();
    status = co_await (*dialled)->Close();
  }
  CO_TRY_STATUS(co_await tls.server->Stop());
  co_return status;
}
TEST(Splicer, TlsAndCertificatesAreBetweenTheEnds) { Play(kAtOnce, Encrypt); }

rt::Task<Status> HandOver(World* world) {
  CO_TRY(const int fd, ListenTcp("127.0.0.1", 0));
  const OwnedFd listener(fd);
  CO_TRY(const HostPort where, ParseHostPort(LocalAddress(fd), 0));
  CO_TRY(auto splicer,
         co_await ThreadedSplicer::Start(&listener,
                                         kAtOnce,
                                         {.open = world->open,
                                          .passed = world->passed,
                                          .refused = world->refused,
                                          .unreachable = world->unreachable}));
  splicer->SetTarget(
      {.name = "a", .addresses = {world->leader.address()}, .until = world->loop.Now() + kLimit});
  CO_TRY(const int near, co_await ConnectTcp(&world->loop, where.host, where.port));
  PlainStream host(world->loop, near);
  std::function<bool()> taken = [world] { return !world->leader.taken.empty(); };
  CO_TRY_STATUS(co_await Eventually(std::move(taken)));
  // This server leads now: what was passed on is closed, and the socket listens on for it.
  CO_TRY_STATUS(co_await splicer->Stop());
  EXPECT_TRUE(co_await IsClosed(&host));
  splicer.reset();
  CO_TRY(const int late, co_await ConnectTcp(&world->loop, where.host, where.port));
  const OwnedFd waits(late);
  co_return OkStatus();
}
TEST(ThreadedSplicer, LeavesTheSocketToWhoComesNext) { Play(kAtOnce, HandOver); }

TEST(Knocks, RememberForAWhileAndAreBounded) {
  Knocks knocks(Duration::Seconds(10));
  const Time now = Time::FromNanos(1);
  EXPECT_FALSE(knocks.Again("10.0.0.1", now));
  EXPECT_TRUE(knocks.Again("10.0.0.1", now + Duration::Seconds(10)));
  EXPECT_FALSE(knocks.Again("10.0.0.1", now + Duration::Seconds(21)));
  const Time later = now + Duration::Minutes(1);
  for (size_t i = 0; i < 2 * Knocks::kAddressesMax; ++i) knocks.Again(std::to_string(i), later);
  EXPECT_EQ(knocks.size(), Knocks::kAddressesMax);
  EXPECT_TRUE(knocks.Again("10.0.0.2", later)) << "nobody is kept out by others";
  EXPECT_FALSE(knocks.Again("10.0.0.2", later + Duration::Seconds(11)));
  EXPECT_EQ(knocks.size(), 1U);
}

}  // namespace
}  // namespace berth::net
