// SPDX-License-Identifier: Apache-2.0
// What an assignment asks for, in the runtimes' own terms.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "fleet/fleet.h"
#include "iri/runtimes.h"
#include "poollet/ledger/amounts.h"
#include "poollet/record/state.h"

namespace berth::poollet {

enum class RestartPolicy : uint8_t { kAlways, kOnFailure, kNever };

// What a part of an object waits for, by the part's name.
using Waits = std::map<std::string, std::string, std::less<>>;

struct DesiredMachine {
  iri::Machine object;  // parts that wait are not in it
  bool moves = false;   // runs only under a lease
  RestartPolicy restart = RestartPolicy::kOnFailure;
  Waits volume_waits;
  Waits nic_waits;
  std::string pull_secret;  // Docker's format; "" for none
};
struct DesiredVolume {
  iri::Volume object;
  std::string pull_secret;  // Docker's format; "" for none
};
struct DesiredSnapshot {
  iri::VolumeSnapshot object;
};
struct DesiredBucket {
  iri::Bucket object;
};
struct DesiredReservation {
  std::set<std::string> consumers;  // UIDs of the machines that have used it
};

struct Desired {
  std::string uid;
  std::string namespace_;
  std::string name;
  std::string pool_uid;
  std::string class_name;
  std::string reservation_uid;
  std::string hash;
  std::string proof;  // that this placement was given to this host; for the server
  uint64_t revision = 0;
  Placement placement;
  fleet::ObjectKind kind = fleet::ObjectKind::kMachine;
  int64_t generation = 0;
  Amounts amounts;                   // of the host, local disks and full volume sizes included
  std::vector<std::string> missing;  // prerequisites of the whole, for people
  bool had_secrets = false;
  std::variant<DesiredMachine, DesiredVolume, DesiredSnapshot, DesiredBucket, DesiredReservation>
      body;
};

// A berth.agent.v1.Assign, serialized. BadRequest for what is no whole assignment; `cluster_id`
// goes to the runtime object's labels.
Result<Desired> ParseAssign(std::string_view assign, std::string_view cluster_id);
// It dies with its lease, because it may be moved.
bool Moves(const Desired& desired);
// Of a reservation: who has used it.
std::set<std::string> ConsumersOf(const Desired& desired);
// The same message without secrets, for the record.
Result<std::string> WithoutSecrets(std::string_view assign);

}  // namespace berth::poollet
