// SPDX-License-Identifier: Apache-2.0
#include "net/conformance/rpc_contract.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "net/conformance/rpc_bench.h"
#include "rt/deadline.h"
#include "rt/join_all.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

constexpr Duration kSoon = Duration::Millis(50);
constexpr Duration kLimit = Duration::Seconds(10);

// Reads one message and checks it.
rt::Task<Status> Expect(MessageStream* stream, std::string wanted) {
  CO_TRY(const std::optional<std::string> message, co_await stream->Read());
  EXPECT_EQ(message, wanted);
  co_return OkStatus();
}

rt::Task<Status> ExpectEnd(MessageStream* stream) {
  CO_TRY(const std::optional<std::string> message, co_await stream->Read());
  EXPECT_EQ(message, std::nullopt);
  co_return OkStatus();
}

rt::Task<Status> AUnaryCallIsAnswered(RpcBench* bench) {
  for (const std::string text : {"one", "", "three"}) {
    RpcOptions options;
    CO_TRY(const std::string answer, co_await bench->channel->Call(kEcho, text, options));
    EXPECT_EQ(answer, "echo " + text);
  }
  co_return OkStatus();
}

rt::Task<Status> ManyCallsShareAChannel(RpcBench* bench) {
  std::vector<rt::Task<Result<std::string>>> calls;
  for (int i = 0; i < 50; ++i) {
    calls.push_back(bench->channel->Call(kEcho, std::to_string(i), {}));
  }
  const auto answers = co_await rt::JoinAll(std::move(calls));
  for (size_t i = 0; i < answers.size(); ++i) {
    CO_TRY(const std::string answer, answers[i]);
    EXPECT_EQ(answer, "echo " + std::to_string(i));
  }
  co_return OkStatus();
}

rt::Task<Status> AnErrorArrivesWithAllItSays(RpcBench* bench) {
  RpcOptions options;
  const auto rich = co_await bench->channel->Call(kFail, "rich", options);
  const Status& status = rich.status();
  EXPECT_EQ(status.reason(), Reason::kInvalid);
  EXPECT_EQ(status.message(), "machine a/b is wrong");
  EXPECT_EQ(status.retry_after(), Duration::Seconds(7));
  EXPECT_EQ(status.object().name, "b");
  EXPECT_EQ(status.causes().size(), 2U);
  if (status.causes().size() == 2) {
    EXPECT_EQ(status.causes()[1].kind, CauseKind::kTooLong);
    EXPECT_EQ(status.causes()[1].field, "spec.x");
  }
  const auto plain = co_await bench->channel->Call(kFail, "plain", options);
  EXPECT_EQ(plain.status(), Conflict("zwölf % von 100"));
  co_return OkStatus();
}

rt::Task<Status> AnUnknownMethodIsNotSupported(RpcBench* bench) {
  RpcOptions options;
  const auto answer = co_await bench->channel->Call("/test.Service/Nothing", "x", options);
  EXPECT_EQ(answer.status().reason(), Reason::kMethodNotSupported) << answer.status();
  CO_TRY(auto stream, co_await bench->channel->Open("/test.Service/Nothing", options));
  const auto read = co_await stream->Read();
  EXPECT_EQ(read.status().reason(), Reason::kMethodNotSupported) << read.status();
  co_return OkStatus();
}

rt::Task<Status> AHandlerKnowsItsCall(RpcBench* bench) {
  RpcOptions options;
  options.deadline = Duration::Hours(1);
  options.metadata["berth-word"] = "a value";
  options.metadata["berth-raw-bin"] = std::string("\x00\xff\n", 3);
  CO_TRY(const std::string told, co_await bench->channel->Call(kTell, "", options));
  EXPECT_EQ(told, std::string(kTell) + "\ndeadline\ncertified\nsomewhere\na value\n00ff0a");
  co_return OkStatus();
}

