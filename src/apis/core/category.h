// SPDX-License-Identifier: Apache-2.0
// `get all` shows the kinds of this category: what somebody has in a namespace, without what only
// describes it (classes, Secrets, policies).
#pragma once

#include <string_view>

namespace berth::apis::core {

inline constexpr std::string_view kShownByAll[] = {"all"};

}  // namespace berth::apis::core
