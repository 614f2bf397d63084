// SPDX-License-Identifier: Apache-2.0
// Failures of a command that works on many objects: each is reported as it happens, the others go
// on.
#pragma once

#include <optional>

#include "base/status.h"
#include "cli/environment.h"

namespace berth::cli {

class Failures {
 public:
  explicit Failures(Environment& environment) : environment_(environment) {}
  // Ok is no failure.
  void Add(const Status& status);
  bool empty() const { return count_ == 0; }
  // How the command ends: ok, the only failure, or a quiet failure whose exit code is that of all
  // failures if they agree.
  Status Outcome() const;

 private:
  Environment& environment_;
  Status first_;
  size_t count_ = 0;
  bool agree_ = true;
};

}  // namespace berth::cli
