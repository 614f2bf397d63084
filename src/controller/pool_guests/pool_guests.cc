// SPDX-License-Identifier: Apache-2.0
#include "controller/pool_guests/pool_guests.h"

#include <utility>

namespace berth::controller::internal {

void ForgetReports(meta::Object& pool) {
  auto& status = pool.as<apis::compute::MachinePool>().status;
  apis::compute::MachinePoolStatus kept;
  kept.agent = std::move(status.agent);
  status = std::move(kept);
}

}  // namespace berth::controller::internal
