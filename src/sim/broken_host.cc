// SPDX-License-Identifier: Apache-2.0
#include "sim/broken_host.h"

namespace berth::sim {
namespace {

constexpr Duration kToSpare = Duration::Minutes(10);
constexpr uint64_t kListsBetweenPurges = 20;
constexpr int64_t kPromised = 2;  // times what there is
constexpr uint64_t kAppendsBetweenCuts = 10;
constexpr std::string_view kLargestClass = "huge";

}  // namespace

rt::Task<Result<std::vector<iri::LeaseState>>> BrokenFencer::Renew(iri::LeaseRenewal renewal) {
  if (!renewal.machine_uids.empty()) renewal.deadline = renewal.deadline + kToSpare;
  co_return co_await inner_.Renew(std::move(renewal));
}

rt::Task<Result<iri::HostCapacity>> BrokenHostRuntime::Capacity() {
  CO_TRY(iri::HostCapacity capacity, co_await inner_.Capacity());
  for (auto& [dimension, amount] : capacity.total) amount *= kPromised;
  co_return capacity;
}

rt::Task<Status> BrokenDisk::Append(std::string name, std::string bytes) {
  if (++appends_ % kAppendsBetweenCuts == 0) bytes.resize(bytes.size() / 2);
  co_return co_await inner_.Append(std::move(name), std::move(bytes));
}

rt::Task<Result<std::vector<iri::Machine>>> BrokenMachines::ListMachines(iri::ObjectFilter filter) {
  CO_TRY(auto machines, co_await inner_.ListMachines(std::move(filter)));
  if (broken_ == Broken::kPurge && ++lists_ % kListsBetweenPurges == 0 && !machines.empty()) {
    CO_TRY_STATUS(co_await inner_.DeleteMachine(machines.front().metadata.id));
  }
  co_return machines;
}

rt::Task<Result<iri::Machine>> BrokenMachines::CreateMachine(iri::Machine machine) {
  if (broken_ == Broken::kNoBoot) machine.spec.power = iri::Power::kOff;
  if (broken_ == Broken::kOversize) machine.spec.class_name = kLargestClass;
  co_return co_await inner_.CreateMachine(std::move(machine));
}

rt::Task<Status> BrokenMachines::UpdateMachinePower(std::string id, iri::Power power) {
  if (broken_ == Broken::kNoBoot) co_return OkStatus();
  co_return co_await inner_.UpdateMachinePower(std::move(id), power);
}

}  // namespace berth::sim
