// SPDX-License-Identifier: Apache-2.0
// Why hosts refuse offers, where the scheduler does more than to ask the next one.
#pragma once

namespace berth::fleet {

// The runtime's class of that name is of another size (ADR 0042): it will be next time, too.
inline constexpr char kClassDiffers[] = "ClassDiffers";

}  // namespace berth::fleet
