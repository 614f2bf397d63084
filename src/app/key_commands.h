// SPDX-License-Identifier: Apache-2.0
// berth store rotate-key, berth store retire-keys: the keys of what is encrypted at rest.
#pragma once

#include "cli/command.h"

namespace berth::app {

cli::Command RotateKeyCommand();
cli::Command RetireKeysCommand();

}  // namespace berth::app
