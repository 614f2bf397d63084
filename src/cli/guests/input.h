// SPDX-License-Identifier: Apache-2.0
// What a person types, or a pipe brings, read beside everything else that happens. Reading blocks a
// thread of its own: a terminal made non-blocking would be so for the shell behind us as well.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "rt/task.h"
#include "rt/thread_pool.h"

namespace berth::cli {

struct TerminalSize {
  int columns = 0;
  int rows = 0;
  bool operator==(const TerminalSize&) const = default;
};
// Of the terminal behind a descriptor; all zero if there is none.
TerminalSize SizeOf(int fd);

class Input {
 public:
  struct Event {
    enum class Type : uint8_t { kData, kEnd, kNothing } type = Type::kNothing;
    std::string data;
  };
  // Reads from the descriptor, which stays its owner's.
  static Result<std::unique_ptr<Input>> Of(int fd);
  ~Input();

  // The next bytes, or kNothing after `patience`. One reader at a time.
  rt::Task<Result<Event>> Next(Duration patience);
  // Ends a Next() in progress with kEnd, and all later ones. Any thread.
  void Interrupt();
  // Undoes Interrupt(). REQUIRES: no Next() is in progress.
  void Resume();

 private:
  Input(int fd, int wake);

  const int fd_;
  const int wake_;  // an eventfd
  rt::ThreadPool pool_;
};

// The terminal as a program without a shell needs it: every key arrives as it is typed. As it was
// before when this is gone. Null if the descriptor is no terminal.
class RawTerminal {
 public:
  static std::unique_ptr<RawTerminal> On(int fd);
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  struct Saved;
  RawTerminal(int fd, std::unique_ptr<Saved> saved);

  const int fd_;
  std::unique_ptr<Saved> saved_;
};

}  // namespace berth::cli
