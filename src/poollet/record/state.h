// SPDX-License-Identifier: Apache-2.0
// What a poollet remembers across its own death: plain data. Secrets are never part of it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fleet/fleet.h"

namespace berth::poollet {

// (I, P), compared in this order: which placement of a uid is the newer one.
struct Placement {
  uint64_t incarnation = 0;
  uint64_t number = 0;
  auto operator<=>(const Placement&) const = default;
};

struct RecordPool {
  std::string kind;  // "MachinePool"
  std::string name;
  std::string uid;
  fleet::Vector limits;
  bool operator==(const RecordPool&) const = default;
};

struct RecordHost {
  std::string cluster_id;
  std::vector<std::string> servers;
  uint64_t term = 0;         // the highest T seen
  uint64_t incarnation = 0;  // the highest I that was accepted
  uint64_t revision = 0;     // the highest at the end of a resynchronisation
  std::vector<RecordPool> pools;
  // By kind: up to which second the events of its runtime were told to a server.
  std::map<std::string, int64_t> events_told;
  bool operator==(const RecordHost&) const = default;
};

enum class Phase : uint8_t {
  kAssigned,
  kRemoving,  // the server said so
  kGone,      // removed from the runtime, and not yet confirmed to the server
};

struct RecordEntry {
  std::string uid;
  Placement placement;
  Phase phase = Phase::kAssigned;
  fleet::ObjectKind kind = fleet::ObjectKind::kMachine;
  std::string pool_uid;
  std::string hash;    // of the body as it was assigned, secrets included
  std::string assign;  // a berth.agent.v1.Assign without its secrets
  bool had_secrets = false;
  fleet::Vector amounts;       // what the ledger counts
  bool create_begun = false;   // a create may have been sent whose outcome is not known
  bool was_available = false;  // a volume that held data once
  std::string runtime_id;      // of the machine that a foreign runtime was told to start
  bool operator==(const RecordEntry&) const = default;
};

struct RecordState {
  RecordHost host;
  std::map<std::string, RecordEntry, std::less<>> entries;
  bool operator==(const RecordState&) const = default;
};

// Takes effect as a whole.
struct RecordChange {
  std::optional<RecordHost> host;
  std::vector<RecordEntry> puts;
  std::vector<std::string> forgets;
};
void Apply(RecordState& state, const RecordChange& change);

}  // namespace berth::poollet
