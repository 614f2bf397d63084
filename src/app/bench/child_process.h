// SPDX-License-Identifier: Apache-2.0
// This very binary with other arguments, as a child process. Killed when its owner lets go.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth::app {

// Computing time of all threads of a process so far.
Result<double> CpuSecondsOf(pid_t pid);

class ChildProcess {
 public:
  // `words` are the arguments behind the program's name.
  static Result<ChildProcess> Start(std::vector<std::string> words);
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess() { Kill(); }

  // Zero once it was waited for.
  pid_t pid() const { return pid_; }
  // Whether it ended by itself; it is then waited for.
  bool HasEnded();
  // SIGTERM and wait; how it ended.
  Status Stop();
  // SIGKILL and wait. Idempotent.
  void Kill();
  // As if all packets from and to it were dropped, until it is resumed.
  void Pause();
  void Resume();
  // Resident memory now.
  Result<double> RssMb() const;
  // The part of it that is no file's: what it has allocated.
  Result<double> OwnRssMb() const;
  Result<double> CpuSeconds() const;

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

}  // namespace berth::app
