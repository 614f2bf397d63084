// SPDX-License-Identifier: Apache-2.0
#include "rt/loop.h"

#include "base/check.h"

namespace berth::rt {

void Loop::Assert() const { CHECK(IsOnLoop()) << "called off its loop"; }

}  // namespace berth::rt
