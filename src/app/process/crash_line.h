// SPDX-License-Identifier: Apache-2.0
// A crash line is what a process says last when it crashes: what the next one needs who looks at
// it.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace berth::app {

// While there is one, a failed CHECK, a signal of a crash or the report of a sanitizer is followed
// by the line on stderr, and the process ends with status 1 and without a core. An overflow of the
// stack is a crash, too, of the thread that made this.
//
// REQUIRES: there is one at a time, and nobody else handles these signals. Costs nothing until
// then.
class CrashLine {
 public:
  CrashLine();
  ~CrashLine();
  CrashLine(const CrashLine&) = delete;
  CrashLine& operator=(const CrashLine&) = delete;

  // What is said from here on; nothing before.
  void Set(const std::string& line);

 private:
  // A crash in the midst of Set() still finds the one before.
  std::array<std::string, 2> lines_;
  size_t now_ = 0;
};

}  // namespace berth::app
