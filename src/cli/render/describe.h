// SPDX-License-Identifier: Apache-2.0
// An object for people: what it is, what it shall be, how it is, what happened to it.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "meta/value.h"

namespace berth::cli {

// `events` are v1 Events of this object, in any order. Values of Secrets are shown as sizes.
std::string DescribeObject(const meta::Value& object,
                           const std::vector<meta::Value>& events,
                           WallTime now);

// Rows "LAST SEEN, TYPE, REASON, ..." of events: what `describe` and `berth events` share.
struct EventLine {
  std::string last_seen;  // age, with the count if it happened more than once
  std::string type;
  std::string reason;
  std::string object;  // "machine/web"
  std::string source;
  std::string message;
  WallTime time;  // for sorting
};
EventLine EventLineOf(const meta::Value& event, WallTime now);

}  // namespace berth::cli
