// SPDX-License-Identifier: Apache-2.0
// A child process with many BenchHosts on one loop, each with its own connection and certificate.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "app/bench/bench_host.h"
#include "base/result.h"
#include "rt/task.h"

namespace berth::app {

// Which hosts a process shall be.
struct HostPlan {
  std::string server;     // "host:port" of the gateway; several are separated by commas
  std::string authority;  // folder of the server's certificate authority
  int first = 0;
  int count = 0;
  // Where it writes what hosts hold whenever the board asks for that; "": it is never asked.
  std::string holdings = {};
};
std::string BenchHostName(int index);

class HostProcess {
 public:
  // Forks; the child waits for its plan. REQUIRES: no threads, no loop.
  static Result<std::unique_ptr<HostProcess>> Fork();
  // Kills it.
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  Status Begin(const HostPlan& plan);
  HostBoard& board() { return *board_; }
  // From now on it neither reads nor answers, and its connections stay: only the kernel
  // acknowledges what comes.
  void Freeze();
  // All packets to it are dropped, also by the kernel, and it sends none: its connections stay, and
  // nobody is told. Returns once that is so; there is no way back. REQUIRES: hosts are connected.
  rt::Task<Status> Lose();
  // Goes on, with what is left of its connections.
  void Thaw();
  bool is_alive() const;
  Result<double> CpuSeconds() const;

 private:
  HostProcess(pid_t pid, int plan, HostBoard* board) : pid_(pid), plan_(plan), board_(board) {}

  const pid_t pid_;
  const int plan_;  // where the child reads its plan
  HostBoard* const board_;
};

}  // namespace berth::app
