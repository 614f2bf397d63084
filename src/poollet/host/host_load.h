// SPDX-License-Identifier: Apache-2.0
// What the runtimes of one host measure, each its part, as one record of the host.
#pragma once

#include <vector>

#include "fleet/fleet.h"
#include "poollet/ledger/amounts.h"

namespace berth::poollet {

// Adds what one runtime measured to the host's record, which is made if `all` has none: of each
// figure the largest that any runtime tells. Where a runtime measures no processors, what its
// instances use counts.
void AddHostLoad(const Amounts& load,
                 double cores_of_instances,
                 std::vector<fleet::Statistics>& all);

}  // namespace berth::poollet
