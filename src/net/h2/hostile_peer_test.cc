// SPDX-License-Identifier: Apache-2.0
// Peers that mean no good: each is stopped, costs a bounded amount, and nobody else notices.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/h2/h2_test_world.h"
#include "net/socket.h"
#include "net/tls_stream.h"
#include "rt/deadline.h"
#include "rt/scope.h"

namespace berth::net {
namespace {

constexpr Duration kLimit = Duration::Seconds(30);

constexpr char kData = 0;
constexpr char kHeaders = 1;
constexpr char kPriority = 2;
constexpr char kReset = 3;
constexpr char kSettings = 4;
constexpr char kPing = 6;
constexpr char kGoaway = 7;
constexpr char kWindowUpdate = 8;
constexpr char kContinuation = 9;
constexpr char kEndStream = 1;
constexpr char kEndHeaders = 4;

std::string Number(size_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

std::string Frame(char type, char flags, size_t stream, const std::string& payload) {
  return Number(payload.size(), 3) + type + flags + Number(stream, 4) + payload;
}

// An HPACK field that enters no table.
std::string Literal(const std::string& name, const std::string& value) {
  const auto integer = [](size_t size) {
    std::string text;
    if (size < 127) return text + static_cast<char>(size);
    text += static_cast<char>(127);
    for (size -= 127; size >= 128; size /= 128) text += static_cast<char>(size % 128 + 128);
    return text + static_cast<char>(size);
  };
  return std::string(1, '\0') + integer(name.size()) + name + integer(value.size()) + value;
}

std::string CallFields(const std::string& path) {
  return Literal(":method", "POST") + Literal(":scheme", "https") + Literal(":path", path) +
         Literal(":authority", "x") + Literal("content-type", "application/grpc") +
         Literal("te", "trailers");
}

std::string Message(const std::string& text) {
  return std::string(1, '\0') + Number(text.size(), 4) + text;
}

std::string Preface(const std::string& settings = {}) {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, settings);
}

// A peer that sends what it likes.
class Hostile {
 public:
  static rt::Task<Result<std::unique_ptr<Hostile>>> Connect(H2World* world) {
    CO_TRY(const auto context,
           TlsContext::NewClient({.ca_pem = world->pki.ca_pem(), .alpn = {"h2"}}));
    CO_TRY(const int fd, co_await ConnectTcp(&world->loop, "127.0.0.1", world->server->port()));
    const int receive_buffer = 4'096;
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    CO_TRY(auto stream,
           co_await TlsStream::Connect(&world->loop, fd, context, "127.0.0.1", kLimit));
    stream->SetWriteTimeout(Duration::Seconds(5));
    co_return std::make_unique<Hostile>(std::move(stream));
  }
  explicit Hostile(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}

  rt::Task<Status> Send(std::string bytes) {
    const std::string_view part = bytes;
    co_return co_await stream_->Write(std::span(&part, 1));
  }
  // Until the server ends the connection. Failure is an end too.
  rt::Task<Status> ReadToTheEnd() {
    for (;;) {
      const auto read = co_await stream_->Read(scratch_);
      if (!read.ok() && read.status().Is(Reason::kCancelled)) co_return read.status();
      if (!read.ok() || *read == 0) co_return OkStatus();
      seen_.append(scratch_.data(), *read);
      if (seen_.size() > kSeenMax) seen_.erase(0, seen_.size() - kSeenMax);
    }
  }
  // Sends `bytes` over and over while it reads, until the server ends the connection.
  rt::Task<Status> FloodToTheEnd(std::string bytes) {
    rt::TaskScope reading(stream_->loop());
    reading.Spawn("hostile.read", ReadToTheEnd());
    Status sent;
    for (int i = 0; i < kRepeatMax && sent.ok() && reading.size() > 0; ++i) {
      sent = co_await Send(bytes);
      CO_TRY_STATUS(co_await rt::Yield());
    }
    EXPECT_TRUE(!sent.ok() || reading.size() == 0) << "the server takes everything";
    co_return co_await reading.Close();
  }
  const std::string& seen() const { return seen_; }

