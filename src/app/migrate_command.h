// SPDX-License-Identifier: Apache-2.0
// berth store migrate: from the embedded store to an etcd, or back.
#pragma once

#include "cli/command.h"

namespace berth::app {

cli::Command MigrateCommand();

}  // namespace berth::app
