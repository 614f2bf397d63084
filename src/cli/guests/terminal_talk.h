// SPDX-License-Identifier: Apache-2.0
// A conversation with a guest's shell or console, between a WebSocket and a terminal or pipes.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/guests/input.h"
#include "net/http.h"
#include "rt/asio/asio_loop.h"
#include "rt/event.h"
#include "rt/task.h"

namespace berth::cli {

// Typed on a console it ends the conversation: Ctrl-].
inline constexpr char kEscape = 0x1d;

class TerminalTalk {
 public:
  struct Ends {
    std::ostream& out;
    std::ostream& err;
    Input* input = nullptr;  // null: nothing is said to the guest
    int terminal = -1;       // whose size the guest is told; -1 for none
    enum class Escape : uint8_t {
      kPassed,
      kLeaves,       // whatever was typed or pasted with it
      kLeavesAlone,  // if nothing came with it: what a pipe brings may have that byte in it
    } escape = Escape::kPassed;
  };
  TerminalTalk(rt::AsioLoop& loop, net::WebSocket& socket, Ends ends)
      : loop_(loop), socket_(socket), ends_(ends) {}

  // Until either end is over: the exit status of what ran. Internal with the guest's own words if
  // it could not run, Unavailable if the connection broke.
  rt::Task<Result<int>> Run();
  // The person has left, with the key or because nothing more can be typed.
  bool is_left() const { return is_left_; }
  // Where in what was typed the person leaves; npos if that is nowhere.
  static size_t FindEscape(std::string_view typed, Ends::Escape escape);

  std::function<void()> on_heard;  // before anything that the guest says; may be empty

 private:
  rt::Task<Status> Hear();
  rt::Task<Status> Speak();
  rt::Task<Status> SpeakAll();
  rt::Task<Status> TellSize();
  rt::Task<Status> Send(char channel, std::string data);
  Result<int> ReadEnd(std::string_view text) const;

  rt::AsioLoop& loop_;
  net::WebSocket& socket_;
  const Ends ends_;
  TerminalSize told_;
  std::optional<Result<int>> end_;
  bool is_left_ = false;
  rt::Event over_;
};

}  // namespace berth::cli
