// SPDX-License-Identifier: Apache-2.0
// The kubeconfig in a server's folder names the other servers of the cluster too, so that `berth`
// finds another one when this one is gone.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace berth::app {

// Names `others` beside `own` in every cluster of the file whose server is `own`; none of them is
// named if there are no others. Everything else in the file stays, and a file that says so already
// is not written.
Status NameServers(const std::string& path,
                   const std::string& own,
                   const std::vector<std::string>& others);

}  // namespace berth::app
