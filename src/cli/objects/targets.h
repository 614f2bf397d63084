// SPDX-License-Identifier: Apache-2.0
// Targets are what a command line points at: "machines", "machine web db", "machine/web
// volume/data", "machines,volumes", "all".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/api/discovery.h"
#include "cli/api/resource.h"

namespace berth::cli {

struct Target {
  Resource resource;
  std::string name;  // "": every object of the kind
};

// REQUIRES: words is not empty. BadRequest when both forms are mixed or a name is given to several
// kinds.
Result<std::vector<Target>> FindTargets(Discovery& discovery,
                                        const std::vector<std::string>& words);

// The same, each with a name: for commands that change single objects.
Result<std::vector<Target>> FindNamedTargets(Discovery& discovery,
                                             const std::vector<std::string>& words,
                                             std::string_view usage);

// Machines by name, "web" or "machine/web". BadRequest if none is named, or something else is.
Result<std::vector<Target>> FindMachines(Discovery& discovery,
                                         const std::vector<std::string>& words);

}  // namespace berth::cli
