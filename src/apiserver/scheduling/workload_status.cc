// SPDX-License-Identifier: Apache-2.0
#include "apiserver/scheduling/workload_status.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "apis/core/loss_reasons.h"
#include "apis/core/placement.h"
#include "apis/core/pool_parts.h"

namespace berth::apiserver {
namespace {

using apis::compute::Machine;
using apis::compute::MachineCondition;
using apis::compute::MachinePool;
using proto::ClusterEvent;
using proto::WorkloadStatus;

// Words of the condition Scheduled=False: the scheduler's, and those of whoever unbinds.
constexpr std::array<std::pair<std::string_view, WorkloadStatus::Reason>, 16> kWords = {{
    {"NoPools", WorkloadStatus::NO_POOL_REACHABLE},
    {"NoPoolReachable", WorkloadStatus::NO_POOL_REACHABLE},
    {"AllPoolsRefused", WorkloadStatus::ALL_POOLS_REFUSED},
    {"Unschedulable", WorkloadStatus::NO_POOL_FITS},
    {"ClassNotFound", WorkloadStatus::MISSING_REFERENCE},
    {"PoolNotFound", WorkloadStatus::MISSING_REFERENCE},
    {"VolumeNotFound", WorkloadStatus::MISSING_REFERENCE},
    {"VolumeDeleting", WorkloadStatus::MISSING_REFERENCE},
    {"VolumePoolNotFound", WorkloadStatus::MISSING_REFERENCE},
    {"PoolLost", WorkloadStatus::POOL_LOST},
    {apis::core::kReasonOperatorFenced, WorkloadStatus::POOL_LOST},
    {"HostReleased", WorkloadStatus::MOVING},
    {apis::core::kReleaseDrain, WorkloadStatus::MOVING},
    {apis::core::kReleaseMove, WorkloadStatus::MOVING},
    {apis::core::kReleaseTaint, WorkloadStatus::MOVING},
    {apis::core::kReleasePreempted, WorkloadStatus::MOVING},
}};

const MachineCondition* Find(const Machine& machine, std::string_view type) {
  const auto found = std::ranges::find(machine.status.conditions, type, &MachineCondition::type);
  return found == machine.status.conditions.end() ? nullptr : &*found;
}

WorkloadStatus::Reason ReasonOf(const Machine& machine, std::string_view word) {
  const auto* known =
      std::ranges::find(kWords, word, &std::pair<std::string_view, WorkloadStatus::Reason>::first);
  if (known != kWords.end()) return known->second;
  // An unbinding writes its word in both places. What is none of ours there, a host has said.
  const auto& placement = machine.status.placement;
  const bool was_unbound = placement && placement->epoch > 0 && placement->reason == word;
  return was_unbound && !word.empty() ? WorkloadStatus::HOST_REFUSED : WorkloadStatus::OTHER;
}

WorkloadStatus::State PlacedState(std::string_view state) {
  if (state == "Running") return WorkloadStatus::RUNNING;
  if (state == "Shutdown") return WorkloadStatus::STOPPED;
  if (state == "Terminating") return WorkloadStatus::TERMINATING;
  // Its host has ended it, but the machine is still wanted.
  if (state == "Terminated") return WorkloadStatus::STOPPED;
  return WorkloadStatus::STARTING;
}

void SetReason(const Machine& machine, const MachineCondition& condition, WorkloadStatus& status) {
  status.set_reason(ReasonOf(machine, condition.reason));
  status.set_word(condition.reason);
  status.set_message(condition.message);
}

// Of a machine that has its place: the first thing that keeps it from running.
void SetProblem(const Machine& machine, WorkloadStatus& status) {
  for (const MachineCondition& condition : machine.status.conditions) {
    if (condition.status == "True" || condition.type == apis::core::kScheduledCondition) continue;
    status.set_word(condition.reason);
    status.set_message(condition.message);
    return;
  }
}

ClusterEvent PoolEvent(const MachinePool& pool, ClusterEvent::Type type) {
  ClusterEvent event;
  event.set_type(type);
  event.mutable_pool()->set_name(pool.metadata.name);
  event.mutable_pool()->set_uid(pool.metadata.uid);
  return event;
}

}  // namespace

WorkloadStatus StatusOf(const Machine& machine) {
  WorkloadStatus status;
  status.set_namespace_(machine.metadata.namespace_);
  status.set_instance_id(machine.metadata.name);
  status.set_uid(machine.metadata.uid);
  status.set_generation(machine.metadata.generation);
  status.set_observed_generation(machine.status.observed_generation);
  const auto& placement = machine.status.placement;
  if (placement) status.set_placement(static_cast<uint64_t>(placement->epoch));
  // API-mode pools have no placement: the reference itself is the assignment.
  if (placement && !placement->pool.empty()) {
    status.set_pool(placement->pool);
  } else if (!placement && machine.spec.machine_pool_ref) {
    status.set_pool(machine.spec.machine_pool_ref->name);
  }
  if (status.pool().empty()) {
    status.set_state(WorkloadStatus::WAITING);
    const MachineCondition* scheduled = Find(machine, apis::core::kScheduledCondition);
    if (scheduled != nullptr && scheduled->status != "True") SetReason(machine, *scheduled, status);
  } else {
    status.set_state(PlacedState(machine.status.state));
    SetProblem(machine, status);
  }
  if (machine.metadata.deletion_timestamp) status.set_state(WorkloadStatus::TERMINATING);
  return status;
}

WorkloadStatus GoneStatusOf(const Machine& machine) {
  WorkloadStatus status = StatusOf(machine);
  status.set_state(WorkloadStatus::TERMINATED);
  status.clear_reason();
  status.clear_word();
  status.clear_message();
  return status;
}

ClusterEvent EventOf(const WorkloadStatus& status) {
  const bool refused = status.state() == WorkloadStatus::WAITING &&
                       (status.reason() == WorkloadStatus::ALL_POOLS_REFUSED ||
                        status.reason() == WorkloadStatus::HOST_REFUSED);
  ClusterEvent event;
  event.set_type(refused ? ClusterEvent::REFUSED : ClusterEvent::STATUS);
  *event.mutable_workload() = status;
  return event;
}

std::optional<ClusterEvent> EventOf(const MachinePool& pool) {
  for (const auto& condition : pool.status.conditions) {
    if (condition.type != apis::core::kPoolReady) continue;
    ClusterEvent::Type type = ClusterEvent::POOL_LEFT;
    if (condition.status == "True") type = ClusterEvent::POOL_JOINED;
    if (condition.status == "Unknown") type = ClusterEvent::POOL_TIMED_OUT;
    ClusterEvent event = PoolEvent(pool, type);
    event.mutable_pool()->set_reason(condition.reason);
    event.mutable_pool()->set_message(condition.message);
    event.mutable_pool()->set_since_unix_ms(condition.last_transition_time.micros() / 1000);
    return event;
  }
  return std::nullopt;
}

ClusterEvent RemovedEventOf(const MachinePool& pool) {
  ClusterEvent event = PoolEvent(pool, ClusterEvent::POOL_LEFT);
  event.mutable_pool()->set_reason("Removed");
  event.mutable_pool()->set_message("the pool was removed");
  return event;
}

}  // namespace berth::apiserver
