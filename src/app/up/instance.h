// SPDX-License-Identifier: Apache-2.0
// What a `berth up` leaves in its data folder for those who come later: that it runs, as which
// process, and how far its host is.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace berth::app {

// Held as long as the process lives, however it ends.
class InstanceLock {
 public:
  // Null: another process holds it.
  static Result<std::unique_ptr<InstanceLock>> Take(const std::string& data_dir);
  ~InstanceLock();
  InstanceLock(const InstanceLock&) = delete;
  InstanceLock& operator=(const InstanceLock&) = delete;

 private:
  explicit InstanceLock(int fd) : fd_(fd) {}
  const int fd_;
};

// The process that holds the lock of this folder; none if nobody does.
Result<std::optional<pid_t>> FindInstance(const std::string& data_dir);

struct HostProgress {
  enum class State : uint8_t { kStarting, kReady, kNone };
  State state = State::kStarting;
  std::string what = "host";  // or "image": whose steps, or bytes, are counted. One word
  size_t done = 0;
  size_t of = 0;
  std::string text;  // the step, the host's name, or why there is none
  bool operator==(const HostProgress&) const = default;
};

Status WriteProgress(const std::string& data_dir, const HostProgress& progress);
// NotFound if nothing was written yet.
Result<HostProgress> ReadProgress(const std::string& data_dir);

}  // namespace berth::app
