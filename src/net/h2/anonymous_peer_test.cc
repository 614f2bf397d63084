// SPDX-License-Identifier: Apache-2.0
// Defends: peers without a certificate have a share of the connections, of the bytes and of the
// time, and whoever has shown who he is never waits for them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/h2/h2_test_world.h"
#include "rt/deadline.h"
#include "rt/scope.h"

namespace berth::net {
namespace {

constexpr Duration kLimit = Duration::Seconds(20);

RpcOptions WithinLimit() {
  RpcOptions options;
  options.deadline = kLimit;
  return options;
}

rt::Task<Status> WaitUntilUnusable(RpcChannel* channel) {
  while (channel->usable()) CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(5)));
  co_return OkStatus();
}
rt::Task<Status> ExpectEnds(RpcChannel* channel) {
  co_return co_await rt::WithDeadline(WaitUntilUnusable(channel), kLimit);
}
rt::Task<Status> ExpectServed(RpcChannel* channel) {
  CO_TRY(const std::string answer, co_await channel->Call(H2World::kEcho, "x", WithinLimit()));
  EXPECT_EQ(answer, "x");
  co_return OkStatus();
}
rt::Task<Status> CloseAll(std::vector<std::unique_ptr<RpcChannel>>* channels) {
  for (const auto& channel : *channels) CO_TRY_STATUS(co_await channel->Close());
  co_return OkStatus();
}

// Peers of nobody that begin calls and never send their requests. They answer pings.
struct HalfCalls {
  rt::Task<Status> Begin(H2World* world, int peers) {
    for (int i = 0; i < peers; ++i) {
      CO_TRY(auto channel, co_await world->Dial(world->Nobody()));
      const RpcOptions options;
      CO_TRY(auto call, co_await channel->Open(H2World::kEcho, options));
      channels.push_back(std::move(channel));
      calls.push_back(std::move(call));
      // The server has heard of it.
      CO_TRY_STATUS(co_await ExpectServed(channels.back().get()));
    }
    co_return OkStatus();
  }
  rt::Task<Status> End() {
    calls.clear();
    co_return co_await CloseAll(&channels);
  }
  std::vector<std::unique_ptr<RpcChannel>> channels;
  std::vector<std::unique_ptr<MessageStream>> calls;
};

rt::Task<Status> HostsComeAllTheSame(H2World* world) {
  HalfCalls half;
  CO_TRY_STATUS(co_await half.Begin(world, 4));
  std::vector<std::unique_ptr<RpcChannel>> hosts;
  for (int i = 0; i < 4; ++i) {
    CO_TRY(auto host, co_await world->Dial(world->Client("host-" + std::to_string(i))));
    CO_TRY_STATUS(co_await ExpectServed(host.get()));
    hosts.push_back(std::move(host));
  }
  for (const auto& channel : half.channels) CO_TRY_STATUS(co_await ExpectEnds(channel.get()));
  for (const auto& host : hosts) CO_TRY_STATUS(co_await ExpectServed(host.get()));
  CO_TRY_STATUS(co_await half.End());
  co_return co_await CloseAll(&hosts);
}
TEST(AnonymousPeer, ThatTakesEveryPlaceMakesWayForHosts) {
  H2World world;
  H2ServerOptions options;
  options.connections_max = 4;
  EXPECT_EQ(world.Run(options, HostsComeAllTheSame), OkStatus());
}

rt::Task<Status> OldestMakesWay(H2World* world) {
  HalfCalls half;
  CO_TRY_STATUS(co_await half.Begin(world, 3));
  CO_TRY_STATUS(co_await ExpectEnds(half.channels[0].get()));
  EXPECT_TRUE(half.channels[1]->usable());
  const auto ended = co_await rt::WithDeadline(half.calls[0]->Read(), kLimit);
  EXPECT_EQ(ended.status().reason(), Reason::kUnavailable) << ended.status();
  EXPECT_NE(ended.status().message().find("without a certificate"), std::string_view::npos)
      << ended.status();
  co_return co_await half.End();
}
TEST(AnonymousPeer, OverTheShareOfAllTheOldestMakesWay) {
  H2World world;
  H2ServerOptions options;
  options.anonymous.connections_max = 2;
  EXPECT_EQ(world.Run(options, OldestMakesWay), OkStatus());
}
TEST(AnonymousPeer, OverTheShareOfAnAddressItsOldestMakesWay) {
  H2World world;
  H2ServerOptions options;
  options.anonymous.connections_per_address_max = 2;
  EXPECT_EQ(world.Run(options, OldestMakesWay), OkStatus());
}

