// SPDX-License-Identifier: Apache-2.0
// Where the interfaces of guests are plugged in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "iri/machine.h"
#include "rt/task.h"
#include "runtime/machine/domain_xml.h"

namespace berth::runtime {

// An interface that a machine has.
struct PluggedNic {
  std::string machine_id;
  iri::MachineNic nic;
  std::string hostname = {};  // of the guest; as it was said, which may be anything
};

class HostNetworks {
 public:
  virtual ~HostNetworks() = default;

  // What libvirt is told of it: always the same for the same interface. BadRequest: this host has
  // no such network.
  virtual Result<DomainNic> Describe(std::string_view machine_id,
                                     const iri::MachineNic& nic) const = 0;
  // Before a guest is started with it or gets it. Idempotent.
  virtual rt::Task<Status> Plug(PluggedNic plugged) = 0;
  // When no guest has it any more. Ok if it was not plugged in.
  virtual rt::Task<Status> Unplug(std::string machine_id, iri::MachineNic nic) = 0;
  // Once, at the start: what all machines have. Everything else that an earlier life of the runtime
  // has left is unplugged. Plug and Unplug may come before it, and then wait for it.
  virtual rt::Task<Status> Adopt(std::vector<PluggedNic> plugged) = 0;
};

// A host without networks.
class NoNetworks final : public HostNetworks {
 public:
  Result<DomainNic> Describe(std::string_view machine_id,
                             const iri::MachineNic& nic) const override;
  rt::Task<Status> Plug(PluggedNic plugged) override;
  rt::Task<Status> Unplug(std::string machine_id, iri::MachineNic nic) override;
  rt::Task<Status> Adopt(std::vector<PluggedNic> plugged) override;
};

}  // namespace berth::runtime
