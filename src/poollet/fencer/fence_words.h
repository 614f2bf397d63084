// SPDX-License-Identifier: Apache-2.0
// What a poollet and its fencer say to each other over a unix socket, and what the fencer writes to
// its files: lines of text, so that a fencer needs no library. A message ends with a line ".".
//
//   deadline 81234000000000        lease 6f0c… 81234000000000 0 0
//   release 55ab…                  guest 6f0c… 4711 8123400
//   lease 6f0c…                    ok
//   guest 6f0c… 4711 8123400       .
//   .
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "poollet/fencer/fence_table.h"

namespace berth::poollet {

inline constexpr size_t kFenceMessageBytesMax = 2 << 20;
inline constexpr std::string_view kFenceEnd = ".\n";

std::string EncodeFenceRequest(const FenceRequest& request);
// `text` is without its end.
Result<FenceRequest> DecodeFenceRequest(std::string_view text);

std::string EncodeFenceLeases(const FenceTable::Leases& leases);
Result<FenceTable::Leases> DecodeFenceLeases(std::string_view text);

// The leases, or the error that the fencer answered with.
std::string EncodeFenceAnswer(const Status& status, const FenceTable::Leases& leases);
Result<FenceTable::Leases> DecodeFenceAnswer(std::string_view text);

// The first message of `buffer`, without its end, taken out of it; nullopt: not complete yet.
std::optional<std::string> TakeFenceMessage(std::string& buffer);

}  // namespace berth::poollet
