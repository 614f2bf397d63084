// SPDX-License-Identifier: Apache-2.0
// A store has one server at a time; who was killed is back at once, who is another waits.
#include "app/sole/sole_server.h"

#include <gtest/gtest.h>

#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/memory/memory_store.h"

namespace berth::app {
namespace {

class SoleServerTest : public testing::Test {
 protected:
  ~SoleServerTest() override {
    EXPECT_TRUE(rt::RunTask(loop_, scope_.Close()).ok());
    store_.reset();
  }
  Result<std::unique_ptr<SoleServer>> Take(const std::string& id) {
    SoleServerOptions options{.id = id, .name = "host-of-" + id};
    return rt::RunTask(loop_, SoleServer::Take(loop_, *store_, std::move(options)));
  }
  rt::Task<Status> Note(SoleServer* server) {
    ended_ = co_await server->Keep();
    co_return OkStatus();
  }

  rt::SimLoop loop_{1};
  std::unique_ptr<store::MemoryStore> memory_ = store::MemoryStore::Open(loop_);
  std::unique_ptr<store::Store> store_ = memory_->NewHandle();
  rt::TaskScope scope_{loop_};
  Status ended_;
};

TEST_F(SoleServerTest, RefusesASecondOneWithTheNameOfTheFirst) {
  const auto first = Take("a");
  ASSERT_TRUE(first.ok()) << first.status();
  scope_.Spawn("keep", Note(first->get()));
  const auto second = Take("b");
  EXPECT_EQ(second.status().reason(), Reason::kConflict);
  EXPECT_NE(second.status().message().find("host-of-a"), std::string_view::npos);
  loop_.RunFor(Duration::Minutes(5));
  EXPECT_TRUE(ended_.ok()) << "the first one keeps it: " << ended_;
}

TEST_F(SoleServerTest, IsBackAtOnceAfterAKill) {
  ASSERT_TRUE(Take("a").ok());
  const Time before = loop_.Now();
  const auto again = Take("a");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_LT(loop_.Now() - before, Duration::Seconds(1));
  scope_.Spawn("keep", Note(again->get()));
  // The lease of the killed one ends and takes nothing with it.
  loop_.RunFor(Duration::Minutes(1));
  EXPECT_TRUE(ended_.ok()) << ended_;
  EXPECT_FALSE(Take("b").ok());
}

TEST_F(SoleServerTest, AnotherOneFollowsWhenTheFirstIsGone) {
  const auto killed = Take("a");
  ASSERT_TRUE(killed.ok());
  const auto second = Take("b");
  ASSERT_TRUE(second.ok()) << second.status();
  // The first was only paused: it sees that its place is taken.
  scope_.Spawn("keep", Note(killed->get()));
  loop_.RunFor(Duration::Seconds(20));
  EXPECT_EQ(ended_.reason(), Reason::kConflict) << ended_;
}

TEST_F(SoleServerTest, WhoLeavesMakesRoom) {
  const auto first = Take("a");
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(rt::RunTask(loop_, (*first)->Leave()).ok());
  const Time before = loop_.Now();
  EXPECT_TRUE(Take("b").ok());
  EXPECT_LT(loop_.Now() - before, Duration::Seconds(1));
}

}  // namespace
}  // namespace berth::app
