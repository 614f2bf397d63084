// SPDX-License-Identifier: Apache-2.0
#include "cli/guests/terminal_talk.h"

#include <fmt/core.h>

#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "meta/json.h"
#include "meta/value.h"
#include "net/websocket_codec.h"
#include "rt/scope.h"

namespace berth::cli {
namespace {

// Channels of v4 and v5.channel.k8s.io.
constexpr char kIn = 0;
constexpr char kOut = 1;
constexpr char kErrors = 2;
constexpr char kEnd = 3;
constexpr char kResize = 4;
constexpr char kClose = static_cast<char>(255);

// How often the size of the terminal is looked at.
constexpr Duration kSizeInterval = Duration::Millis(500);

}  // namespace

rt::Task<Result<int>> TerminalTalk::Run() {
  rt::TaskScope scope(loop_);
  scope.Spawn("cli.hear", Hear());
  if (ends_.input != nullptr) scope.Spawn("cli.speak", Speak());
  const Status waited = co_await over_.Wait();
  if (ends_.input != nullptr) ends_.input->Interrupt();
  const Status closed = co_await scope.Close();
  CHECK(closed.ok());
  const Status told = co_await socket_.Close(net::kWsNormal, std::string());
  if (!waited.ok()) co_return waited;
  if (told.Is(Reason::kCancelled)) co_return told;
  co_return end_.value_or(Unavailable("the server has ended the conversation"));
}

rt::Task<Status> TerminalTalk::Hear() {
  while (!end_) {
    auto message = co_await socket_.Receive();
    if (!message.ok()) {
      // Whoever left has said how it ended.
      if (!end_) end_ = message.status();
      break;
    }
    if (message->data.empty()) continue;
    const std::string_view data = std::string_view(message->data).substr(1);
    if (on_heard && message->data.front() == kOut) on_heard();
    switch (message->data.front()) {
      case kOut: ends_.out << data << std::flush; break;
      case kErrors: ends_.err << data << std::flush; break;
      case kEnd: end_ = ReadEnd(data); break;
      default: break;  // of a later version
    }
  }
  over_.Set();
  co_return OkStatus();
}

// What cannot be sent any more is no error of its own: Hear() learns why.
rt::Task<Status> TerminalTalk::Speak() {
  const Status spoken = co_await SpeakAll();
  co_return spoken.Is(Reason::kCancelled) ? spoken : OkStatus();
}

rt::Task<Status> TerminalTalk::SpeakAll() {
  CO_TRY_STATUS(co_await TellSize());
  for (;;) {
    auto event = co_await ends_.input->Next(kSizeInterval);
    // The other end was faster: nobody has left.
    if (event.status().Is(Reason::kCancelled)) co_return event.status();
    if (!event.ok()) {
      end_ = event.status();
      is_left_ = true;
      break;
    }
    CO_TRY_STATUS(co_await TellSize());
    if (event->type == Input::Event::Type::kNothing) continue;
    if (event->type == Input::Event::Type::kEnd) {
      is_left_ = !end_ && !over_.is_set();
      co_return co_await Send(kClose, std::string(1, kIn));
    }
    const size_t left_at = FindEscape(event->data, ends_.escape);
    if (left_at != std::string::npos) event->data.resize(left_at);
    if (!event->data.empty()) CO_TRY_STATUS(co_await Send(kIn, std::move(event->data)));
    if (left_at == std::string::npos) continue;
    end_ = 0;
    is_left_ = true;
    break;
  }
  over_.Set();
  co_return OkStatus();
}

size_t TerminalTalk::FindEscape(std::string_view typed, Ends::Escape escape) {
  const bool may_leave = escape == Ends::Escape::kLeaves ||
                         (escape == Ends::Escape::kLeavesAlone && typed.size() == 1);
  return may_leave ? typed.find(kEscape) : typed.npos;
}

rt::Task<Status> TerminalTalk::TellSize() {
  if (ends_.terminal < 0) co_return OkStatus();
  const TerminalSize size = SizeOf(ends_.terminal);
  if (size == told_ || size == TerminalSize{}) co_return OkStatus();
  told_ = size;
  std::string text = fmt::format(R"({{"Width":{},"Height":{}}})", size.columns, size.rows);
  co_return co_await Send(kResize, std::move(text));
}

rt::Task<Status> TerminalTalk::Send(char channel, std::string data) {
  data.insert(data.begin(), channel);
  net::WebSocket::Message message{.kind = net::WebSocket::Kind::kBinary, .data = std::move(data)};
  co_return co_await socket_.Send(std::move(message));
}

// A metav1.Status, with the exit status as a cause.
Result<int> TerminalTalk::ReadEnd(std::string_view text) const {
  TRY(const meta::Value status, meta::ParseJson(text));
  if (status.GetString({"status"}) == "Success") return 0;
  const meta::Value* causes = status.Get({"details", "causes"});
  if (causes != nullptr && causes->is_array()) {
    for (const meta::Value& cause : causes->items()) {
      const auto code = ParseUint(cause.GetString({"message"}));
      if (cause.GetString({"reason"}) == "ExitCode" && code && *code <= UINT8_MAX) {
        return static_cast<int>(*code);
      }
    }
  }
  return Internal(Printable(status.GetString({"message"})));
}

}  // namespace berth::cli
