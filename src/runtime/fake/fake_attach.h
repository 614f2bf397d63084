// SPDX-License-Identifier: Apache-2.0
// What a guest that is none has to say: a console and a port that echo, a shell that claims to have
// run everything, and the machine's events as its logs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "iri/attach.h"
#include "rt/channel.h"

namespace berth::runtime {

class FakeConversation {
 public:
  // `logs` are the lines of "logs".
  FakeConversation(iri::AttachRequest request, const std::vector<std::string>& logs);

  const std::string& machine_uid() const { return request_.machine_uid; }
  bool is_over() const { return over_; }
  rt::Task<Status> Hear(iri::AttachFrame frame);
  rt::Task<Result<std::optional<iri::AttachFrame>>> Say();
  // The last frame, and the end; what was said before can still be read.
  void End(std::string why);
  // At once.
  void Break() {
    over_ = true;
    out_.Close();
  }

 private:
  // As many as wait for a reader who does not read.
  static constexpr size_t kFramesMax = 8;

  const iri::AttachRequest request_;
  bool over_ = false;
  std::optional<std::string> end_;  // said when everything before it was read
  rt::Channel<iri::AttachFrame> out_{kFramesMax};
};

// "console", "exec", "logs", "portforward".
bool IsFakeConversation(std::string_view what);

// One end of a conversation, which may outlive its host.
class FakeAttachStream final : public iri::AttachStream {
 public:
  explicit FakeAttachStream(std::shared_ptr<FakeConversation> conversation)
      : conversation_(std::move(conversation)) {}
  rt::Task<Result<std::optional<iri::AttachFrame>>> Read() override {
    const auto conversation = conversation_;
    co_return co_await conversation->Say();
  }
  rt::Task<Status> Write(iri::AttachFrame frame) override {
    const auto conversation = conversation_;
    co_return co_await conversation->Hear(std::move(frame));
  }
  rt::Task<Status> Close() override {
    conversation_->Break();
    co_return OkStatus();
  }

 private:
  const std::shared_ptr<FakeConversation> conversation_;
};

}  // namespace berth::runtime
