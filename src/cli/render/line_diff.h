// SPDX-License-Identifier: Apache-2.0
// The difference of two texts, line by line, as `diff -u` shows it.
#pragma once

#include <string>
#include <string_view>

namespace berth::cli {

// "" if they are the same; else the hunks, each with up to three lines around what differs. Texts
// that differ in very many lines are shown as all removed, all added.
std::string UnifiedDiff(std::string_view before, std::string_view after);

}  // namespace berth::cli
