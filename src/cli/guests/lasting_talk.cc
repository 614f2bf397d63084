// SPDX-License-Identifier: Apache-2.0
#include "cli/guests/lasting_talk.h"

#include <string_view>
#include <utility>

namespace berth::cli {
namespace {

// A guest that starts says its first words within this of being heard again.
constexpr Duration kPause = Duration::Millis(250);

// Waiting would not help: there is no such machine, or it is not for us.
bool IsFinal(const Status& status) {
  return status.Is(Reason::kNotFound) || status.Is(Reason::kForbidden) ||
         status.Is(Reason::kUnauthorized) || status.Is(Reason::kMethodNotSupported) ||
         status.Is(Reason::kCancelled);
}

std::string_view HowToLeave(TerminalTalk::Ends::Escape escape) {
  using Escape = TerminalTalk::Ends::Escape;
  switch (escape) {
    case Escape::kPassed: return "";
    case Escape::kLeaves: return "; Ctrl-] leaves";
    case Escape::kLeavesAlone: return "; Ctrl-] alone leaves";
  }
  return "";
}

}  // namespace

rt::Task<Result<int>> LastingTalk::Run() {
  for (;;) {
    End end = co_await TalkOnce();
    if (end.is_left) co_return 0;
    const bool may_wait = was_open_ || begin_ == Begin::kWaits;
    if (!end.code.ok() && (IsFinal(end.code.status()) || !may_wait)) co_return end.code;
    SayWaiting(end.code);
    CO_TRY(const bool has_left, co_await Pause());
    if (has_left) co_return 0;
  }
}

rt::Task<LastingTalk::End> LastingTalk::TalkOnce() {
  auto socket = co_await open_();
  if (!socket.ok()) co_return End{.code = socket.status()};
  TerminalTalk talk(loop_, **socket, ends_);
  End end;
  talk.on_heard = [this] {
    was_open_ = true;
    if (std::exchange(is_waiting_, false)) ends_.err << "[it is there again]\r\n" << std::flush;
  };
  end.code = co_await talk.Run();
  // A guest that says nothing and ends well was there as well.
  was_open_ = was_open_ || end.code.ok();
  end.is_left = talk.is_left();
  ends_.input->Resume();
  co_return end;
}

rt::Task<Result<bool>> LastingTalk::Pause() {
  const Time until = loop_.Now() + kPause;
  for (;;) {
    const Duration left = until - loop_.Now();
    if (left <= Duration()) co_return false;
    CO_TRY(const Input::Event event, co_await ends_.input->Next(left));
    if (event.type == Input::Event::Type::kEnd) co_return true;
    const size_t left_at = TerminalTalk::FindEscape(event.data, ends_.escape);
    if (left_at != std::string::npos) co_return true;
  }
}

void LastingTalk::SayWaiting(const Result<int>& end) {
  if (std::exchange(is_waiting_, true)) return;
  ends_.err << "\r\n["
            << (end.ok() ? std::string("the guest has ended") : std::string(end.status().message()))
            << ": waiting for it" << HowToLeave(ends_.escape) << "]\r\n"
            << std::flush;
}

}  // namespace berth::cli
