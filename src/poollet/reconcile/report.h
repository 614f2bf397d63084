// SPDX-License-Identifier: Apache-2.0
// What the server is told about an object: the API's words for what was observed. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fleet/fleet.h"
#include "iri/runtimes.h"
#include "poollet/reconcile/desired.h"
#include "poollet/reconcile/step.h"

namespace berth::poollet {

struct ReportCondition {
  std::string type;
  bool is_true = false;
  std::string reason;
  std::string message;
  bool operator==(const ReportCondition&) const = default;
};
struct ReportPart {
  std::string name;
  std::string handle;
  std::string state;
  bool operator==(const ReportPart&) const = default;
};
struct ObjectReport {
  std::string uid;
  Placement placement;
  fleet::ObjectKind kind = fleet::ObjectKind::kMachine;
  std::string state;       // "Running", "Available"
  std::string runtime_id;  // TYPE://ID
  int64_t observed_generation = 0;
  std::vector<ReportCondition> conditions;
  std::vector<ReportPart> volumes;
  std::vector<ReportPart> nics;
  iri::VolumeAccess access;
  std::string bucket_endpoint;
  int64_t storage_bytes = 0;
  bool is_leased = false;  // a machine that dies when contact is lost
  bool operator==(const ObjectReport&) const = default;
};

// What happened last beside the observation.
struct Progress {
  Step step;            // what is to be done next, or why nothing
  std::string error;    // of the last runtime call; "" if it went well
  std::string runtime;  // name of the runtime
  enum class Phase : uint8_t { kAssigned, kRemoving } phase = Phase::kAssigned;
  bool secrets_missing = false;  // those of the assignment: the server has not sent them yet
  bool is_armed = false;         // it is killed at the end of a lease of this session
};

ObjectReport ReportMachine(const Desired& desired,
                           std::span<const iri::Machine> observed,
                           const Progress& progress);
ObjectReport ReportVolume(const Desired& desired,
                          std::span<const iri::Volume> observed,
                          const Progress& progress);
ObjectReport ReportSnapshot(const Desired& desired,
                            std::span<const iri::VolumeSnapshot> observed,
                            const Progress& progress);
ObjectReport ReportBucket(const Desired& desired,
                          std::span<const iri::Bucket> observed,
                          const Progress& progress);
ObjectReport ReportReservation(const Desired& desired);

// D7: every state of a runtime has a word.
std::string_view MachineStateWord(iri::MachineState state);

}  // namespace berth::poollet
