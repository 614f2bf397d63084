// SPDX-License-Identifier: Apache-2.0
// Maps and sets by string for tables of many entries whose order nobody asks for: a lookup costs
// one hash and usually one comparison, where a std::map of 100,000 UIDs costs 17 of them, each a
// miss in the processor's cache. References to entries stay valid, and lookups take a string_view.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/strings.h"

namespace berth {

template <class Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

using StringSet = std::unordered_set<std::string, StringHash, std::equal_to<>>;

}  // namespace berth
