// SPDX-License-Identifier: Apache-2.0
// A ProcessRunner runs a program to its end: an argument vector, never a shell. Two bodies:
// ChildProcesses on real processes, and whatever a test makes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "rt/task.h"

namespace berth::rt {

// A secret and what a program says of a file are small; more than this is cut off or refused.
constexpr size_t kProcessSecretBytesMax = 4096;  // fits into a pipe that nobody reads yet
constexpr size_t kProcessOutputBytesMax = 256 * 1024;
constexpr size_t kProcessInputBytesMax = size_t{8} << 20;

// The files of a program that works on what strangers have made.
struct ProcessReach {
  std::vector<std::string> reads;
  std::vector<std::string> writes;  // a file; if it is not there, it is made in its folder
};

struct ProcessRequest {
  std::vector<std::string> argv;  // argv[0] is the path of the program
  // Given to the program as pipes: the first is read at /dev/fd/3, the second at /dev/fd/4, ...
  std::vector<std::string> secrets;
  std::string input;             // its standard input
  Duration limit;                // it is killed then
  int64_t file_bytes_max = 0;    // of each file that it writes; 0: no limit
  int64_t memory_bytes_max = 0;  // of its address space; 0: no limit
  // If set, it reaches no other files than these and programs and libraries of the system, also if
  // we are root, and has no rights but to open them. Where the kernel has no Landlock, it reaches
  // the files that we do.
  std::optional<ProcessReach> reach = {};
};

struct ProcessEnd {
  int exit_code = 0;   // -1: a signal ended it
  int signal = 0;      // 0: none did
  std::string output;  // cut at kProcessOutputBytesMax, as are its errors
  std::string errors;
  bool ok() const { return exit_code == 0 && signal == 0; }
};

class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;

  // Runs the program and waits for its end, however it ended. Unavailable: it could not be started;
  // Timeout, Cancelled: it was killed and is gone; TooManyRequests: too many wait already. Its
  // environment is empty, it makes no core dumps, and it dies with us.
  virtual Task<Result<ProcessEnd>> Run(ProcessRequest request) = 0;
};

}  // namespace berth::rt
