// SPDX-License-Identifier: Apache-2.0
// Broken parts of a poollet: they stand where it meets its disk and a runtime that does what it is
// told.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "iri/runtimes.h"
#include "poollet/disk/disk.h"
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

// kOverPromise: the host is taken for twice as large as the runtime says.
class BrokenHostRuntime final : public iri::HostRuntime {
 public:
  // The runtime outlives this.
  explicit BrokenHostRuntime(iri::HostRuntime& inner) : inner_(inner) {}

  rt::Task<Result<iri::HostCapacity>> Capacity() override;

  rt::Task<Result<std::unique_ptr<iri::ChangeStream>>> Watch(std::string cursor) override {
    return inner_.Watch(std::move(cursor));
  }
  rt::Task<Result<std::vector<iri::LeaseState>>> RenewLease(iri::LeaseRenewal renewal) override {
    return inner_.RenewLease(std::move(renewal));
  }
  rt::Task<Status> SetReservations(std::vector<iri::Reservation> reservations) override {
    return inner_.SetReservations(std::move(reservations));
  }
  rt::Task<Result<std::vector<iri::Reservation>>> ListReservations() override {
    return inner_.ListReservations();
  }
  rt::Task<Result<std::vector<iri::GuestProcess>>> ListGuests() override {
    return inner_.ListGuests();
  }
  rt::Task<Status> ResumeGuest(std::string machine_uid) override {
    return inner_.ResumeGuest(std::move(machine_uid));
  }
  rt::Task<Status> SetPullSecret(iri::PullSecret secret) override {
    return inner_.SetPullSecret(std::move(secret));
  }
  rt::Task<Result<std::unique_ptr<iri::AttachStream>>> Attach(iri::AttachRequest request) override {
    return inner_.Attach(std::move(request));
  }
  rt::Task<Status> SetIgnition(iri::Ignition ignition) override {
    return inner_.SetIgnition(std::move(ignition));
  }

 private:
  iri::HostRuntime& inner_;
};

// kCutRecord: of a change that is appended only the first half is written now and then, and taken
// for the whole.
class BrokenDisk final : public poollet::Disk {
 public:
  // The disk outlives this.
  explicit BrokenDisk(poollet::Disk& inner) : inner_(inner) {}

  rt::Task<Status> Append(std::string name, std::string bytes) override;

  rt::Task<Result<std::string>> Read(std::string name) override {
    return inner_.Read(std::move(name));
  }
  rt::Task<Status> Replace(std::string name, std::string bytes) override {
    return inner_.Replace(std::move(name), std::move(bytes));
  }

 private:
  poollet::Disk& inner_;
  uint64_t appends_ = 0;
};

// kNoBoot: nothing is ever switched on. kPurge: a machine that is there is deleted now and then.
// kOversize: every machine is made as large as they come.
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
