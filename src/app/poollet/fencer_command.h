// SPDX-License-Identifier: Apache-2.0
// `berth fencer`, which a poollet starts for itself, and how it does that.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "base/result.h"
#include "cli/command.h"

namespace berth::app {

cli::Command FencerCommand();

// Starts `berth fencer` for a folder as a process that outlives this one, and does not wait for it.
// What it has to say goes to fencer.log in the folder.
class FencerLauncher {
 public:
  explicit FencerLauncher(std::string folder) : folder_(std::move(folder)) {}
  Status Launch();

 private:
  const std::string folder_;
  pid_t last_ = 0;  // to be reaped
};

}  // namespace berth::app
