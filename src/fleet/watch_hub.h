// SPDX-License-Identifier: Apache-2.0
// A WatchHub gives every event of a fleet to every watch of it, through one bounded buffer each. A
// reader that falls behind loses the buffer and is told so.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "fleet/fleet.h"
#include "rt/waiters.h"

namespace berth::fleet {

class WatchHub {
 public:
  // 4,096 events * ~400 bytes = 1.6 MB for a reader that stands still.
  static constexpr size_t kBufferMax = 4096;

  WatchHub() = default;
  WatchHub(const WatchHub&) = delete;
  WatchHub& operator=(const WatchHub&) = delete;

  // The hub may end before its watches: they get Unavailable then.
  std::unique_ptr<FleetWatch> Watch();
  void Tell(const FleetEvent& event);
  ~WatchHub();

 private:
  class Reader;
  std::vector<Reader*> readers_;  // in the order in which they came; few
};

}  // namespace berth::fleet
