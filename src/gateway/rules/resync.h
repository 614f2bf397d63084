// SPDX-License-Identifier: Apache-2.0
// What becomes of each thing that a returning host knows of (PROTOCOL 2.4, 4.3): the rules of the
// resynchronisation, pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::gateway {

// What the store says of an object.
struct Desired {
  std::string pool_uid;  // "" if it is bound nowhere
  uint64_t placement = 0;
  bool is_deleting = false;
  std::string hash;  // of its body; "" if it is not assembled yet
};

// What the host says of it.
struct KnownItem {
  uint64_t incarnation = 0;
  uint64_t placement = 0;
  std::string hash;
  bool is_gone = false;
  bool is_leased = false;  // dies with its lease, so it may be known here and run elsewhere
  bool is_proven = false;  // the placement was given to this host by a server of this cluster
};

enum class ResyncStep : uint8_t {
  kConfirm,          // as it should be
  kConfirmAndCheck,  // right place; the body is compared once it is assembled
  kAssign,           // it belongs here, but not as the host has it
  kDelete,           // the object is being deleted
  kMoved,            // it belongs elsewhere, or nowhere
  kTombstone,        // it was deleted by force
  kGone,             // the host has removed what it should, or may
  kForget,           // the host has removed what nobody knows any more
  kQuarantine,       // nobody may touch it: not known, or of a history that the store does not have
  kAdopt,            // it runs here by a placement that the store has lost, and nowhere else
  kWait,             // who has it is known when all hosts were heard
};

struct ResyncInput {
  KnownItem known;
  std::optional<Desired> desired;  // nullopt: the store does not know the uid
  // Whether desired->pool_uid is a pool of this session.
  bool is_here = false;
  std::optional<uint64_t> tombstone;  // at this placement and below
  uint64_t incarnation = 0;           // of the cluster
  // The store was rewound, and where this object is has not been found out yet.
  bool is_open = false;
};

ResyncStep DecideResync(const ResyncInput& input);

}  // namespace berth::gateway
