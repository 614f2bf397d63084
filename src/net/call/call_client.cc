// SPDX-License-Identifier: Apache-2.0
#include "net/call/call_client.h"

#include <utility>

namespace berth::net {
namespace {

class HeldStream final : public MessageStream {
 public:
  explicit HeldStream(std::shared_ptr<CallStream> stream) : stream_(std::move(stream)) {}
  ~HeldStream() override { stream_->Abort(Unavailable("the caller has let go of the stream")); }

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
  std::shared_ptr<CallStream> stream_;
};

}  // namespace

std::unique_ptr<MessageStream> HoldCall(std::shared_ptr<CallStream> stream) {
  return std::make_unique<HeldStream>(std::move(stream));
}

rt::Task<Result<std::string>> CallUnary(std::unique_ptr<MessageStream> stream,
                                        std::string method,
                                        std::string request) {
  CO_TRY_STATUS(co_await stream->Write(std::move(request)));
  stream->WritesDone();
  CO_TRY(std::optional<std::string> answer, co_await stream->Read());
  if (!answer.has_value()) co_return Unavailable(method + ": the server ended without an answer");
  CO_TRY(const std::optional<std::string> more, co_await stream->Read());
  if (more.has_value()) co_return Unavailable(method + ": more than one answer");
  co_return *std::move(answer);
}

}  // namespace berth::net
