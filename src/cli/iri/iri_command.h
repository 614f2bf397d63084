// SPDX-License-Identifier: Apache-2.0
// `berth iri`: talking to any runtime's socket by hand.
#pragma once

#include "cli/command.h"

namespace berth::cli {

Command IriCommand();

}  // namespace berth::cli
