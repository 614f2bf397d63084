// SPDX-License-Identifier: Apache-2.0
#include "poollet/host/host_load.h"

#include <algorithm>

namespace berth::poollet {

void AddHostLoad(const Amounts& load,
                 double cores_of_instances,
                 std::vector<fleet::Statistics>& all) {
  auto host = std::ranges::find(all, "", &fleet::Statistics::uid);
  if (host == all.end()) host = all.insert(all.begin(), fleet::Statistics{});
  const double cores = static_cast<double>(AmountOf(load, "cpu")) / 1000;
  host->cpu_cores = std::max({host->cpu_cores, cores, cores_of_instances});
  host->memory_bytes = std::max(host->memory_bytes, AmountOf(load, "memory"));
  host->disk_bytes = std::max(host->disk_bytes, AmountOf(load, "storage"));
  host->load = host->cpu_cores;
}

}  // namespace berth::poollet
