// SPDX-License-Identifier: Apache-2.0
// A client that is cut off reaches nothing, is not told so, and what it sent arrives once the cut
// is healed; others do not notice.
#include "store/etcd/testing/client_links.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "net/socket.h"
#include "net/stream.h"
#include "net/url.h"

namespace berth::store {
namespace {

// A member that sends back what it gets.
class Echo {
 public:
  explicit Echo(rt::AsioLoop& loop)
      : loop_(loop), scope_(loop), acceptor_(loop, *net::ListenTcp("127.0.0.1", 0), Taker()) {}
  ~Echo() { EXPECT_EQ(rt::RunTask(loop_, Close()), OkStatus()); }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  std::string address() const { return acceptor_.address(); }
  const std::string& heard() const { return heard_; }
  // Until so many connections have ended.
  rt::Task<Status> AwaitEnds(int count) {
    while (ended_ < count) CO_TRY_STATUS(co_await end_.Wait());
    co_return OkStatus();
  }

 private:
  net::Acceptor::Take Taker() {
    return [this](int fd) {
      scope_.Spawn("echo", Answer(std::make_unique<net::PlainStream>(loop_, fd)));
    };
  }
  rt::Task<Status> Answer(std::unique_ptr<net::Stream> stream) {
    std::array<char, 256> buffer{};
    for (;;) {
      const Result<size_t> count = co_await stream->Read(buffer);
      if (count.status().Is(Reason::kCancelled)) co_return count.status();
      if (!count.ok() || *count == 0) break;
      const std::array parts = {std::string_view(buffer.data(), *count)};
      heard_ += parts[0];
      (void)co_await stream->Write(parts);  // to whoever may be gone
    }
    ++ended_;
    end_.Set();
    end_.Reset();
    co_return OkStatus();
  }
  rt::Task<Status> Close() {
    CO_TRY_STATUS(co_await acceptor_.Stop());
    co_return co_await scope_.Close();
  }

  rt::AsioLoop& loop_;
  std::string heard_;
  int ended_ = 0;
  rt::Event end_;
  rt::TaskScope scope_;
  net::Acceptor acceptor_;
};

struct World {
  rt::AsioLoop loop;
  Echo member{loop};
  ClientLinks links{loop, {member.address()}};
  ClientLinks others{loop, {member.address()}};
};

rt::Task<Result<std::unique_ptr<net::Stream>>> Dial(World* world, const ClientLinks* links) {
  CO_TRY(const auto where, net::ParseHostPort(links->endpoints()[0], 0));
  CO_TRY(const int fd, co_await net::ConnectTcp(&world->loop, where.host, where.port));
  co_return std::make_unique<net::PlainStream>(world->loop, fd);
}

rt::Task<Status> Say(net::Stream* stream, std::string words) {
  const std::array parts = {std::string_view(words)};
  co_return co_await stream->Write(parts);
}

// What the member has sent back so far, at least as long as `want`.
rt::Task<Result<std::string>> Hear(net::Stream* stream, size_t want) {
  std::string heard;
  std::array<char, 256> buffer{};
  while (heard.size() < want) {
    CO_TRY(const size_t count, co_await stream->Read(buffer));
    if (count == 0) break;
    heard.append(buffer.data(), count);
  }
  co_return heard;
}

rt::Task<Status> ThereAndBack(World* world, const ClientLinks* links, std::string words) {
  CO_TRY(const auto stream, co_await Dial(world, links));
  CO_TRY_STATUS(co_await Say(stream.get(), words));
  CO_TRY(const std::string heard, co_await Hear(stream.get(), words.size()));
  EXPECT_EQ(heard, words);
  co_return OkStatus();
}

rt::Task<Status> HoldsBytes(World* world) {
  CO_TRY(const auto stream, co_await Dial(world, &world->links));
  CO_TRY_STATUS(co_await Say(stream.get(), "before"));
  CO_TRY(const std::string before, co_await Hear(stream.get(), 6));
  EXPECT_EQ(before, "before");
  world->links.Cut();
  CO_TRY_STATUS(co_await Say(stream.get(), "held"));
  // Others come and go on the same loop, which had time enough for the bytes.
  for (int i = 0; i < 3; ++i) {
    CO_TRY_STATUS(co_await ThereAndBack(world, &world->others, std::to_string(i)));
  }
  EXPECT_EQ(world->member.heard(), "before012");
  EXPECT_TRUE(stream->IsQuiet()) << "it was told";
  world->links.Heal();
  CO_TRY(const std::string after, co_await Hear(stream.get(), 4));
  EXPECT_EQ(after, "held");
  co_return OkStatus();
}
TEST(ClientLinks, HoldWhatIsSentWhileTheyAreCut) {
  World world;
  EXPECT_EQ(rt::RunTask(world.loop, HoldsBytes(&world)), OkStatus());
}

rt::Task<Status> LateWords(World* world) {
  world->links.Cut();
  CO_TRY(auto stream, co_await Dial(world, &world->links));
  CO_TRY_STATUS(co_await Say(stream.get(), "late"));
  stream.reset();
  CO_TRY_STATUS(co_await ThereAndBack(world, &world->others, "a"));
  EXPECT_EQ(world->member.heard(), "a");
  world->links.Heal();
  CO_TRY_STATUS(co_await world->member.AwaitEnds(2));
  EXPECT_EQ(world->member.heard(), "alate");
  co_return OkStatus();
}
TEST(ClientLinks, BringWhatAClientSentThatIsGone) {
  World world;
  EXPECT_EQ(rt::RunTask(world.loop, LateWords(&world)), OkStatus());
}

}  // namespace
}  // namespace berth::store
