// SPDX-License-Identifier: Apache-2.0
// Object identities: random UUIDs (version 4) in their text form, as Kubernetes shows them.
#pragma once

#include <string>
#include <string_view>

#include "base/random.h"

namespace berth {

std::string NewUid(Random& random);
bool IsUid(std::string_view text);

}  // namespace berth
