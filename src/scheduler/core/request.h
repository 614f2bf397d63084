// SPDX-License-Identifier: Apache-2.0
// What asks for a place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/core/pool.h"
#include "scheduler/core/words.h"

namespace berth::scheduler {

struct SelectorTerm {
  enum class Op : uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGreater, kLess };
  std::string key;
  Op op = Op::kIn;
  std::vector<std::string> values;  // one whole number for kGreater and kLess
  bool Matches(const Labels& labels) const;
  auto operator<=>(const SelectorTerm&) const = default;
};

// All terms must hold; none: everything matches.
struct Selector {
  std::vector<SelectorTerm> terms;

  static Selector Equals(const Labels& labels);
  bool Matches(const Labels& labels) const;
  auto operator<=>(const Selector&) const = default;
};

struct Toleration {
  // kAny is for what has only one place to go to: nobody's own wish.
  enum class Op : uint8_t { kEqual, kExists, kAny };
  // Empty with kExists: every key that is not restricted; empty with kEqual: tolerates nothing;
  // kAny looks at neither key nor value.
  std::string key;
  Op op = Op::kEqual;
  std::string value;
  std::optional<TaintEffect> effect;  // none: every effect
  bool Tolerates(const Taint& taint) const;
  auto operator<=>(const Toleration&) const = default;
};
// Whether any of them tolerates the taint.
bool IsTolerated(const Taint& taint, const std::vector<Toleration>& tolerations);

// Topology keys other than labels of pools.
inline constexpr std::string_view kPoolTopology = "berth.dev/pool";          // every pool by itself
inline constexpr std::string_view kHostTopology = "berth.dev/host";          // pools of one host
inline constexpr std::string_view kNodeTopology = "kubernetes.io/hostname";  // the same

// Placed objects of the request's kind, seen per topology domain. A pool without the topology label
// is in no domain.
struct Company {
  Selector selector;                    // over the labels of placed objects
  std::vector<std::string> namespaces;  // empty: the request's own
  std::string topology_key;
  auto operator<=>(const Company&) const = default;
};

struct PreferredCompany {
  Company company;
  int32_t weight = 1;  // points if it is there; negative: points lost
  auto operator<=>(const PreferredCompany&) const = default;
};

struct PreferredPools {
  Selector selector;  // over the labels of pools
  int32_t weight = 1;
  auto operator<=>(const PreferredPools&) const = default;
};

struct SpreadRule {
  enum class Otherwise : uint8_t { kDoNotSchedule, kScheduleAnyway };
  Company company;
  int32_t max_skew = 1;
  Otherwise otherwise = Otherwise::kDoNotSchedule;
  auto operator<=>(const SpreadRule&) const = default;
};

// What many requests have in common: the copies of a set, the machines of a class. Turned into a
// Shape once, see Board::Intern.
struct Requirements {
  PoolKind kind = PoolKind::kMachine;
  std::string class_name;  // empty: no class needed (vector pools only)
  Resources resources;
  Selector pools;  // which pools may be used, by their labels
  std::vector<Toleration> tolerations;
  Policy policy = kDefaultPolicy;
  bool needs_fence = false;

  std::string namespace_name;
  Labels labels;  // of the object itself: what the company terms of others look at
  std::vector<Company> affinity;
  std::vector<Company> anti_affinity;  // holds in both directions
  std::vector<SpreadRule> spread;
  std::vector<PreferredCompany> preferred_company;
  std::vector<PreferredPools> preferred_pools;

  auto operator<=>(const Requirements&) const = default;
};

class CompiledShape;
// Requirements that one board has seen, with what it remembers about them. Equal requirements give
// the same shape. Cheap to copy; may outlive the board, but is of use to that board only.
using Shape = std::shared_ptr<CompiledShape>;
// What the shape was made of. REQUIRES: shape is not null.
const Requirements& RequirementsOf(const Shape& shape);

struct Request {
  ObjectKey key;
  Shape shape;

  // How much it matters, and what may be done to it once placed (preemption).
  int32_t priority = 0;
  bool is_preemptible = false;
  bool has_local_state = false;
  uint64_t set = 0;             // objects of one set share a disruption budget; 0: of none
  bool is_reservation = false;  // a copy of a reservation: room that others may consume

  std::optional<PoolIndex> pinned;       // this pool or none
  std::vector<PoolIndex> among;          // one of these or none; empty: any
  std::vector<PoolIndex> refused;        // said no in this round
  std::vector<PoolIndex> bound_volumes;  // volume pools of volumes that are already bound
  // Volumes that get a pool together with the machine: only key and shape are looked at.
  std::vector<Request> joint;
  // Copies of the reservation that it consumes (objects on the board, not yet consumed). It goes to
  // the pool of one of them, into its room.
  std::vector<ObjectKey> reservation;
};

}  // namespace berth::scheduler
