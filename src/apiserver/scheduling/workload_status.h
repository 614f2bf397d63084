// SPDX-License-Identifier: Apache-2.0
// Machines and pools in the words of the service. Pure.
#pragma once

#include <optional>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "berth/scheduler/v1/scheduler.pb.h"

namespace berth::apiserver {

namespace proto = berth::scheduler::v1;

proto::WorkloadStatus StatusOf(const apis::compute::Machine& machine);
// The last word about a machine that was removed.
proto::WorkloadStatus GoneStatusOf(const apis::compute::Machine& machine);

// What a change of a machine is to the cluster.
proto::ClusterEvent EventOf(const proto::WorkloadStatus& status);
// Nullopt for a pool that nobody has spoken for yet.
std::optional<proto::ClusterEvent> EventOf(const apis::compute::MachinePool& pool);
proto::ClusterEvent RemovedEventOf(const apis::compute::MachinePool& pool);

}  // namespace berth::apiserver
