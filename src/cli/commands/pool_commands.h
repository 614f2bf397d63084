// SPDX-License-Identifier: Apache-2.0
// The children of `pool` that live in files of their own.
#pragma once

#include <string_view>

#include "cli/command.h"

namespace berth::cli {

// The cluster role of poollets that need wide rights, its bindings' label, and
// the mark on pools.
inline constexpr std::string_view kLegacyRole = "berth:legacy-poollet";
inline constexpr std::string_view kLegacyLabel = "berth.dev/legacy-pool";
inline constexpr std::string_view kLegacyAnnotation = "berth.dev/legacy-access";

Command PoolFenceCommand();
Command PoolIsolateCommand();
Command PoolRemoveCommand();
Command PoolAdoptCommand();
Command PoolPurgeCommand();
Command PoolApproveCommand();
Command PoolBrakeCommand();
Command PoolAllowLegacyCommand();

}  // namespace berth::cli
