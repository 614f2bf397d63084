// SPDX-License-Identifier: Apache-2.0
// A Gang is a group on its way: its members' attempts go together (PROTOCOL 8.5, sequence 21).
//
//   wait for members ──► room for all on the board ──► all hosts asked ──all yes──► one commit
//          ▲                        │ none                  │ one no          └─too large─► plan on
//          └────────────────────────┴───────────────────────┘                   the group, then one
//                                                                                by one
//
// One gang at a time takes holds, the most important first, then by UID of the group: two gangs
// never wait for each other's holds.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/client.h"
#include "scheduler/core/words.h"
#include "scheduler/placing/attempt.h"

namespace berth::scheduler {

struct Gang {
  client::ObjectKey key;
  std::string uid;                   // of the group
  std::vector<std::string> members;  // UIDs of those under way
  size_t ready = 0;                  // members whose hosts all said yes
  bool is_binding = false;
  int rounds = 0;
  Time deadline;                                          // then everything is given back
  std::map<std::string, std::vector<PoolIndex>> refused;  // by member
  std::vector<Refusal> refusals;                          // the first ones, for people
};

// A group that waits for its turn, or for something to change.
struct GangWait {
  Time due;
  Time tried;
  Duration pause;
  // Of its last try, if there were others left to ask: the next one goes on behind them.
  std::map<std::string, std::vector<PoolIndex>> refused;
  std::vector<Refusal> refusals;
  std::string reason;   // of its condition; "" before the first try
  std::string message;  // a sentence with figures
};

inline constexpr Duration kGangPauseFirst = Duration::Millis(100);
inline constexpr Duration kGangPauseMax = Duration::Seconds(10);
// Members times pools that are remembered: 16,384 * 4 B = 64 KiB per group.
inline constexpr size_t kGangRefusedMax = 16'384;
inline constexpr size_t kGangRefusalsTold = 4;

}  // namespace berth::scheduler
