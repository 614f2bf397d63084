// SPDX-License-Identifier: Apache-2.0
// `berth image build|ls|pull|rm`: the images of this host.
#pragma once

#include "cli/command.h"

namespace berth::app {

cli::Command ImageCommand();

}  // namespace berth::app
