// SPDX-License-Identifier: Apache-2.0
// The fencer: a process of its own that kills guests at their deadlines, whoever else is alive. It
// holds a pidfd of every guest and one timer on CLOCK_BOOTTIME, and outlives the poollet that
// started it. Its folder has
//   fencer.sock    where the poollet speaks to it; only the same user (or root) may
//   fencer.lock    held while it lives: there is one per folder
//   fencer.state   what it knows, for the one who is started after it was killed
//   fenced.log     a durable line for every guest that it has killed, as soon as it can be written
#pragma once

#include <string>

#include "base/result.h"

namespace berth::poollet {

inline constexpr std::string_view kFencerSocket = "fencer.sock";
inline constexpr std::string_view kFencedLog = "fenced.log";

// Serves until it is killed, or has been of no use for a minute. AlreadyExists if another one does.
Status RunFencer(const std::string& folder);

}  // namespace berth::poollet
