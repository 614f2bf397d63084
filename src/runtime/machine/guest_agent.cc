// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/guest_agent.h"

#include <fmt/core.h>

#include <utility>

#include "meta/json.h"
#include "rt/deadline.h"
#include "runtime/machine/agent_words.h"

namespace berth::runtime {
namespace {

// Of the answer to a greeting, which is a number.
constexpr size_t kGreetingBytesMax = 256;
// A double has this many whole numbers, and some agents count with those.
constexpr int64_t kIdMax = int64_t{1} << 52;

bool IsReturned(std::string_view text, int64_t id) {
  if (text.size() > kGreetingBytesMax) return false;
  const Result<meta::Value> returned = ReadAgentAnswer(text);
  return returned.ok() && returned->is_int() && returned->as_int() == id;
}

}  // namespace

rt::Task<Status> GuestAgent::Greet() {
  CO_TRY(const rt::Gate::Permit permit, co_await calls_.Enter());
  if (line_ != nullptr) co_return OkStatus();
  co_return co_await Open();
}

rt::Task<Result<std::string>> GuestAgent::Call(std::string request) {
  CO_TRY(const rt::Gate::Permit permit, co_await calls_.Enter());
  if (line_ == nullptr) CO_TRY_STATUS(co_await Open());
  Result<std::string> answer = co_await rt::WithDeadline(Ask(std::move(request)), kAnswerMax);
  if (answer.ok()) co_return answer;
  // What comes later would be taken for an answer to something else.
  line_.reset();
  co_return answer.status().Wrap("the guest agent");
}

rt::Task<Status> GuestAgent::Open() {
  rest_.clear();
  Result<std::unique_ptr<SerialLine>> line = co_await lines_.Open(socket_);
  if (!line.ok()) {
    if (line.status().Is(Reason::kCancelled)) co_return line.status();
    co_return Unavailable(
        "the guest has no line for a guest agent, because it was started without one or is gone: "
        "switch it off and on");
  }
  line_ = *std::move(line);
  const Status greeted = co_await rt::WithDeadline(Synchronize(), kGreetingMax);
  if (greeted.ok()) co_return greeted;
  line_.reset();
  if (greeted.Is(Reason::kCancelled)) co_return greeted;
  co_return Unavailable(
      fmt::format("no guest agent answers ({}): install qemu-guest-agent in the guest and start it",
                  greeted.message()));
}

rt::Task<Status> GuestAgent::Synchronize() {
  const int64_t id = loop_.random().Between(1, kIdMax);
  CO_TRY_STATUS(co_await line_->Write(AgentGreeting(id)));
  size_t heard = 0;
  // An agent may still be saying what somebody else has asked.
  while (heard <= kAgentAnswerBytesMax) {
    CO_TRY(const std::string text, co_await Hear(Wanted::kMarked));
    if (IsReturned(text, id)) co_return OkStatus();
    heard += text.size() + 1;
  }
  co_return BadRequest("it talks of other things");
}

rt::Task<Result<std::string>> GuestAgent::Ask(std::string request) {
  rest_.clear();  // nobody asked
  CO_TRY_STATUS(co_await line_->Write(std::move(request)));
  co_return co_await Hear(Wanted::kAny);
}

rt::Task<Result<std::string>> GuestAgent::Hear(Wanted wanted) {
  AgentAnswer answer;
  for (;;) {
    if (rest_.empty()) {
      CO_TRY(rest_, co_await line_->Read());
      if (rest_.empty()) co_return Unavailable("the guest has hung up");
    }
    rest_.erase(0, answer.Take(rest_));
    if (answer.is_too_large()) {
      co_return BadRequest(fmt::format("an answer has more than {} MiB, or many long texts",
                                       kAgentAnswerBytesMax >> 20));
    }
    if (!answer.is_whole()) continue;
    if (wanted == Wanted::kAny || answer.is_marked()) co_return answer.text();
    answer = AgentAnswer();
  }
}

}  // namespace berth::runtime
