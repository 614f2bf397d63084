// SPDX-License-Identifier: Apache-2.0
// Fills a data folder with machines, without a server.
#pragma once

#include <cstddef>
#include <string>

#include "app/bench/machine_template.h"
#include "base/result.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::app {

rt::Task<Status> Prefill(rt::AsioLoop& loop,
                         std::string folder,
                         const MachineTemplate& machine,
                         size_t objects);

}  // namespace berth::app
