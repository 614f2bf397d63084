// SPDX-License-Identifier: Apache-2.0
// What handlers on another loop say of a peer reaches the connection: whose it is, and that it may
// not ask.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "net/h2/h2_test_world.h"
#include "net/relay/threaded_server.h"

namespace berth::net {
namespace {

constexpr Duration kLimit = Duration::Seconds(20);

// An H2World whose connections have a thread.
struct ThreadedWorld : H2World {
  using Test = rt::Task<Status> (*)(ThreadedWorld*);
  Status Run(H2ServerOptions options, Test test) {
    return rt::RunTask(loop, RunTest(std::move(options), test));
  }
  rt::Task<Status> RunTest(H2ServerOptions options, Test test) {
    CO_TRY(options.tls, NewH2ServerTls(Tls()));
    CO_TRY(threaded, co_await ThreadedServer::Start(&loop, std::move(options), Routes()));
    const Status status = co_await test(this);
    CO_TRY_STATUS(co_await threaded->Stop());
    threaded.reset();
    co_return status;
  }
  rt::Task<Result<std::unique_ptr<RpcChannel>>> DialNobody() {
    return dialer.Dial(threaded->address(), Nobody(), kDialLimit);
  }

  std::unique_ptr<ThreadedServer> threaded;
};

rt::Task<Status> SecondOfAUserIsRefused(ThreadedWorld* world) {
  RpcOptions options;
  options.deadline = kLimit;
  CO_TRY(auto first, co_await world->DialNobody());
  CO_TRY(const std::string known, co_await first->Call(H2World::kIntroduce, "jane", options));
  EXPECT_EQ(known, "introduced");
  CO_TRY(auto second, co_await world->DialNobody());
  // The answer and the end of the connection are on the same way.
  const auto refused = co_await second->Call(H2World::kIntroduce, "jane", options);
  const auto after = co_await second->Call(H2World::kEcho, "x", options);
  EXPECT_FALSE(refused.ok() && after.ok());
  CO_TRY(const std::string answer, co_await first->Call(H2World::kEcho, "x", options));
  EXPECT_EQ(answer, "x");
  CO_TRY_STATUS(co_await second->Close());
  co_return co_await first->Close();
}
TEST(RelayPeer, IsIntroducedToItsConnection) {
  ThreadedWorld world;
  H2ServerOptions options;
  options.connections_per_identity_max = 1;
  EXPECT_EQ(world.Run(std::move(options), SecondOfAUserIsRefused), OkStatus());
}

rt::Task<Status> HalfARequestIsRefused(ThreadedWorld* world) {
  CO_TRY(auto nobody, co_await world->DialNobody());
  RpcOptions options;
  options.deadline = kLimit;
  CO_TRY(auto half, co_await nobody->Open(H2World::kKnownOnly, options));
  const auto refused = co_await half->Read();
  EXPECT_EQ(refused.status().reason(), Reason::kUnauthorized) << refused.status();
  half.reset();
  co_return co_await nobody->Close();
}
TEST(RelayPeer, IsRefusedBeforeItsRequestIsRead) {
  ThreadedWorld world;
  EXPECT_EQ(world.Run({}, HalfARequestIsRefused), OkStatus());
}

}  // namespace
}  // namespace berth::net
