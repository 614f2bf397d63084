// SPDX-License-Identifier: Apache-2.0
// Values of flags that the real runtimes have in common. Errors name the flag, the value and what
// is possible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/arguments.h"

namespace berth::app {

// A quantity of at least zero. `expected` is for people: "a size such as 500Gi".
Result<int64_t> ParseAmount(const cli::Arguments& arguments,
                            std::string_view flag,
                            std::string_view expected);

// "1.5": how much more is promised than there is, from 1 to 100.
Result<double> ParseOvercommit(const std::string& text, std::string_view flag = "overcommit");

// Without "." and "..", and without a slash at its end.
Result<std::string> AbsolutePath(const std::string& path, std::string_view flag);

}  // namespace berth::app
