// SPDX-License-Identifier: Apache-2.0
// The contract of Stream, over a socket pair, plain and with TLS on top.
#include "net/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <string>
#include <utility>

#include "net/testing/http_fixture.h"
#include "net/tls_stream.h"
#include "rt/event.h"
#include "rt/join_all.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

struct World {
  rt::AsioLoop loop;
  TestTls tls;
  std::unique_ptr<Stream> a;
  std::unique_ptr<Stream> b;
};

using Streams = Result<std::unique_ptr<Stream>>;

rt::Task<Status> Pair(World* world, bool encrypted) {
  std::array<int, 2> fds{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  if (!encrypted) {
    world->a = std::make_unique<PlainStream>(world->loop, fds[0]);
    world->b = std::make_unique<PlainStream>(world->loop, fds[1]);
    co_return OkStatus();
  }
  std::vector<rt::Task<Streams>> tasks;
  tasks.push_back(TlsStream::Connect(
      &world->loop, fds[0], world->tls.client(), "localhost", Duration::Seconds(5)));
  tasks.push_back(
      TlsStream::Accept(&world->loop, fds[1], world->tls.server(), Duration::Seconds(5)));
  std::vector<Streams> streams = co_await rt::JoinAll(std::move(tasks));
  CO_TRY(world->a, std::move(streams[0]));
  CO_TRY(world->b, std::move(streams[1]));
  EXPECT_EQ(world->a->alpn(), "http/1.1");
  co_return OkStatus();
}

rt::Task<Status> WriteParts(Stream* stream, std::vector<std::string> parts) {
  const std::vector<std::string_view> views(parts.begin(), parts.end());
  co_return co_await stream->Write(views);
}

rt::Task<Result<std::string>> ReadSome(Stream* stream, size_t want) {
  std::string text;
  std::array<char, 1024> buffer{};
  while (text.size() < want) {
    CO_TRY(const size_t n, co_await stream->Read(buffer));
    if (n == 0) break;
    text.append(buffer.data(), n);
  }
  co_return text;
}

class StreamTest : public testing::TestWithParam<bool> {
 protected:
  using Script = std::function<rt::Task<Status>(World*)>;
  static rt::Task<Status> PairAndRun(World* world, bool encrypted, Script script) {
    CO_TRY_STATUS(co_await Pair(world, encrypted));
    const Status status = co_await script(world);
    world->a.reset();
    world->b.reset();
    co_return status;
  }
  void Run(Script script) {
    World world;
    EXPECT_EQ(rt::RunTask(world.loop, PairAndRun(&world, GetParam(), std::move(script))),
              OkStatus());
  }
};

rt::Task<Status> Gather(World* world) {
  std::vector<std::string> parts = {"head ", "", std::string(40'000, 'b'), "tail", "!"};
  std::string whole;
  for (const std::string& part : parts) whole += part;
  rt::TaskScope scope(world->loop);
  scope.Spawn("write", WriteParts(world->a.get(), parts));
  CO_TRY(const std::string got, co_await ReadSome(world->b.get(), whole.size()));
  EXPECT_EQ(got, whole);
  co_return co_await scope.Join();
}
TEST_P(StreamTest, WritesItsPartsInOrder) { Run(Gather); }

rt::Task<Status> BothWays(World* world) {
  const std::string large(3'000'000, 'x');
  rt::TaskScope scope(world->loop);
  scope.Spawn("write", WriteParts(world->a.get(), {large}));
  scope.Spawn("write", WriteParts(world->b.get(), {large}));
  std::vector<rt::Task<Result<std::string>>> reads;
  reads.push_back(ReadSome(world->a.get(), large.size()));
  reads.push_back(ReadSome(world->b.get(), large.size()));
  const auto got = co_await rt::JoinAll(std::move(reads));
  EXPECT_EQ(got[0]->size(), large.size());
  EXPECT_EQ(got[1]->size(), large.size());
  co_return co_await scope.Join();
}
TEST_P(StreamTest, MovesMuchInBothDirectionsAtOnce) { Run(BothWays); }

rt::Task<Status> OrderlyEnd(World* world) {
  CO_TRY_STATUS(co_await WriteParts(world->a.get(), {"bye"}));
  world->a->Shutdown();
  CO_TRY(const std::string got, co_await ReadSome(world->b.get(), 100));
  EXPECT_EQ(got, "bye");
  std::array<char, 8> buffer{};
  CO_TRY(const size_t end, co_await world->b->Read(buffer));
  EXPECT_EQ(end, 0U);
  co_return OkStatus();
}
TEST_P(StreamTest, EndsInOrder) { Run(OrderlyEnd); }

rt::Task<Status> Deadlines(World* world) {
  std::array<char, 8> buffer{};
  world->b->SetReadDeadline(world->loop.Now() + Duration::Millis(10));
  const auto late = co_await world->b->Read(buffer);
  EXPECT_EQ(late.status().reason(), Reason::kTimeout);
  world->b->SetReadDeadline(std::nullopt);
  CO_TRY_STATUS(co_await WriteParts(world->a.get(), {"x"}));
  CO_TRY(const size_t n, co_await world->b->Read(buffer));
  EXPECT_EQ(n, 1U);
  world->a->SetWriteTimeout(Duration::Millis(10));
  const Status stuck = co_await WriteParts(world->a.get(), {std::string(30'000'000, 'x')});
  EXPECT_EQ(stuck.reason(), Reason::kTimeout);
  const Status after = co_await WriteParts(world->a.get(), {"x"});
  EXPECT_EQ(after.reason(), Reason::kUnavailable) << "half a record may be out: no more writes";
  co_return OkStatus();
}
TEST_P(StreamTest, KeepsDeadlines) { Run(Deadlines); }

rt::Task<Status> ReadInto(Stream* stream, Result<std::string>* out) {
  *out = co_await ReadSome(stream, 1);
  co_return OkStatus();
}

rt::Task<Status> CancelRead(World* world) {
  Result<std::string> read = std::string();
  rt::TaskScope scope(world->loop);
  scope.Spawn("read", ReadInto(world->b.get(), &read));
  CO_TRY_STATUS(co_await scope.Close());
  EXPECT_EQ(read.status().reason(), Reason::kCancelled);
  CO_TRY_STATUS(co_await WriteParts(world->a.get(), {"later"}));
  CO_TRY(const std::string got, co_await ReadSome(world->b.get(), 5));
  EXPECT_EQ(got, "later");
  co_return OkStatus();
}
TEST_P(StreamTest, TakesNothingInACancelledRead) { Run(CancelRead); }

rt::Task<Status> WatchGone(World* world) {
  rt::Event gone;
  world->b->WatchPeer([&gone] { gone.Set(); });
  CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(5)));
  EXPECT_FALSE(gone.is_set());
  world->a.reset();
  co_return co_await gone.Wait();
}
TEST_P(StreamTest, NoticesThatAPeerIsGone) { Run(WatchGone); }

rt::Task<Status> WatchShutdown(World* world) {
  rt::Event gone;
  // Bytes and the close arrive together and are read together.
  CO_TRY_STATUS(co_await WriteParts(world->a.get(), {"x"}));
  world->a->Shutdown();
  CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(5)));
  CO_TRY_STATUS(co_await ReadSome(world->b.get(), 1));
  world->b->WatchPeer([&gone] { gone.Set(); });
  co_return co_await gone.Wait();
}
TEST_P(StreamTest, NoticesACloseRightBehindTheLastBytes) { Run(WatchShutdown); }

rt::Task<Status> WatchData(World* world) {
  bool gone = false;
  world->b->WatchPeer([&gone] { gone = true; });
  CO_TRY_STATUS(co_await WriteParts(world->a.get(), {"next request"}));
  CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(5)));
  EXPECT_FALSE(gone);
  EXPECT_FALSE(world->b->IsQuiet());
  world->b->WatchPeer(nullptr);
  CO_TRY(const std::string got, co_await ReadSome(world->b.get(), 12));
  EXPECT_EQ(got, "next request");
  EXPECT_TRUE(world->b->IsQuiet());
  co_return OkStatus();
}
TEST_P(StreamTest, LeavesBytesAloneWhileItWatches) { Run(WatchData); }

INSTANTIATE_TEST_SUITE_P(Both, StreamTest, testing::Bool(), [](const auto& test) {
  return std::string(test.param ? "Tls" : "Plain");
});

}  // namespace
}  // namespace berth::net
