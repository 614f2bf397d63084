// SPDX-License-Identifier: Apache-2.0
// Words that `get` takes for several kinds. `all` is what somebody has in a namespace, without what
// only describes it (classes, Secrets, policies).
#pragma once

#include <string_view>

namespace berth::apis::core {

inline constexpr std::string_view kShownByAll[] = {"all"};
inline constexpr std::string_view kShownByPools[] = {"pools"};
inline constexpr std::string_view kShownByClasses[] = {"classes"};

}  // namespace berth::apis::core
