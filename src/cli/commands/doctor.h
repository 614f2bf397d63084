// SPDX-License-Identifier: Apache-2.0
// The findings of `berth doctor`, for those who send them on.
#pragma once

#include <string>
#include <vector>

#include "cli/commands/host_checks.h"
#include "cli/session/session.h"
#include "meta/value.h"

namespace berth::cli {

// `data_dir` is the folder of a server on this host; "" if there is none.
std::vector<Finding> Examine(Session& session, const std::string& data_dir);
meta::Value ValueOf(const Finding& finding);

}  // namespace berth::cli
