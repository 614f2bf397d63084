// SPDX-License-Identifier: Apache-2.0
// Key ranges and the limits of requests, the same for every body of the store.
#pragma once

#include <string_view>

#include "base/status.h"
#include "store/store.h"

namespace berth::store {

// True if `key` is in the range that `start` and `end` describe (see RangeRequest).
bool InRange(std::string_view key, std::string_view start, std::string_view end);
// True if nothing at or after `key` can be in the range. REQUIRES: key >= start.
bool IsPastEnd(std::string_view key, std::string_view start, std::string_view end);

// BadRequest that names the key, the value and the limit.
Status ValidateTxn(const Txn& txn);
Status ValidateRange(std::string_view start, std::string_view end);
Status ValidateLeaseTtl(Duration ttl);

}  // namespace berth::store
