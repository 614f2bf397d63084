// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/host_networks.h"

#include "base/strings.h"

namespace berth::runtime {

Result<DomainNic> NoNetworks::Describe(std::string_view /*machine_id*/,
                                       const iri::MachineNic& nic) const {
  return BadRequest("network interface " + Quote(nic.name) +
                    ": no networks are configured on this host");
}

rt::Task<Status> NoNetworks::Plug(PluggedNic plugged) {
  co_return Describe(plugged.machine_id, plugged.nic).status();
}

rt::Task<Status> NoNetworks::Unplug(std::string /*machine_id*/, iri::MachineNic /*nic*/) {
  co_return OkStatus();
}

rt::Task<Status> NoNetworks::Adopt(std::vector<PluggedNic> /*plugged*/) { co_return OkStatus(); }

}  // namespace berth::runtime
