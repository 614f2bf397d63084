// SPDX-License-Identifier: Apache-2.0
// A conversation with a console that outlives its guest: when the guest ends, its host is away or
// the connection breaks, it is opened again until the person leaves or the machine is gone.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/guests/terminal_talk.h"
#include "net/http.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::cli {

class LastingTalk {
 public:
  using Open = std::function<rt::Task<Result<std::unique_ptr<net::WebSocket>>>()>;
  // Whether a console that cannot be had at first is waited for, too.
  enum class Begin : uint8_t { kAtOnce, kWaits };

  // Everything outlives the talk. REQUIRES: ends.input is not null.
  LastingTalk(rt::AsioLoop& loop, Open open, TerminalTalk::Ends ends, Begin begin)
      : loop_(loop), open_(std::move(open)), ends_(ends), begin_(begin) {}

  // 0 when the person has left; else why there is no console (any more).
  rt::Task<Result<int>> Run();

 private:
  // One conversation; whether the person ended it.
  struct End {
    Result<int> code = 0;
    bool is_left = false;
  };
  rt::Task<End> TalkOnce();
  // True once the person leaves; what else is typed meanwhile goes nowhere.
  rt::Task<Result<bool>> Pause();
  void SayWaiting(const Result<int>& end);

  rt::AsioLoop& loop_;
  const Open open_;
  const TerminalTalk::Ends ends_;
  const Begin begin_;
  bool was_open_ = false;    // ever
  bool is_waiting_ = false;  // and has said so
};

}  // namespace berth::cli
