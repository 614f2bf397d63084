// SPDX-License-Identifier: Apache-2.0
// Which Berth this is.
#pragma once

#include <string_view>

namespace berth {

extern const std::string_view kVersion;   // "0.1.0", from CMakeLists.txt
extern const std::string_view kCompiler;  // "Clang 19.1.7"

}  // namespace berth