rt::Task<Status> MessagesGoBothWays(RpcBench* bench) {
  RpcOptions options;
  CO_TRY(auto stream, co_await bench->channel->Open(kChat, options));
  for (int i = 0; i < 20; ++i) {
    CO_TRY_STATUS(co_await stream->Write(std::to_string(i)));
    CO_TRY_STATUS(co_await Expect(stream.get(), "echo " + std::to_string(i)));
  }
  stream->WritesDone();
  EXPECT_FALSE(stream->TryWrite("too late"));
  CO_TRY_STATUS(co_await ExpectEnd(stream.get()));
  CO_TRY_STATUS(co_await ExpectEnd(stream.get()));
  const Status late = co_await stream->Write("too late");
  EXPECT_EQ(late.reason(), Reason::kUnavailable);
  co_return OkStatus();
}

rt::Task<Status> OrderIsKept(RpcBench* bench) {
  RpcOptions options;
  CO_TRY(auto stream, co_await bench->channel->Open(kChat, options));
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(stream->TryWrite(std::to_string(i)));
  stream->WritesDone();
  for (int i = 0; i < 500; ++i) {
    CO_TRY_STATUS(co_await Expect(stream.get(), "echo " + std::to_string(i)));
  }
  co_return co_await ExpectEnd(stream.get());
}

rt::Task<Status> AServerStreamsToASlowReader(RpcBench* bench) {
  RpcOptions options;
  CO_TRY(auto stream, co_await bench->channel->Open(kCount, options));
  CO_TRY_STATUS(co_await stream->Write("3000"));
  stream->WritesDone();
  for (int i = 1; i <= 3000; ++i) {
    CO_TRY_STATUS(co_await Expect(stream.get(), std::to_string(i)));
    if (i % 500 == 0) CO_TRY_STATUS(co_await rt::Yield());
  }
  co_return co_await ExpectEnd(stream.get());
}

rt::Task<Status> AClientStreamEndsWithItsHalfClose(RpcBench* bench) {
  RpcOptions options;
  CO_TRY(auto stream, co_await bench->channel->Open(kSum, options));
  for (int i = 1; i <= 100; ++i) CO_TRY_STATUS(co_await stream->Write(std::to_string(i)));
  stream->WritesDone();
  CO_TRY_STATUS(co_await Expect(stream.get(), "5050"));
  co_return co_await ExpectEnd(stream.get());
}

rt::Task<Status> AnErrorComesAfterTheMessagesBeforeIt(RpcBench* bench) {
  RpcOptions options;
  CO_TRY(auto stream, co_await bench->channel->Open(kBreak, options));
  CO_TRY_STATUS(co_await stream->Write("fail"));
  CO_TRY_STATUS(co_await Expect(stream.get(), "first"));
  for (int i = 0; i < 2; ++i) {
    const auto end = co_await stream->Read();
    EXPECT_EQ(end.status(), NotFound("failed in the middle"));
  }
  EXPECT_FALSE(stream->TryWrite("too late"));
  co_return OkStatus();
}

rt::Task<Status> AServerAbortsWithItsReason(RpcBench* bench) {
  RpcOptions options;
  CO_TRY(auto stream, co_await bench->channel->Open(kBreak, options));
  CO_TRY_STATUS(co_await stream->Write("abort"));
  auto read = co_await stream->Read();
  if (read.ok()) read = co_await stream->Read();  // what was queued may or may not have arrived
  EXPECT_EQ(read.status(), Forbidden("aborted by the server"));
  co_return OkStatus();
}

rt::Task<Status> AClientAbortCancelsTheHandler(RpcBench* bench) {
  RpcOptions options;
  CO_TRY(auto stream, co_await bench->channel->Open(kChat, options));
  CO_TRY_STATUS(co_await stream->Write("x"));
  CO_TRY_STATUS(co_await Expect(stream.get(), "echo x"));
  stream->Abort(Conflict("changed my mind"));
  stream->Abort(NotFound("only the first counts"));
  const auto read = co_await stream->Read();
  EXPECT_EQ(read.status(), Conflict("changed my mind"));
  EXPECT_FALSE(stream->TryWrite("too late"));
  co_return co_await rt::WithDeadline(bench->cancelled.Wait(), kLimit);
}