 private:
  static constexpr size_t kSeenMax = 64 * 1024;
  static constexpr int kRepeatMax = 20'000;
  std::unique_ptr<Stream> stream_;
  std::string seen_;
  std::array<char, 16 * 1024> scratch_{};
};

// A well-behaved client beside it.
rt::Task<Status> ServedStill(H2World* world, RpcChannel* channel) {
  RpcOptions options;
  options.deadline = kLimit;
  CO_TRY(const std::string answer, co_await channel->Call(H2World::kEcho, "still", options));
  EXPECT_EQ(answer, "still");
  CO_TRY(auto newcomer, co_await world->Dial(world->Client("newcomer")));
  CO_TRY(const std::string again, co_await newcomer->Call(H2World::kEcho, "new", options));
  EXPECT_EQ(again, "new");
  co_return co_await newcomer->Close();
}

struct Attack {
  const char* name;
  // What is sent again and again.
  std::function<std::string()> flood;
};

rt::Task<Status> RunAttack(H2World* world, const Attack* attack) {
  CO_TRY(auto good, co_await world->Dial(world->Client("good")));
  CO_TRY(auto hostile, co_await Hostile::Connect(world));
  CO_TRY_STATUS(co_await hostile->Send(Preface()));
  rt::TaskScope attacking(world->loop);
  attacking.Spawn("hostile.flood", hostile->FloodToTheEnd(attack->flood()));
  CO_TRY_STATUS(co_await ServedStill(world, good.get()));
  CO_TRY_STATUS(co_await rt::WithDeadline(attacking.Join(), kLimit));
  CO_TRY_STATUS(co_await ServedStill(world, good.get()));
  co_return co_await good->Close();
}

std::string Repeat(const std::string& bytes, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += bytes;
  return all;
}

// Calls that are broken off at once, with ever new stream numbers.
std::string RapidResets() {
  std::string all;
  for (size_t stream = 1; stream < 60'000; stream += 2) {
    all += Frame(kHeaders, kEndHeaders, stream, CallFields(H2World::kWait));
    all += Frame(kReset, 0, stream, Number(8, 4));
  }
  return all;
}

std::string HeaderBomb() {
  std::string fields = CallFields(H2World::kEcho);
  for (int i = 0; i < 30; ++i) fields += Literal("x-" + std::to_string(i), std::string(1'000, 'x'));
  std::string all = Frame(kHeaders, 0, 1, fields.substr(0, 16'000));
  all += Frame(kContinuation, 0, 1, fields.substr(16'000));
  // Without an end, and without anything in them.
  all += Repeat(Frame(kContinuation, 0, 1, ""), 10'000);
  return all;
}

TEST(HostilePeer, FloodsAreStopped) {
  const Attack kAttacks[] = {
      {"settings",
       [] { return Repeat(Frame(kSettings, 0, 0, Number(3, 2) + Number(100, 4)), 500); }},
      {"pings", [] { return Repeat(Frame(kPing, 0, 0, "12345678"), 500); }},
      {"resets of nothing", [] { return Repeat(Frame(kReset, 0, 1, Number(8, 4)), 500); }},
      {"rapid resets", RapidResets},
      {"priorities", [] { return Repeat(Frame(kPriority, 0, 1, Number(0, 4) + "\x10"), 500); }},
      {"window updates", [] { return Repeat(Frame(kWindowUpdate, 0, 0, Number(1, 4)), 500); }},
      {"empty data",
       [] {
         return Frame(kHeaders, kEndHeaders, 1, CallFields(H2World::kDeaf)) +
                Repeat(Frame(kData, 0, 1, ""), 5'000);
       }},
      {"header bomb", HeaderBomb},
      {"garbage", [] { return std::string(1'000, '\xfe'); }},
      {"unknown frames", [] { return Repeat(Frame(0x55, 0, 0, "x"), 500); }},
      {"more than the window",
       [] {
         return Frame(kHeaders, kEndHeaders, 1, CallFields(H2World::kDeaf)) +
                Repeat(Frame(kData, 0, 1, std::string(16'000, '\0')), 10);
       }},
  };
  for (const Attack& attack : kAttacks) {
    SCOPED_TRACE(attack.name);
    H2World world;
    const auto script = [&attack](H2World* served) { return RunAttack(served, &attack); };
    EXPECT_EQ(world.Run({}, script), OkStatus());
    EXPECT_EQ(world.waiting, 0) << "handlers that nobody waits for";
  }
}

rt::Task<Status> LargeFieldsGetAnAnswer(H2World* world) {
  CO_TRY(auto hostile, co_await Hostile::Connect(world));
  std::string fields = CallFields(H2World::kEcho);
  for (int i = 0; i < 18; ++i) fields += Literal("x-" + std::to_string(i), std::string(1'000, 'x'));
  CO_TRY_STATUS(co_await hostile->Send(Preface() + Frame(kHeaders, 0, 1, fields.substr(0, 10'000)) +
                                       Frame(kContinuation, kEndHeaders, 1, fields.substr(10'000)) +
                                       Frame(kGoaway, 0, 0, Number(0, 8))));
  CO_TRY_STATUS(co_await rt::WithDeadline(hostile->ReadToTheEnd(), kLimit));
  EXPECT_NE(hostile->seen().find(std::string(1, kHeaders) + '\x05' + Number(1, 4)),
            std::string::npos)
      << "a head that ends the stream";
  co_return OkStatus();
}
TEST(HostilePeer, AHeaderListOverTheLimitIsRefusedNotDropped) {
  H2World world;
  EXPECT_EQ(world.Run({}, LargeFieldsGetAnAnswer), OkStatus());
}

rt::Task<Status> NeverOpensItsWindow(H2World* world) {
  CO_TRY(auto good, co_await world->Dial(world->Client("good")));
  CO_TRY(auto hostile, co_await Hostile::Connect(world));
  // SETTINGS_INITIAL_WINDOW_SIZE 0: every answer stays with the server.
  std::string calls = Preface(Number(4, 2) + Number(0, 4));
  for (size_t stream = 1; stream < 200; stream += 2) {
    calls += Frame(kHeaders, kEndHeaders, stream, CallFields(H2World::kHuge));
    calls += Frame(kData, kEndStream, stream, Message("4000000"));
  }
  const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  CO_TRY_STATUS(co_await hostile->Send(calls));
  rt::TaskScope reading(world->loop);
  reading.Spawn("hostile.read", hostile->ReadToTheEnd());
  CO_TRY_STATUS(co_await ServedStill(world, good.get()));
  CO_TRY_STATUS(co_await ServedStill(world, good.get()));
  const size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
  EXPECT_LT(after, before + size_t{32} * 1024 * 1024) << "100 answers of 4 MB would be 400 MB";
  // After the stall timeout even that is gone.
  while (mallinfo2().uordblks + mallinfo2().hblkhd > before + size_t{6} * 1024 * 1024) {
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(20)));
  }
  CO_TRY_STATUS(co_await reading.Close());
  co_return co_await good->Close();
}
TEST(HostilePeer, APeerThatNeverOpensItsWindowCostsABoundedAmountAndTime) {
  H2World world;
  H2ServerOptions options;
  options.limits.stall_timeout = Duration::Millis(300);
  EXPECT_EQ(world.Run(options, NeverOpensItsWindow), OkStatus());
}

rt::Task<Status> UnreadMessages(H2World* world) {
  CO_TRY(auto good, co_await world->Dial(world->Client("good")));
  CO_TRY(auto hostile, co_await world->Dial(world->Client("hostile")));
  RpcOptions options;
  std::vector<std::unique_ptr<MessageStream>> streams;
  for (int i = 0; i < 10; ++i) {
    CO_TRY(auto stream, co_await hostile->Open(H2World::kDeaf, options));
    EXPECT_TRUE(stream->TryWrite(std::string(60'000, 'x')));
    streams.push_back(std::move(stream));
  }
  // 10 * 60 KB that nobody reads, and 200 KB are allowed: three calls stay.
  int refused = 0;
  for (const auto& stream : streams) {
    const auto read = co_await rt::WithDeadline(stream->Read(), Duration::Millis(200));
    if (read.status().Is(Reason::kTooManyRequests)) ++refused;
  }
  EXPECT_EQ(refused, 7);
  CO_TRY_STATUS(co_await ServedStill(world, good.get()));
  streams.clear();
  CO_TRY_STATUS(co_await hostile->Close());
  co_return co_await good->Close();
}
TEST(HostilePeer, UnreadMessagesAreBoundedPerConnection) {
  H2World world;
  H2ServerOptions options;
  options.limits.received_bytes_max = 200'000;
  EXPECT_EQ(world.Run(options, UnreadMessages), OkStatus());
}

// Connects and says nothing: as many as may be in a handshake at once, and more.
rt::Task<Status> SlowLoris(H2World* world) {
  CO_TRY(auto good, co_await world->Dial(world->Client("good")));
  std::vector<std::unique_ptr<Socket>> silent;
  for (int i = 0; i < 50; ++i) {
    CO_TRY(const int fd, co_await ConnectTcp(&world->loop, "127.0.0.1", world->server->port()));
    silent.push_back(std::make_unique<Socket>(world->loop, fd));
  }
  CO_TRY_STATUS(co_await ServedStill(world, good.get()));
  EXPECT_LE(world->server->connections(), 22U) << "the oldest were given up";
  co_return co_await good->Close();
}
TEST(HostilePeer, PeersThatNeverFinishAHandshakeKeepNobodyOut) {
  H2World world;
  H2ServerOptions options;
  options.handshakes_max = 20;
  EXPECT_EQ(world.Run(options, SlowLoris), OkStatus());
}

rt::Task<Status> SaysNothingAfterTheHandshake(H2World* world) {
  CO_TRY(auto hostile, co_await Hostile::Connect(world));
  co_return co_await rt::WithDeadline(hostile->ReadToTheEnd(), kLimit);
}
TEST(HostilePeer, APeerWithoutAPrefaceIsClosed) {
  H2World world;
  H2ServerOptions options;
  options.limits.settings_timeout = Duration::Millis(50);
  EXPECT_EQ(world.Run(options, SaysNothingAfterTheHandshake), OkStatus());
}

// Begins something, adds to it now and then, answers pings (or is not asked), and never ends it.
struct Dribble {
  std::string begun;
  std::string more;
};
rt::Task<Status> SendSlowly(Hostile* hostile, const Dribble* dribble) {
  Status sent = co_await hostile->Send(Preface() + dribble->begun);
  while (sent.ok()) {
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(20)));
    sent = co_await hostile->Send(dribble->more);
  }
  co_return OkStatus();
}
rt::Task<Status> HeadNeverEnds(H2World* world, const Dribble* dribble) {
  CO_TRY(auto hostile, co_await Hostile::Connect(world));
  rt::TaskScope sending(world->loop);
  sending.Spawn("hostile.dribble", SendSlowly(hostile.get(), dribble));
  const Status read = co_await rt::WithDeadline(hostile->ReadToTheEnd(), Duration::Seconds(3));
  EXPECT_NE(hostile->seen().find("does not end"), std::string::npos);
  CO_TRY_STATUS(co_await sending.Close());
  co_return read;
}
TEST(HostilePeer, ACallWhoseHeadNeverEndsEndsTheConnection) {
  H2World world;
  H2ServerOptions options;
  options.limits.head_timeout = Duration::Millis(100);
  // One frame with one long field, of which a byte comes now and then.
  const std::string head = Frame(
      kHeaders, kEndHeaders, 1, CallFields(H2World::kEcho) + Literal("x", std::string(9'000, 'x')));
  const Dribble dribble{.begun = head.substr(0, 500), .more = "x"};
  const auto script = [&](H2World* served) { return HeadNeverEnds(served, &dribble); };
  EXPECT_EQ(world.Run(options, script), OkStatus());
}

rt::Task<Status> RequestNeverEnds(H2World* world, const Dribble* dribble) {
  CO_TRY(auto hostile, co_await Hostile::Connect(world));
  rt::TaskScope sending(world->loop);
  sending.Spawn("hostile.dribble", SendSlowly(hostile.get(), dribble));
  rt::TaskScope reading(world->loop);
  reading.Spawn("hostile.read", hostile->ReadToTheEnd());
  // A head that ends the stream: the answer is all status.
  const std::string answer = std::string(1, kHeaders) + '\x05' + Number(1, 4);
  const Time limit = world->loop.Now() + Duration::Seconds(3);
  while (hostile->seen().find(answer) == std::string::npos && world->loop.Now() < limit) {
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(5)));
  }
  EXPECT_NE(hostile->seen().find(answer), std::string::npos);
  CO_TRY_STATUS(co_await sending.Close());
  co_return co_await reading.Close();
}
TEST(HostilePeer, ARequestThatNeverEndsGetsATimeout) {
  const std::string head = Frame(kHeaders, kEndHeaders, 1, CallFields(H2World::kEcho));
  const Dribble kDribbles[] = {
      {.begun = head, .more = Frame(kData, 0, 1, std::string(1, '\0'))},
      {.begun = head + Frame(kData, 0, 1, std::string(1, '\0') + Number(60'000, 4)),
       .more = Frame(kData, 0, 1, "x")},
      // The whole message, but not its end.
      {.begun = head + Frame(kData, 0, 1, Message("x")), .more = Frame(kPing, 0, 0, "12345678")},
  };
  for (const Dribble& dribble : kDribbles) {
    H2World world;
    H2ServerOptions options;
    options.limits.request_timeout = Duration::Millis(100);
    const auto script = [&](H2World* served) { return RequestNeverEnds(served, &dribble); };
    EXPECT_EQ(world.Run(options, script), OkStatus());
  }
}

// Its answer fills everything between the two, and it takes none of it.
rt::Task<Status> EndedWithoutListening(H2World* world) {
  CO_TRY(auto hostile, co_await Hostile::Connect(world));
  std::string call = Preface(Number(4, 2) + Number(0x7fffffff, 4)) +
                     Frame(kWindowUpdate, 0, 0, Number(0x7fff0000, 4));
  call += Frame(kHeaders, kEndHeaders, 1, CallFields(H2World::kHuge));
  call += Frame(kData, kEndStream, 1, Message("4000000"));
  CO_TRY_STATUS(co_await hostile->Send(call));
  CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(100)));
  CO_TRY(auto next, co_await world->Dial(world->Nobody()));
  const Time limit = world->loop.Now() + Duration::Seconds(10);
  while (world->server->connections() > 1 && world->loop.Now() < limit) {
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(5)));
  }
  EXPECT_EQ(world->server->connections(), 1U);
  co_return co_await next->Close();
}
TEST(HostilePeer, WhoDoesNotHearThatItIsEndedIsEndedAllTheSame) {
  H2World world;
  H2ServerOptions options;
  options.anonymous.connections_max = 1;
  options.limits.write_timeout = Duration::Hours(1);
  EXPECT_EQ(world.Run(options, EndedWithoutListening), OkStatus());
}

// Sends requests and reads nothing: what the server would say is held back by TCP.
rt::Task<Status> ReadsNothing(H2World* world) {
  CO_TRY(auto good, co_await world->Dial(world->Client("good")));
  CO_TRY(auto hostile, co_await Hostile::Connect(world));
  // Windows wide open, and answers that fill what the kernel holds.
  std::string calls = Preface(Number(4, 2) + Number(0x7fffffff, 4)) +
                      Frame(kWindowUpdate, 0, 0, Number(0x7fff0000, 4));
  size_t stream = 1;
  for (; stream < 16; stream += 2) {
    calls += Frame(kHeaders, kEndHeaders, stream, CallFields(H2World::kHuge));
    calls += Frame(kData, kEndStream, stream, Message("4000000"));
  }
  Status sent = co_await hostile->Send(calls);
  while (sent.ok() && stream < 1'000'000) {
    calls.clear();
    for (int i = 0; i < 100; ++i, stream += 2) {
      calls += Frame(kHeaders, kEndHeaders | kEndStream, stream, CallFields("/no/such/method"));
    }
    sent = co_await hostile->Send(calls);
  }
  EXPECT_FALSE(sent.ok()) << "the server takes everything";
  CO_TRY_STATUS(co_await ServedStill(world, good.get()));
  co_return co_await good->Close();
}
TEST(HostilePeer, APeerThatReadsNothingIsNotReadFromEither) {
  H2World world;
  H2ServerOptions options;
  options.limits.write_timeout = Duration::Millis(500);
  EXPECT_EQ(world.Run(options, ReadsNothing), OkStatus());
}

}  // namespace
}  // namespace berth::net
