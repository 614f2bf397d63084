// SPDX-License-Identifier: Apache-2.0
#include "net/conformance/rpc_bench.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/strings.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

constexpr Duration kDialLimit = Duration::Seconds(10);

rt::Task<Result<std::string>> Echo(RpcCall, std::string request) { co_return "echo " + request; }

rt::Task<Result<std::string>> Fail(RpcCall, std::string request) {
  if (request == "plain") co_return Conflict("zwölf % von 100");
  co_return Status(Reason::kInvalid,
                   "machine a/b is wrong",
                   {{.kind = CauseKind::kRequired, .field = "spec.name", .message = "a name"},
                    {.kind = CauseKind::kTooLong, .field = "spec.x", .message = "100 > 63"}})
      .WithObject({.group = "compute", .kind = "machines", .name = "b", .uid = "u-1"})
      .WithRetryAfter(Duration::Seconds(7));
}

rt::Task<Result<std::string>> Wait(RpcBench* bench) {
  bench->waiting.Set();
  const Status slept = co_await rt::Sleep(Duration::Hours(1));
  if (slept.Is(Reason::kCancelled)) bench->cancelled.Set();
  if (!slept.ok()) co_return slept;
  co_return "nobody waits that long";
}

rt::Task<Result<std::string>> Tell(rt::Loop* loop, RpcCall call) {
  std::string text = call.method + "\n";
  text += call.deadline.has_value() && *call.deadline > loop->Now() ? "deadline\n" : "endless\n";
  text += call.peer.certificate_der.empty() ? "anonymous\n" : "certified\n";
  text += call.peer.address.empty() ? "nowhere\n" : "somewhere\n";
  text += call.metadata["berth-word"] + "\n" + HexEncode(call.metadata["berth-raw-bin"]);
  co_return text;
}

rt::Task<Result<std::string>> Huge(RpcCall, std::string request) {
  co_return std::string(static_cast<size_t>(ParseInt(request).value_or(0)), 'x');
}

rt::Task<Status> Chat(RpcBench* bench, MessageStream* stream) {
  for (;;) {
    Result<std::optional<std::string>> message = co_await stream->Read();
    if (!message.ok() && message.status().Is(Reason::kCancelled)) bench->cancelled.Set();
    CO_TRY_STATUS(message);
    if (!message->has_value()) co_return OkStatus();
    CO_TRY_STATUS(co_await stream->Write("echo " + **message));
  }
}

rt::Task<Status> Count(MessageStream* stream) {
  CO_TRY(const std::optional<std::string> limit, co_await stream->Read());
  const int64_t last = ParseInt(limit.value_or("")).value_or(0);
  for (int64_t i = 1; i <= last; ++i) {
    CO_TRY_STATUS(co_await stream->Write(std::to_string(i)));
  }
  co_return OkStatus();
}

rt::Task<Status> Sum(MessageStream* stream) {
  int64_t sum = 0;
  for (;;) {
    CO_TRY(const std::optional<std::string> message, co_await stream->Read());
    if (!message.has_value()) break;
    sum += ParseInt(*message).value_or(0);
  }
  co_return co_await stream->Write(std::to_string(sum));
}

rt::Task<Status> Deaf(RpcBench* bench, MessageStream* stream) {
  bench->waiting.Set();
  CO_TRY_STATUS(co_await bench->listen.Wait());
  for (;;) {
    CO_TRY(const std::optional<std::string> message, co_await stream->Read());
    if (!message.has_value()) co_return OkStatus();
    ++bench->heard;
  }
}

rt::Task<Status> Break(MessageStream* stream) {
  CO_TRY(const std::optional<std::string> how, co_await stream->Read());
  CO_TRY_STATUS(co_await stream->Write("first"));
  if (how == "abort") stream->Abort(Forbidden("aborted by the server"));
  co_return NotFound("failed in the middle");
}

}  // namespace

RpcRoutes RpcBench::Routes() {
  RpcRoutes routes;
  rt::Loop* loop = &network.loop();
  routes.unary[kEcho] = {.handler = Echo};
  routes.unary[kFail] = {.handler = Fail};
  routes.unary[kWait] = {.handler = [this](RpcCall, std::string) { return Wait(this); }};
  routes.unary[kTell] = {
      .handler = [loop](RpcCall call, std::string) { return Tell(loop, std::move(call)); }};
  routes.unary[kSmall] = {.handler = Echo, .limits = {.message_bytes_max = kSmallMax}};
  routes.unary[kHuge] = {.handler = Huge};
  routes.streams[kChat] = {
      .handler = [this](RpcCall, MessageStream& stream) { return Chat(this, &stream); }};
  routes.streams[kCount] = {
      .handler = [](RpcCall, MessageStream& stream) { return Count(&stream); },
      .limits = {.outbox_bytes_max = 1'000}};
  routes.streams[kSum] = {.handler = [](RpcCall, MessageStream& stream) { return Sum(&stream); }};
  routes.streams[kDeaf] = {
      .handler = [this](RpcCall, MessageStream& stream) { return Deaf(this, &stream); }};
  routes.streams[kBreak] = {
      .handler = [](RpcCall, MessageStream& stream) { return Break(&stream); }};
  return routes;
}

rt::Task<Result<std::unique_ptr<RpcChannel>>> RpcBench::Dial() {
  return network.dialer().Dial(server->address(), network.credentials(), kDialLimit);
}

rt::Task<Status> RpcBench::Run(rt::Task<Status> script) {
  CO_TRY(server, co_await network.Serve(Routes()));
  CO_TRY(channel, co_await Dial());
  const Status status = co_await script;
  CO_TRY_STATUS(co_await tasks.Close());
  CO_TRY_STATUS(co_await channel->Close());
  channel.reset();
  CO_TRY_STATUS(co_await server->Stop());
  server.reset();
  co_return status;
}

}  // namespace berth::net
