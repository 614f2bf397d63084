// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace berth::rt {

// Names the calling thread for ps, top and debuggers; the kernel keeps 15 characters.
void SetThreadName(std::string_view name);

}  // namespace berth::rt
