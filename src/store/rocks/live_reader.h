// SPDX-License-Identifier: Apache-2.0
// Reads the state of a store's folder from outside, also while a server has it open: everything
// that was acknowledged before the call is seen, as of one revision. Nothing in the folder changes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/result.h"
#include "store/store.h"

namespace berth::store {

struct LiveState {
  Revision revision;
  size_t keys = 0;
};

// Calls `visit` for every key, in order; its first error ends the reading.
// A folder beside `dir` has links to its files while they are opened. Blocks.
Result<LiveState> ReadLiveStore(const std::string& dir,
                                const std::function<Status(const KeyValue&)>& visit);

}  // namespace berth::store
