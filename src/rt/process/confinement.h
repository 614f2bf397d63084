// SPDX-License-Identifier: Apache-2.0
// A Confinement closes the file system to a program that is about to start, whoever runs it, by
// Landlock of the Linux kernel, and takes the rights of root from it.
#pragma once

#include <string>

#include "base/result.h"
#include "rt/process/process_runner.h"

namespace berth::rt {

class Confinement {
 public:
  // None: Enter() changes nothing.
  Confinement() = default;
  ~Confinement();
  Confinement(Confinement&& other) noexcept;
  Confinement& operator=(Confinement&& other) noexcept;

  // Whether this kernel has Landlock.
  static bool HasLandlock();
  // What a program of the system needs to run, and what `reach` says. A file that is not there is
  // not reached. Without Landlock files are what the user makes of them.
  static Result<Confinement> Prepare(const ProcessReach& reach, const std::string& program);

  // Binds this thread and what it becomes, for good. Safe between fork and exec. REQUIRES: no new
  // privileges (prctl). False: errno says why it does not.
  bool Enter() const;

 private:
  bool is_any_ = false;
  int rules_ = -1;
};

}  // namespace berth::rt
