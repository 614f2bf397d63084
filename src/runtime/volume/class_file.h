// SPDX-License-Identifier: Apache-2.0
// Reading a file of classes, which runtimes of all kinds have: a list `classes` of mappings with a
// name and capabilities. What else a class has is its runtime's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"
#include "meta/value.h"

namespace berth::runtime {

// Refuses what is no mapping, and members of other names. `where` begins the message.
Status OnlyMembers(const meta::Value& value,
                   std::initializer_list<std::string_view> known,
                   std::string_view where);

// The classes of the file, of which there are 1 to `max`. `what` is "volume classes".
Result<meta::Value> ReadClassList(std::string_view yaml, std::string_view what, size_t max);

// "class NAME", or where it stands in the list if it has none.
std::string ClassWhere(const meta::Value& value, size_t index);
// The name of a class, which has to have one.
Result<std::string> ClassName(const meta::Value& value, std::string_view where);

// A capability: a number or a quantity above 0. `expected` says which.
Result<int64_t> CapabilityAmount(const meta::Value& value,
                                 std::string_view key,
                                 std::string_view where,
                                 std::string_view expected);

}  // namespace berth::runtime