rt::Task<Status> LettingGoOfAStreamCancelsTheHandler(RpcBench* bench) {
  RpcOptions options;
  {
    CO_TRY(auto stream, co_await bench->channel->Open(kChat, options));
    CO_TRY_STATUS(co_await stream->Write("x"));
    CO_TRY_STATUS(co_await Expect(stream.get(), "echo x"));
  }
  co_return co_await rt::WithDeadline(bench->cancelled.Wait(), kLimit);
}

rt::Task<Status> ACancelledCallCancelsItsHandler(RpcBench* bench) {
  RpcOptions options;
  auto call = bench->channel->Call(kWait, "", options);
  rt::ChildContext child(co_await rt::CurrentContext());
  const rt::TimerId timer =
      bench->network.loop().After("test.cancel", kSoon, [&child] { child.Cancel(); });
  const auto answer = co_await call.In(child.context());
  bench->network.loop().CancelTimer(timer);
  EXPECT_EQ(answer.status().reason(), Reason::kCancelled);
  co_return co_await rt::WithDeadline(bench->cancelled.Wait(), kLimit);
}

rt::Task<Status> ADeadlineEndsACallOnBothSides(RpcBench* bench) {
  RpcOptions options;
  options.deadline = kSoon;
  const auto answer = co_await bench->channel->Call(kWait, "", options);
  EXPECT_EQ(answer.status().reason(), Reason::kTimeout) << answer.status();
  CO_TRY_STATUS(co_await rt::WithDeadline(bench->cancelled.Wait(), kLimit));
  CO_TRY(auto stream, co_await bench->channel->Open(kChat, options));
  const auto read = co_await stream->Read();
  EXPECT_EQ(read.status().reason(), Reason::kTimeout) << read.status();
  co_return OkStatus();
}

rt::Task<Status> ACancelledReadLosesNothing(RpcBench* bench) {
  RpcOptions options;
  CO_TRY(auto stream, co_await bench->channel->Open(kChat, options));
  for (int i = 0; i < 5; ++i) {
    auto impatient = co_await rt::WithDeadline(stream->Read(), Duration::Millis(1));
    EXPECT_EQ(impatient.status().reason(), Reason::kTimeout);
  }
  CO_TRY_STATUS(co_await stream->Write("still here"));
  co_return co_await Expect(stream.get(), "echo still here");
}

rt::Task<Status> ADeafPeerFillsTheOutboxAndNothingElse(RpcBench* bench) {
  constexpr size_t kMessage = 8 * 1024;
  RpcOptions options;
  options.limits.outbox_bytes_max = 256 * 1024;
  CO_TRY(auto stream, co_await bench->channel->Open(kDeaf, options));
  CO_TRY_STATUS(co_await rt::WithDeadline(bench->waiting.Wait(), kLimit));
  size_t written = 0;
  for (;;) {
    const Status fits =
        co_await rt::WithDeadline(stream->Write(std::string(kMessage, 'm')), Duration::Millis(100));
    if (!fits.ok()) break;
    ++written;
    EXPECT_LT(written * kMessage, size_t{1024 * 1024});
    if (written * kMessage >= size_t{1024 * 1024}) break;
  }
  EXPECT_GE(written * kMessage, size_t{200 * 1024});
  EXPECT_FALSE(stream->TryWrite(std::string(kMessage, 'm')));
  EXPECT_GT(stream->outbox_bytes(), size_t{200 * 1024});
  CO_TRY(const std::string answer, co_await bench->channel->Call(kEcho, "others", options));
  EXPECT_EQ(answer, "echo others");
  bench->listen.Set();
  CO_TRY_STATUS(co_await stream->Write(std::string(kMessage, 'm')));
  stream->WritesDone();
  CO_TRY_STATUS(co_await ExpectEnd(stream.get()));
  EXPECT_EQ(bench->heard, written + 1);
  EXPECT_EQ(stream->outbox_bytes(), 0U);
  co_return OkStatus();
}

rt::Task<Status> BigMessagesArriveWhole(RpcBench* bench) {
  RpcOptions options;
  std::string big(3 * 1024 * 1024, '\0');
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 2654435761U >> 13);
  CO_TRY(const std::string answer, co_await bench->channel->Call(kEcho, big, options));
  EXPECT_TRUE(answer == "echo " + big);
  CO_TRY(auto stream, co_await bench->channel->Open(kChat, options));
  CO_TRY_STATUS(co_await stream->Write(big));
  CO_TRY(const std::optional<std::string> back, co_await stream->Read());
  EXPECT_TRUE(back == "echo " + big);
  co_return OkStatus();
}

