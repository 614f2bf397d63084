// SPDX-License-Identifier: Apache-2.0
// Broken parts of a poollet: they stand where it meets a runtime that does what it is told.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "iri/runtimes.h"
#include "poollet/fencer/fencer.h"
#include "sim/broken.h"

namespace berth::sim {

// kLeases: a deadline is passed on with much time to spare.
class BrokenFencer final : public poollet::Fencer {
 public:
  explicit BrokenFencer(iri::HostRuntime& host) : inner_(host) {}
  rt::Task<Result<std::vector<iri::LeaseState>>> Renew(iri::LeaseRenewal renewal) override;

 private:
  poollet::RuntimeFencer inner_;
};

// kNoBoot: nothing is ever switched on. kPurge: a machine that is there is deleted now and then.
class BrokenMachines final : public iri::MachineRuntime {
 public:
  // The runtime outlives this.
  BrokenMachines(iri::MachineRuntime& inner, Broken broken) : inner_(inner), broken_(broken) {}

  rt::Task<Result<std::vector<iri::Machine>>> ListMachines(iri::ObjectFilter filter) override;
  rt::Task<Result<iri::Machine>> CreateMachine(iri::Machine machine) override;
  rt::Task<Status> UpdateMachinePower(std::string id, iri::Power power) override;

  rt::Task<Result<iri::RuntimeVersion>> Version() override { return inner_.Version(); }
  rt::Task<Result<std::vector<iri::Event>>> ListEvents(iri::EventFilter filter) override {
    return inner_.ListEvents(std::move(filter));
  }
  rt::Task<Status> DeleteMachine(std::string id) override {
    return inner_.DeleteMachine(std::move(id));
  }
  rt::Task<Status> UpdateMachineAnnotations(std::string id, iri::StringMap annotations) override {
    return inner_.UpdateMachineAnnotations(std::move(id), std::move(annotations));
  }
  rt::Task<Status> AttachVolume(std::string id, iri::MachineVolume volume) override {
    return inner_.AttachVolume(std::move(id), std::move(volume));
  }
  rt::Task<Status> DetachVolume(std::string id, std::string name) override {
    return inner_.DetachVolume(std::move(id), std::move(name));
  }
  rt::Task<Status> UpdateVolume(std::string id, iri::MachineVolume volume) override {
    return inner_.UpdateVolume(std::move(id), std::move(volume));
  }
  rt::Task<Status> AttachNetworkInterface(std::string id, iri::MachineNic nic) override {
    return inner_.AttachNetworkInterface(std::move(id), std::move(nic));
  }
  rt::Task<Status> DetachNetworkInterface(std::string id, std::string name) override {
    return inner_.DetachNetworkInterface(std::move(id), std::move(name));
  }
  rt::Task<Result<std::vector<iri::MachineClassStatus>>> ClassStatus() override {
    return inner_.ClassStatus();
  }
  rt::Task<Result<std::string>> Exec(std::string id) override { return inner_.Exec(std::move(id)); }

 private:
  iri::MachineRuntime& inner_;
  const Broken broken_;
  uint64_t lists_ = 0;
};

}  // namespace berth::sim
