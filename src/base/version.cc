// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

namespace berth {

const std::string_view kVersion = BERTH_VERSION;
const std::string_view kCompiler = __VERSION__;

}  // namespace berth
