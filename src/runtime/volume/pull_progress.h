// SPDX-License-Identifier: Apache-2.0
// How far an image on its way has come, in words for a condition: told now and then, and not at all
// of one that comes quickly or is there already.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"

namespace berth::runtime {

// The reason of ImageReady meanwhile.
constexpr std::string_view kPullingReason = "Pulling";
// Each time is a write of the object at the server.
constexpr Duration kPullInterval = Duration::Seconds(1);

class PullProgress {
 public:
  PullProgress() = default;
  // One that begins now.
  explicit PullProgress(Time now, Duration interval = kPullInterval)
      : interval_(interval), told_(now) {}

  // True if there is something else to tell than before.
  bool Note(int64_t bytes, int64_t of, Time now);
  // The same of what is unpacked by now, behind all that was to come.
  bool NoteUnpacked(int64_t bytes, int64_t of, Time now);
  void End() { text_.clear(); }
  // "45 % of 120.5 MiB", "45 % of 120.5 MiB unpacked"; "" if there is nothing to tell.
  const std::string& text() const { return text_; }

 private:
  bool Tell(std::string text, Time now);

  Duration interval_ = kPullInterval;
  Time told_;  // or when it began
  std::string text_;
};

}  // namespace berth::runtime
