// SPDX-License-Identifier: Apache-2.0
// A GuestAgent is the QEMU guest agent of one guest, seen from its host: it answers one request
// after the other, on a line that talks with one at a time.
//
// The line is opened with the first request and given up when the last owner of this goes, or when
// an answer is late, broken or too long: the next request begins on a new line, where what is left
// of old answers is skipped. A guest that hangs holds up nobody but those who talk with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "rt/gate.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "runtime/machine/serial_line.h"

namespace berth::runtime {

class GuestAgent {
 public:
  // From the first word to the agent's: who is there answers at once.
  static constexpr Duration kGreetingMax = Duration::Seconds(5);
  // Of one answer. An agent without KVM says a few MiB in a second.
  static constexpr Duration kAnswerMax = Duration::Seconds(60);

  // Both outlive this.
  GuestAgent(rt::Loop& loop, SerialLines& lines, std::string socket)
      : loop_(loop), lines_(lines), socket_(std::move(socket)) {}

  // Whether there is one. Unavailable says what is missing.
  rt::Task<Status> Greet();
  // A line of JSON, which a guest wrote. Unavailable if nobody is there (any more), BadRequest if
  // it is too long, Timeout.
  rt::Task<Result<std::string>> Call(std::string request);

 private:
  // Inside of the gate.
  rt::Task<Status> Open();
  rt::Task<Status> Synchronize();
  rt::Task<Result<std::string>> Ask(std::string request);
  enum class Wanted : uint8_t { kAny, kMarked };
  rt::Task<Result<std::string>> Hear(Wanted wanted);

  rt::Loop& loop_;
  SerialLines& lines_;
  const std::string socket_;
  rt::Gate calls_{1};
  std::unique_ptr<SerialLine> line_;  // or none: the next request opens one
  std::string rest_;                  // heard behind the last answer
};

}  // namespace berth::runtime
