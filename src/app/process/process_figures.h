// SPDX-License-Identifier: Apache-2.0
// What this process uses of its host, under the names that Prometheus' clients have in common.
#pragma once

#include "base/metrics.h"

namespace berth::app {

// Sets process_open_fds, process_max_fds, process_resident_memory_bytes,
// process_memory_limit_bytes and process_cpu_seconds_total.
void MeasureProcess(metrics::Registry& metrics);

}  // namespace berth::app