rt::Task<Status> HostsAreNotCounted(H2World* world) {
  std::vector<std::unique_ptr<RpcChannel>> hosts;
  for (int i = 0; i < 5; ++i) {
    CO_TRY(auto host, co_await world->Dial(world->Client("host-" + std::to_string(i))));
    hosts.push_back(std::move(host));
  }
  for (const auto& host : hosts) CO_TRY_STATUS(co_await ExpectServed(host.get()));
  co_return co_await CloseAll(&hosts);
}
TEST(AnonymousPeer, IsNoneThatHasACertificate) {
  H2World world;
  H2ServerOptions options;
  options.anonymous = {.connections_max = 1, .connections_per_address_max = 1};
  EXPECT_EQ(world.Run(options, HostsAreNotCounted), OkStatus());
}

rt::Task<Status> CallWait(RpcChannel* channel) {
  const RpcOptions options;
  const auto answer = co_await channel->Call(H2World::kWait, "", options);
  co_return answer.status();
}
rt::Task<Status> WorkIsNotBrokenOff(H2World* world) {
  CO_TRY(auto joining, co_await world->Dial(world->Nobody()));
  rt::TaskScope calls(world->loop);
  calls.Spawn("wait", CallWait(joining.get()));
  while (world->waiting == 0) CO_TRY_STATUS(co_await rt::Yield());
  auto next = co_await world->Dial(world->Nobody());
  if (next.ok()) {
    CO_TRY_STATUS(co_await ExpectEnds(next->get()));
    CO_TRY_STATUS(co_await (*next)->Close());
  }
  EXPECT_TRUE(joining->usable());
  EXPECT_EQ(world->waiting, 1);
  CO_TRY_STATUS(co_await calls.Close());
  co_return co_await joining->Close();
}
TEST(AnonymousPeer, WhoseRequestIsBeingAnsweredStays) {
  H2World world;
  H2ServerOptions options;
  options.anonymous.connections_per_address_max = 1;
  EXPECT_EQ(world.Run(options, WorkIsNotBrokenOff), OkStatus());
}

rt::Task<Result<std::unique_ptr<RpcChannel>>> DialAs(H2World* world, std::string user) {
  CO_TRY(auto channel, co_await world->Dial(world->Nobody()));
  CO_TRY(const std::string answer,
         co_await channel->Call(H2World::kIntroduce, std::move(user), WithinLimit()));
  EXPECT_EQ(answer, "introduced");
  co_return channel;
}
rt::Task<Status> UsersAreKnown(H2World* world) {
  std::vector<std::unique_ptr<RpcChannel>> users;
  for (int i = 0; i < 3; ++i) {
    CO_TRY(auto user, co_await DialAs(world, "user-" + std::to_string(i)));
    users.push_back(std::move(user));
  }
  for (const auto& user : users) {
    CO_TRY(const std::string again,
           co_await user->Call(H2World::kIntroduce, "somebody else", WithinLimit()));
    EXPECT_EQ(again, "known already");
  }
  co_return co_await CloseAll(&users);
}
TEST(AnonymousPeer, ThatIsIntroducedIsNoneAnyMore) {
  H2World world;
  H2ServerOptions options;
  options.anonymous.connections_max = 1;
  EXPECT_EQ(world.Run(options, UsersAreKnown), OkStatus());
}

rt::Task<Status> UserHasAShare(H2World* world) {
  std::vector<std::unique_ptr<RpcChannel>> channels;
  for (const char* user : {"jane", "jane", "joe"}) {
    CO_TRY(auto channel, co_await DialAs(world, user));
    channels.push_back(std::move(channel));
  }
  CO_TRY(auto more, co_await world->Dial(world->Nobody()));
  const auto refused = co_await more->Call(H2World::kIntroduce, "jane", WithinLimit());
  EXPECT_EQ(refused.status().reason(), Reason::kUnavailable) << refused.status();
  EXPECT_NE(refused.status().message().find("of this user"), std::string_view::npos)
      << refused.status();
  CO_TRY_STATUS(co_await more->Close());
  for (const auto& channel : channels) CO_TRY_STATUS(co_await ExpectServed(channel.get()));
  co_return co_await CloseAll(&channels);
}
TEST(AnonymousPeer, ThatIsIntroducedIsCountedWithItsUser) {
  H2World world;
  H2ServerOptions options;
  options.connections_per_identity_max = 2;
  EXPECT_EQ(world.Run(options, UserHasAShare), OkStatus());
}

