// SPDX-License-Identifier: Apache-2.0
// A Part is one child process that belongs to `berth up`: started, watched, started again when it
// ends, and stopped. It gets SIGTERM when its parent dies, however that happens.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::app {

// Who a process becomes; only root can ask for it.
struct ProcessUser {
  uid_t uid = 0;
  gid_t gid = 0;
};

struct PartCommand {
  std::string name;  // for people: "machine runtime"
  // words[0] is the path of the program; "" is this very program, which the user need not be able
  // to find.
  std::vector<std::string> words;
  std::vector<std::string> variables;  // "NAME=VALUE", in place of our own of that name
  std::optional<ProcessUser> user;
  std::string rights;  // capabilities that stay: "+net_admin,+net_raw"
  std::string log;     // file that its output is appended to
  std::string output;  // "" or a new file for its standard output
};

// "was killed by signal 9", "ended with 1".
std::string DescribeEnd(int wait_status);

class Part {
 public:
  // The loop outlives it.
  Part(rt::Loop& loop, PartCommand command) : loop_(loop), command_(std::move(command)) {}
  ~Part();
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  const std::string& name() const { return command_.name; }

  // Starts it, and again whenever it has ended, after a pause that grows. Ends when it is
  // cancelled, the process still running.
  rt::Task<Status> Keep();
  // Runs it once, to its end; an error is how it ended.
  rt::Task<Status> RunOnce();
  // SIGTERM, and SIGKILL for one that does not listen. REQUIRES: Keep() has ended. Idempotent.
  rt::Task<Status> Stop();

 private:
  Status Start();
  // How it ended, if it did.
  std::optional<int> Ended();
  // Until it ends, or we are cancelled.
  rt::Task<Result<int>> AwaitEnd();

  rt::Loop& loop_;
  const PartCommand command_;
  pid_t pid_ = 0;
};

}  // namespace berth::app
