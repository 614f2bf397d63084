// SPDX-License-Identifier: Apache-2.0
// How a pool's poollet speaks to the server. Only in a session does a host stop something because
// it shall leave; what a poollet that uses the API does not see any more runs on (protocol 4.1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cli/objects/targets.h"
#include "meta/value.h"

namespace berth::cli {

enum class PoolMode : uint8_t {
  kUnknown,  // nobody has announced it: it has no poollet, or none that has spoken yet
  kSession,
  kApi
};
PoolMode ModeOf(const meta::Value& pool);

// "is in API mode, and …". REQUIRES: not kSession.
std::string_view WhyNothingLeaves(PoolMode mode);

// The field selector of the machines, volumes or buckets that are on the pool. Without a session
// that is everything that names the pool, whoever wrote it there: the reference itself is the
// assignment.
std::string SelectorOf(const Target& pool, const meta::Value& object);
// Of what the server has placed there: room is reserved in no other way.
std::string PlacedSelectorOf(const meta::Value& object);

// Whether the object is on its pool by a placement of the server's, which can be taken back.
bool IsPlaced(const meta::Value& object);

}  // namespace berth::cli