// How many of ten calls with 60 KB that nobody reads are refused.
rt::Task<Result<int>> RefusedOfTen(RpcChannel* channel) {
  std::vector<std::unique_ptr<MessageStream>> streams;
  for (int i = 0; i < 10; ++i) {
    const RpcOptions options;
    CO_TRY(auto stream, co_await channel->Open(H2World::kDeaf, options));
    EXPECT_TRUE(stream->TryWrite(std::string(60'000, 'x')));
    streams.push_back(std::move(stream));
  }
  int refused = 0;
  for (const auto& stream : streams) {
    const auto read = co_await rt::WithDeadline(stream->Read(), Duration::Millis(200));
    if (read.status().Is(Reason::kTooManyRequests)) ++refused;
  }
  co_return refused;
}
rt::Task<Status> BytesAreFew(H2World* world) {
  CO_TRY(auto nobody, co_await world->Dial(world->Nobody()));
  CO_TRY(const int of_nobody, co_await RefusedOfTen(nobody.get()));
  EXPECT_EQ(of_nobody, 7) << "three calls of 60 KB have room in 200 KB";
  CO_TRY(auto host, co_await world->Dial(world->Client("host-1")));
  CO_TRY(const int of_host, co_await RefusedOfTen(host.get()));
  EXPECT_EQ(of_host, 0);
  CO_TRY(auto user, co_await DialAs(world, "jane"));
  CO_TRY(const int of_user, co_await RefusedOfTen(user.get()));
  EXPECT_EQ(of_user, 0);
  for (RpcChannel* channel : {nobody.get(), host.get(), user.get()}) {
    CO_TRY_STATUS(co_await channel->Close());
  }
  co_return OkStatus();
}
TEST(AnonymousPeer, MayMakeTheServerHoldFewBytes) {
  H2World world;
  H2ServerOptions options;
  options.anonymous.bytes_max = 200'000;
  EXPECT_EQ(world.Run(options, BytesAreFew), OkStatus());
}

rt::Task<Status> HeadsAreBytes(H2World* world) {
  CO_TRY(auto nobody, co_await world->Dial(world->Nobody()));
  RpcOptions options;
  options.metadata["x-large"] = std::string(10'000, 'x');
  std::vector<std::unique_ptr<MessageStream>> calls;
  for (int i = 0; i < 10; ++i) {
    CO_TRY(auto call, co_await nobody->Open(H2World::kEcho, options));
    calls.push_back(std::move(call));
  }
  int refused = 0;
  for (const auto& call : calls) {
    const auto read = co_await rt::WithDeadline(call->Read(), Duration::Millis(200));
    if (read.status().Is(Reason::kTooManyRequests)) ++refused;
  }
  EXPECT_EQ(refused, 5);
  // What is over is not held.
  calls.clear();
  CO_TRY_STATUS(co_await ExpectServed(nobody.get()));
  CO_TRY(const std::string answer, co_await nobody->Call(H2World::kEcho, "x", options));
  EXPECT_EQ(answer, "x");
  co_return co_await nobody->Close();
}
TEST(AnonymousPeer, IsChargedForTheHeadersOfItsCalls) {
  H2World world;
  H2ServerOptions options;
  options.anonymous.bytes_max = 60'000;
  EXPECT_EQ(world.Run(options, HeadsAreBytes), OkStatus());
}

rt::Task<Status> RequestIsNotWaitedFor(H2World* world) {
  CO_TRY(auto nobody, co_await world->Dial(world->Nobody()));
  const RpcOptions options;
  CO_TRY(auto half, co_await nobody->Open(H2World::kKnownOnly, options));
  const auto refused = co_await rt::WithDeadline(half->Read(), kLimit);
  EXPECT_EQ(refused.status().reason(), Reason::kUnauthorized) << refused.status();
  half.reset();
  CO_TRY(auto host, co_await world->Dial(world->Client("host-1")));
  CO_TRY(const std::string answer, co_await host->Call(H2World::kKnownOnly, "x", WithinLimit()));
  EXPECT_EQ(answer, "x");
  CO_TRY_STATUS(co_await host->Close());
  co_return co_await nobody->Close();
}
TEST(AnonymousPeer, IsRefusedBeforeItsRequestIsRead) {
  H2World world;
  EXPECT_EQ(world.Run({}, RequestIsNotWaitedFor), OkStatus());
}

}  // namespace
}  // namespace berth::net
