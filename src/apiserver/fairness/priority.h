// SPDX-License-Identifier: Apache-2.0
// The priority levels, and which of them a request belongs to.
//
//   exempt          reads and writes of one object by system:masters, who repair the server: these
//                   never wait.
//   exempt-listing  what `listing` is, of system:masters: the default kubeconfig is theirs, so a
//                   script that lists everything at once is most often one of them.
//   system          hosts, pools, also those that speak over the API, and the server's own
//                   certificates; elections (Leases) of anybody. Without these everything else
//                   stops.
//   object          a read or a write of one object.
//   listing         lists, deletions of collections, the beginning of watches, and documents
//                   (discovery, OpenAPI, metrics): one of them costs as much as a thousand of the
//                   others.
//   outside         whoever was not authenticated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "apiserver/fairness/fair_seats.h"
#include "apiserver/identity.h"

namespace berth::apiserver {

enum class PriorityLevel : uint8_t {
  kExempt,
  kExemptListing,
  kSystem,
  kObject,
  kListing,
  kOutside
};
inline constexpr size_t kPriorityLevels = 6;

std::string_view NameOf(PriorityLevel level);
PriorityLevel LevelOf(const Identity& identity, const RequestInfo& request);

// Seats are requests that are worked on at once. 128 writes fill a commit; 16 lists of any size
// keep a processor busy and hold 16 * 256 KiB. Administrators have twice as many, so that they are
// served beside everybody's lists and leave them a third; all 512 requests that one of them may
// have (RequestLimits) sit or wait: 32 + 480. Who waits holds its body, at most 3 MiB and usually a
// few KiB: 1,024 of them.
struct LevelLimits {
  std::array<FairSeats::Limits, kPriorityLevels> levels = {{
      {.seats = 1'024, .queue_per_flow = 0, .queue_total = 0},
      {.seats = 32, .queue_per_flow = 480, .queue_total = 1'024},
      {.seats = 128, .queue_per_flow = 64, .queue_total = 1'024},
      {.seats = 128, .queue_per_flow = 128, .queue_total = 1'024},
      {.seats = 16, .queue_per_flow = 64, .queue_total = 1'024},
      {.seats = 4, .queue_per_flow = 8, .queue_total = 32},
  }};
  const FairSeats::Limits& Of(PriorityLevel level) const {
    return levels[static_cast<size_t>(level)];
  }
};

}  // namespace berth::apiserver