rt::Task<Status> AMessageOverTheLimitIsRefused(RpcBench* bench) {
  RpcOptions options;
  options.limits.message_bytes_max = 2'000;
  // By the client, before it leaves.
  const auto ours = co_await bench->channel->Call(kEcho, std::string(2'001, 'x'), options);
  EXPECT_EQ(ours.status().reason(), Reason::kRequestTooLarge) << ours.status();
  // By the server.
  const auto theirs = co_await bench->channel->Call(kSmall, std::string(1'500, 'x'), options);
  EXPECT_EQ(theirs.status().reason(), Reason::kRequestTooLarge) << theirs.status();
  // The server's answer, by the client.
  const auto answer = co_await bench->channel->Call(kHuge, "5000", options);
  EXPECT_EQ(answer.status().reason(), Reason::kRequestTooLarge) << answer.status();
  // The server's answer, by the server.
  const auto large = co_await bench->channel->Call(kSmall, std::string(999, 'x'), options);
  EXPECT_EQ(large.status().reason(), Reason::kRequestTooLarge) << large.status();
  CO_TRY(const std::string fits, co_await bench->channel->Call(kSmall, "fits", options));
  EXPECT_EQ(fits, "echo fits");
  co_return OkStatus();
}

rt::Task<Status> AStoppedServerEndsItsStreams(RpcBench* bench) {
  RpcOptions options;
  CO_TRY(auto stream, co_await bench->channel->Open(kChat, options));
  CO_TRY_STATUS(co_await stream->Write("x"));
  CO_TRY_STATUS(co_await Expect(stream.get(), "echo x"));
  bench->tasks.Spawn("test.stop", bench->server->Stop());
  const auto read = co_await stream->Read();
  EXPECT_EQ(read.status().reason(), Reason::kUnavailable) << read.status();
  CO_TRY_STATUS(co_await bench->tasks.Join());
  EXPECT_FALSE(bench->channel->usable());
  const auto late = co_await bench->channel->Call(kEcho, "late", options);
  EXPECT_EQ(late.status().reason(), Reason::kUnavailable) << late.status();
  auto again = co_await bench->Dial();
  EXPECT_EQ(again.status().reason(), Reason::kUnavailable) << again.status();
  co_return OkStatus();
}

rt::Task<Status> ACallOutlivesTheStopOfItsServerOnlyForTheDrainTime(RpcBench* bench) {
  RpcOptions options;
  auto call = bench->channel->Call(kWait, "", options);
  bench->tasks.Spawn("test.stop", bench->server->Stop());
  const auto answer = co_await call;
  EXPECT_EQ(answer.status().reason(), Reason::kUnavailable) << answer.status();
  co_return co_await bench->tasks.Join();
}

rt::Task<Status> AClosedChannelFailsItsCalls(RpcBench* bench) {
  RpcOptions options;
  CO_TRY(auto channel, co_await bench->Dial());
  CO_TRY(auto stream, co_await channel->Open(kChat, options));
  CO_TRY_STATUS(co_await stream->Write("x"));
  CO_TRY_STATUS(co_await Expect(stream.get(), "echo x"));
  CO_TRY_STATUS(co_await channel->Close());
  const auto read = co_await stream->Read();
  EXPECT_EQ(read.status().reason(), Reason::kUnavailable) << read.status();
  EXPECT_FALSE(stream->TryWrite("too late"));
  EXPECT_FALSE(channel->usable());
  const auto late = co_await channel->Call(kEcho, "late", options);
  EXPECT_EQ(late.status().reason(), Reason::kUnavailable) << late.status();
  CO_TRY_STATUS(co_await channel->Close());
  stream.reset();
  co_return co_await rt::WithDeadline(bench->cancelled.Wait(), kLimit);
}

rt::Task<Status> AClientMayConnectAgain(RpcBench* bench) {
  RpcOptions options;
  for (int i = 0; i < 3; ++i) {
    CO_TRY(auto channel, co_await bench->Dial());
    EXPECT_TRUE(channel->usable());
    CO_TRY(const std::string answer, co_await channel->Call(kEcho, "again", options));
    EXPECT_EQ(answer, "echo again");
    CO_TRY_STATUS(co_await channel->Close());
  }
  co_return OkStatus();
}

rt::Task<Status> NobodyThereIsUnavailable(RpcBench* bench) {
  const auto channel = co_await bench->network.dialer().Dial(
      bench->network.dead_address(), bench->network.credentials(), kLimit);
  EXPECT_EQ(channel.status().reason(), Reason::kUnavailable) << channel.status();
  co_return OkStatus();
}

rt::Task<Status> AStrangerIsUnauthorized(RpcBench* bench) {
  const auto channel = co_await bench->network.dialer().Dial(
      bench->server->address(), bench->network.stranger(), kLimit);
  EXPECT_EQ(channel.status().reason(), Reason::kUnauthorized) << channel.status();
  co_return OkStatus();
}

rt::Task<Status> AServerThatIsNotTrustedIsUnauthorized(RpcBench* bench) {
  RpcCredentials credentials = bench->network.credentials();
  credentials.ca_pem = "";
  credentials.ca_pin = "sha256:" + std::string(64, '0');
  const auto channel =
      co_await bench->network.dialer().Dial(bench->server->address(), credentials, kLimit);
  EXPECT_EQ(channel.status().reason(), Reason::kUnauthorized) << channel.status();
  co_return OkStatus();
}

#define BERTH_CONTRACT(name) \
  RpcContract { #name, name }
constexpr std::array kContracts = {
    BERTH_CONTRACT(AUnaryCallIsAnswered),
    BERTH_CONTRACT(ManyCallsShareAChannel),
    BERTH_CONTRACT(AnErrorArrivesWithAllItSays),
    BERTH_CONTRACT(AnUnknownMethodIsNotSupported),
    BERTH_CONTRACT(AHandlerKnowsItsCall),
    BERTH_CONTRACT(MessagesGoBothWays),
    BERTH_CONTRACT(OrderIsKept),
    BERTH_CONTRACT(AServerStreamsToASlowReader),
    BERTH_CONTRACT(AClientStreamEndsWithItsHalfClose),
    BERTH_CONTRACT(AnErrorComesAfterTheMessagesBeforeIt),
    BERTH_CONTRACT(AServerAbortsWithItsReason),
    BERTH_CONTRACT(AClientAbortCancelsTheHandler),
    BERTH_CONTRACT(LettingGoOfAStreamCancelsTheHandler),
    BERTH_CONTRACT(ACancelledCallCancelsItsHandler),
    BERTH_CONTRACT(ADeadlineEndsACallOnBothSides),
    BERTH_CONTRACT(ACancelledReadLosesNothing),
    BERTH_CONTRACT(ADeafPeerFillsTheOutboxAndNothingElse),
    BERTH_CONTRACT(BigMessagesArriveWhole),
    BERTH_CONTRACT(AMessageOverTheLimitIsRefused),
    BERTH_CONTRACT(AStoppedServerEndsItsStreams),
    BERTH_CONTRACT(ACallOutlivesTheStopOfItsServerOnlyForTheDrainTime),
    BERTH_CONTRACT(AClosedChannelFailsItsCalls),
    BERTH_CONTRACT(AClientMayConnectAgain),
    BERTH_CONTRACT(NobodyThereIsUnavailable),
    BERTH_CONTRACT(AStrangerIsUnauthorized),
    BERTH_CONTRACT(AServerThatIsNotTrustedIsUnauthorized),
};
#undef BERTH_CONTRACT

}  // namespace

std::span<const RpcContract> RpcContracts() { return kContracts; }

void RunRpcContract(const RpcContract& contract, RpcUnderTest& network) {
  RpcBench bench(network);
  EXPECT_EQ(network.Run(bench.Run(contract.script(&bench))), OkStatus());
}

}  // namespace berth::net
