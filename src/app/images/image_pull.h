// SPDX-License-Identifier: Apache-2.0
// `berth image pull`: an image of a registry into a folder of images.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/arguments.h"
#include "cli/session/session.h"

namespace berth::app {

// The flags of the command, and the folder that they and the environment come to.
Status PullImage(cli::Session& session, const cli::Arguments& arguments, const std::string& folder);

}  // namespace berth::app
