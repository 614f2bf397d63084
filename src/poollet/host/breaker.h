// SPDX-License-Identifier: Apache-2.0
// The Breaker keeps a rewound history from emptying a host (PROTOCOL 4.3): deletions of one
// resynchronisation are looked at together before any is carried out. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace berth::poollet {

// What a host knew before, and what the server says now.
struct HistorySeen {
  uint64_t incarnation_known = 0;
  uint64_t incarnation = 0;
  uint64_t revision_known = 0;
  uint64_t revision = 0;
};

// The history is not the one that the host knew: an older or a restored one.
bool IsSuspicious(const HistorySeen& seen);
// More than a tenth of what runs, and at least 3: three of three are.
bool IsMassDeletion(size_t deletions, size_t running);

}  // namespace berth::poollet
