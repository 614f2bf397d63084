// SPDX-License-Identifier: Apache-2.0
#include "runtime/fake/fake_attach.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

namespace berth::runtime {

using Channel = iri::AttachFrame::Channel;

namespace {

// How many lines of the log are asked for: all of them, unless the request says how many.
size_t LinesWanted(const iri::AttachRequest& request, size_t there_are) {
  const auto said = request.options.find("tailLines");
  if (said == request.options.end()) return there_are;
  size_t lines = there_are;
  std::from_chars(said->second.data(), said->second.data() + said->second.size(), lines);
  return std::min(lines, there_are);
}

}  // namespace

bool IsFakeConversation(std::string_view what) {
  constexpr std::array<std::string_view, 4> kAll = {"console", "exec", "logs", "portforward"};
  return std::ranges::find(kAll, what) != kAll.end();
}

FakeConversation::FakeConversation(iri::AttachRequest request, const std::vector<std::string>& logs)
    : request_(std::move(request)) {
  const auto say = [this](std::string text) {
    const bool said = out_.TrySend({.channel = Channel::kOut, .data = std::move(text)});
    CHECK(said) << "the first frames fit";
  };
  if (request_.what == "console") say("console of " + request_.machine_uid + "\r\n");
  if (request_.what == "logs") {
    std::string text;
    for (const std::string& line : std::span(logs).last(LinesWanted(request_, logs.size()))) {
      if (text.size() + line.size() < iri::kAttachFrameBytesMax) text += line + "\n";
    }
    if (!text.empty()) say(std::move(text));
    End("0");
  }
  if (request_.what == "exec") {
    const auto command = request_.options.find("command");
    const std::string line = command == request_.options.end() ? "" : command->second;
    say("ran " + line + "\n");
    if (line == "false") End("1");
    if (line != "false" && line != "cat") End("0");  // cat reads on
  }
}

rt::Task<Status> FakeConversation::Hear(iri::AttachFrame frame) {
  if (over_) co_return Unavailable("the conversation is over");
  if (frame.channel != Channel::kIn) co_return OkStatus();
  if (frame.data.empty()) {
    End("0");
    co_return OkStatus();
  }
  frame.channel = Channel::kOut;
  co_return co_await out_.Send(std::move(frame));
}

rt::Task<Result<std::optional<iri::AttachFrame>>> FakeConversation::Say() {
  auto frame = co_await out_.Receive();
  if (frame.ok()) co_return std::optional<iri::AttachFrame>(*std::move(frame));
  if (!frame.status().Is(Reason::kUnavailable)) co_return frame.status();
  if (!end_.has_value()) co_return std::optional<iri::AttachFrame>();
  iri::AttachFrame last;
  last.channel = Channel::kEnd;
  last.data = *std::exchange(end_, std::nullopt);
  co_return std::optional<iri::AttachFrame>(std::move(last));
}

void FakeConversation::End(std::string why) {
  if (over_) return;
  over_ = true;
  end_ = std::move(why);
  out_.Close();
}

}  // namespace berth::runtime
