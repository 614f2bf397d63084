// SPDX-License-Identifier: Apache-2.0
// An Attempt is one object (with the volumes that go with it) on its way to a pool:
//
//   decide ──► asking its hosts ──all yes──► ready ──► binding ──► bound
//     ▲              │ no                                 │ no
//     └──────────────┴────────────────────────────────────┘  without the pool that said no
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/binder.h"
#include "fleet/fleet.h"
#include "scheduler/core/board.h"
#include "scheduler/placing/object_directory.h"

namespace berth::scheduler {

// One host that is asked. A machine and its joint volumes may be on several.
struct HostAsked {
  std::string pool_uid;
  PoolIndex pool{};
  fleet::OfferId offer;
  enum class Said : uint8_t { kNothing, kYes, kNo } said = Said::kNothing;
};

// A pool that said no, for people.
struct Refusal {
  std::string pool;
  std::string reason;
  std::string message;
  auto operator<=>(const Refusal&) const = default;
};

struct Attempt {
  enum class State : uint8_t { kAsking, kReady, kBinding };
  std::string uid;
  State state = State::kAsking;
  Request request;
  std::vector<std::string> joint;  // UIDs
  Candidate candidate;
  std::vector<HostAsked> hosts;
  Time asked;  // when the offers left
  int rounds = 0;
  std::optional<PoolIndex> left;     // only if nothing else will do
  bool is_stuck = false;             // somebody who refused is not remembered: see RefusalBook
  bool is_given_up = false;          // the object is gone or needs no place any more
  bool in_gang = false;              // goes with the others of its group
  std::optional<PoolIndex> planned;  // its group's plan says so: that one first
};

// Splits an attempt into one offer per host. `next_number` is raised by one for each.
std::vector<fleet::Offer> OffersFor(const Attempt& attempt,
                                    const ObjectDirectory& objects,
                                    const PoolDirectory& pools,
                                    uint64_t term,
                                    uint64_t& next_number,
                                    Duration hold_ttl);

// The commit that an attempt with every host's yes asks for.
client::BindRequest BindingFor(const Attempt& attempt,
                               const ObjectDirectory& objects,
                               const PoolDirectory& pools);

// Whether nobody can say if a commit that ended so was made (S4).
bool IsUnknownOutcome(const Status& status);

// Whether everything that the attempt speaks of still exists as it was decided on.
bool IsCurrent(const Attempt& attempt, const ObjectDirectory& objects, const PoolDirectory& pools);

}  // namespace berth::scheduler
