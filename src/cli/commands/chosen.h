// SPDX-License-Identifier: Apache-2.0
// Which objects a command is about: what -f, the words of the command line and its selectors
// choose.
#pragma once

#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/objects/manifest.h"
#include "cli/objects/patience.h"
#include "cli/session/session.h"

namespace berth::cli {

// The manifests of --filename and --recursive.
Result<std::vector<Manifest>> ManifestsOf(Session& session, const Arguments& arguments);

// Where the objects of these manifests are, in their order. BadRequest for one without name.
Result<std::vector<ObjectAddress>> ChosenByFiles(Session& session, const Arguments& arguments);

// KIND NAME... and KIND/NAME..., or all of a KIND that --selector, --field-selector or --all
// choose; in one namespace, or with --all-namespaces in all. BadRequest if nothing is chosen, or a
// name and a selector both.
Result<std::vector<ObjectAddress>> ChosenByWords(Session& session, const Arguments& arguments);

}  // namespace berth::cli
