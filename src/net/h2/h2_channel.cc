// SPDX-License-Identifier: Apache-2.0
#include "net/h2/h2_channel.h"

#include <utility>

#include "net/call/call_client.h"

namespace berth::net {
namespace {

// How long a last word may take to leave.
constexpr Duration kGoodbyeTimeMax = Duration::Seconds(1);
constexpr uint32_t kNoError = 0;

}  // namespace

H2Channel::H2Channel(std::unique_ptr<Stream> stream, const H2Limits& limits, std::string authority)
    : limits_(limits),
      authority_(std::move(authority)),
      connection_(H2Connection::Side::kClient, std::move(stream), limits_, nullptr),
      running_(connection_.loop()) {
  running_.Spawn("h2.channel", Run());
}

H2Channel::~H2Channel() = default;

rt::Task<Status> H2Channel::Run() {
  // Every call in progress hears of it.
  const Status ended = co_await connection_.Run();
  co_return ended.Is(Reason::kCancelled) ? ended : OkStatus();
}

rt::Task<Status> H2Channel::Close() {
  connection_.Terminate(kNoError, {});
  rt::TimerId timer =
      connection_.loop().After("h2.goodbye", kGoodbyeTimeMax, [this] { running_.Cancel(); });
  const Status joined = co_await running_.Join();
  connection_.loop().CancelTimer(timer);
  co_return joined;
}

Result<std::unique_ptr<MessageStream>> H2Channel::Begin(const std::string& method,
                                                        const RpcOptions& options) {
  TRY(const H2Fields fields, FormatGrpcRequest(authority_, method, options));
  TRY(std::shared_ptr<CallStream> stream, connection_.Request(fields, options.limits));
  if (options.deadline.has_value()) stream->SetDeadline(*options.deadline);
  return HoldCall(std::move(stream));
}

rt::Task<Result<std::unique_ptr<MessageStream>>> H2Channel::Open(std::string method,
                                                                 RpcOptions options) {
  co_return Begin(method, options);
}

rt::Task<Result<std::string>> H2Channel::Call(std::string method,
                                              std::string request,
                                              RpcOptions options) {
  CO_TRY(std::unique_ptr<MessageStream> stream, Begin(method, options));
  co_return co_await CallUnary(std::move(stream), std::move(method), std::move(request));
}

}  // namespace berth::net
