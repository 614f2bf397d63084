// SPDX-License-Identifier: Apache-2.0
#include "net/h2/h2_channel.h"

#include <utility>

namespace berth::net {
namespace {

// How long a last word may take to leave.
constexpr Duration kGoodbyeTimeMax = Duration::Seconds(1);
constexpr uint32_t kNoError = 0;

// The client's hold on a call: letting go of it breaks it off.
class ClientStream final : public MessageStream {
 public:
  explicit ClientStream(std::shared_ptr<H2Stream> stream) : stream_(std::move(stream)) {}
  ~ClientStream() override { stream_->Abort(Unavailable("the caller has let go of the stream")); }

  rt::Task<Result<std::optional<std::string>>> Read() override { return stream_->Read(); }
  [[nodiscard]] bool TryWrite(std::string message) override {
    return stream_->TryWrite(std::move(message));
  }
  rt::Task<Status> Write(std::string message) override {
    return stream_->Write(std::move(message));
  }
  size_t outbox_bytes() const override { return stream_->outbox_bytes(); }
  void WritesDone() override { stream_->WritesDone(); }
  void Abort(Status why) override { stream_->Abort(std::move(why)); }

 private:
  std::shared_ptr<H2Stream> stream_;
};

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
  TRY(std::shared_ptr<H2Stream> stream, connection_.Request(fields, options.limits));
  if (options.deadline.has_value()) stream->SetDeadline(*options.deadline);
  return std::unique_ptr<MessageStream>(std::make_unique<ClientStream>(std::move(stream)));
}

rt::Task<Result<std::unique_ptr<MessageStream>>> H2Channel::Open(std::string method,
                                                                 RpcOptions options) {
  co_return Begin(method, options);
}

rt::Task<Result<std::string>> H2Channel::Call(std::string method,
                                              std::string request,
                                              RpcOptions options) {
  CO_TRY(std::unique_ptr<MessageStream> stream, Begin(method, options));
  CO_TRY_STATUS(co_await stream->Write(std::move(request)));
  stream->WritesDone();
  CO_TRY(std::optional<std::string> answer, co_await stream->Read());
  if (!answer.has_value()) co_return Unavailable(method + ": the server ended without an answer");
  CO_TRY(const std::optional<std::string> more, co_await stream->Read());
  if (more.has_value()) co_return Unavailable(method + ": more than one answer");
  co_return *std::move(answer);
}

}  // namespace berth::net
