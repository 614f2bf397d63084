// SPDX-License-Identifier: Apache-2.0
// Defends: a controller is told what became of its machine in a few words that it can act on, the
// reasons of a refusal among them.
#include "apiserver/scheduling/workload_status.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::apiserver {
namespace {

using apis::compute::Machine;
using apis::compute::MachinePool;
using proto::ClusterEvent;
using proto::WorkloadStatus;

Machine Unplaced(const std::string& word) {
  Machine machine;
  machine.metadata.namespace_ = "default";
  machine.metadata.name = "web";
  machine.metadata.uid = "u";
  machine.status.conditions.push_back(
      {.type = "Scheduled", .status = "False", .reason = word, .message = "because"});
  return machine;
}

Machine Placed(const std::string& state) {
  Machine machine;
  machine.metadata.name = "web";
  machine.status.state = state;
  machine.status.placement = apis::core::PlacementStatus{.pool = "p", .pool_uid = "pu", .epoch = 3};
  return machine;
}

TEST(WorkloadStatus, C4_WhyAMachineWaitsIsOneOfAFewReasons) {
  const std::vector<std::pair<std::string, WorkloadStatus::Reason>> cases = {
      {"NoPools", WorkloadStatus::NO_POOL_REACHABLE},
      {"NoPoolReachable", WorkloadStatus::NO_POOL_REACHABLE},
      {"AllPoolsRefused", WorkloadStatus::ALL_POOLS_REFUSED},
      {"Unschedulable", WorkloadStatus::NO_POOL_FITS},
      {"ClassNotFound", WorkloadStatus::MISSING_REFERENCE},
      {"VolumeNotFound", WorkloadStatus::MISSING_REFERENCE},
      {"PoolLost", WorkloadStatus::POOL_LOST},
      {"OperatorFenced", WorkloadStatus::POOL_LOST},
      {"Drain", WorkloadStatus::MOVING},
      {"SomethingNew", WorkloadStatus::OTHER},
  };
  for (const auto& [word, reason] : cases) {
    const WorkloadStatus status = StatusOf(Unplaced(word));
    EXPECT_EQ(status.state(), WorkloadStatus::WAITING);
    EXPECT_EQ(status.reason(), reason) << word;
    EXPECT_EQ(status.word(), word);
    EXPECT_EQ(status.message(), "because");
    EXPECT_EQ(status.pool(), "");
  }
  Machine fresh = Unplaced("x");
  fresh.status.conditions.clear();
  EXPECT_EQ(StatusOf(fresh).state(), WorkloadStatus::WAITING);
  EXPECT_EQ(StatusOf(fresh).reason(), WorkloadStatus::REASON_UNSPECIFIED);
}

TEST(WorkloadStatus, AHostsOwnWordIsItsRefusal) {
  Machine machine = Unplaced("DiskFull");
  machine.status.placement = apis::core::PlacementStatus{.epoch = 2, .reason = "DiskFull"};
  EXPECT_EQ(StatusOf(machine).reason(), WorkloadStatus::HOST_REFUSED);
  machine.status.placement->reason = "Drain";
  machine.status.conditions[0].reason = "Drain";
  EXPECT_EQ(StatusOf(machine).reason(), WorkloadStatus::MOVING);
}

TEST(WorkloadStatus, C4_AnOperatorsFenceIsNoRefusalOfTheHost) {
  Machine machine = Unplaced("OperatorFenced");
  machine.status.placement = apis::core::PlacementStatus{.epoch = 2, .reason = "OperatorFenced"};
  EXPECT_EQ(StatusOf(machine).reason(), WorkloadStatus::POOL_LOST);
  EXPECT_EQ(EventOf(StatusOf(machine)).type(), ClusterEvent::STATUS);
}

TEST(WorkloadStatus, C11_StatesFollowTheMachine) {
  const std::vector<std::pair<std::string, WorkloadStatus::State>> cases = {
      {"", WorkloadStatus::STARTING},
      {"Pending", WorkloadStatus::STARTING},
      {"Running", WorkloadStatus::RUNNING},
      {"Shutdown", WorkloadStatus::STOPPED},
      {"Terminating", WorkloadStatus::TERMINATING},
      {"Terminated", WorkloadStatus::STOPPED},
  };
  for (const auto& [state, told] : cases) {
    const WorkloadStatus status = StatusOf(Placed(state));
    EXPECT_EQ(status.state(), told) << state;
    EXPECT_EQ(status.pool(), "p");
    EXPECT_EQ(status.placement(), 3U);
  }
  Machine deleted = Placed("Running");
  deleted.metadata.deletion_timestamp = WallTime::FromSeconds(1);
  EXPECT_EQ(StatusOf(deleted).state(), WorkloadStatus::TERMINATING);
  EXPECT_EQ(GoneStatusOf(deleted).state(), WorkloadStatus::TERMINATED);
}

TEST(WorkloadStatus, C12_WhatKeepsAPlacedMachineFromRunningIsSaid) {
  Machine machine = Placed("Pending");
  machine.status.conditions = {
      {.type = "Scheduled", .status = "True", .reason = "Bound", .message = ""},
      {.type = "VolumesReady", .status = "False", .reason = "Waiting", .message = "disk 0 of 1"}};
  const WorkloadStatus status = StatusOf(machine);
  EXPECT_EQ(status.word(), "Waiting");
  EXPECT_EQ(status.message(), "disk 0 of 1");
  EXPECT_EQ(status.reason(), WorkloadStatus::REASON_UNSPECIFIED);
}

TEST(WorkloadStatus, TheReferenceIsThePlaceOnAnApiPool) {
  Machine machine = Placed("Running");
  machine.status.placement.reset();
  machine.spec.machine_pool_ref = apis::core::LocalObjectReference{.name = "legacy"};
  EXPECT_EQ(StatusOf(machine).state(), WorkloadStatus::RUNNING);
  EXPECT_EQ(StatusOf(machine).pool(), "legacy");
  // A pool that a user asked for is none yet, once a scheduler has looked at it.
  machine.status.placement = apis::core::PlacementStatus{};
  EXPECT_EQ(StatusOf(machine).state(), WorkloadStatus::WAITING);
}

TEST(WorkloadStatus, RefusalsAreEventsOfTheirOwn) {
  EXPECT_EQ(EventOf(StatusOf(Unplaced("AllPoolsRefused"))).type(), ClusterEvent::REFUSED);
  EXPECT_EQ(EventOf(StatusOf(Unplaced("NoPools"))).type(), ClusterEvent::STATUS);
  EXPECT_EQ(EventOf(StatusOf(Placed("Running"))).type(), ClusterEvent::STATUS);
}

TEST(PoolEvent, C19_C20_JoinedLeftAndTimedOutFollowTheReadyCondition) {
  MachinePool pool;
  pool.metadata.name = "p";
  pool.metadata.uid = "pu";
  EXPECT_FALSE(EventOf(pool).has_value()) << "nobody has spoken for it";
  pool.status.conditions.push_back({.type = "Ready",
                                    .status = "True",
                                    .reason = "Connected",
                                    .message = "",
                                    .last_transition_time = WallTime::FromSeconds(2)});
  const std::vector<std::pair<std::string, ClusterEvent::Type>> cases = {
      {"True", ClusterEvent::POOL_JOINED},
      {"False", ClusterEvent::POOL_LEFT},
      {"Unknown", ClusterEvent::POOL_TIMED_OUT},
  };
  for (const auto& [status, type] : cases) {
    pool.status.conditions[0].status = status;
    const auto event = EventOf(pool);
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type(), type);
    EXPECT_EQ(event->pool().name(), "p");
    EXPECT_EQ(event->pool().uid(), "pu");
    EXPECT_EQ(event->pool().since_unix_ms(), 2000);
  }
  EXPECT_EQ(RemovedEventOf(pool).type(), ClusterEvent::POOL_LEFT);
  EXPECT_EQ(RemovedEventOf(pool).pool().reason(), "Removed");
}

}  // namespace
}  // namespace berth::apiserver
