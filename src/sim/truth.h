// SPDX-License-Identifier: Apache-2.0
// Truth is what the store holds, decoded as far as the checkers need it. It is fed by every commit
// that the store acknowledged, so it is right at every moment, whatever the server believes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apis/core/taints.h"
#include "apis/placement.h"
#include "base/bytes.h"
#include "client/client.h"
#include "meta/kind.h"
#include "store/store.h"

namespace berth::sim {

// Counts what a user has changed of an object: never goes back.
inline constexpr std::string_view kEditAnnotation = "sim.berth.dev/edit";

// The priority class of machines that may be stopped for others.
inline constexpr std::string_view kSpare = "spare";

// A Machine, a Volume, a Bucket or a Reservation.
struct PlacedFact {
  const meta::KindInfo* kind = nullptr;
  client::ObjectKey key;
  std::string uid;
  std::string pool;
  std::string pool_uid;  // "" while it has no place
  int64_t epoch = 0;
  std::string class_name;
  apis::Amounts needs;  // by its class or size, whatever the server says
  enum class OnLoss : uint8_t { kKeep, kMove, kReplace } on_loss = OnLoss::kKeep;
  std::string set_uid;
  bool is_deleting = false;
  bool is_used = false;  // it is deleted and has to wait for its machine
  bool is_on = true;
  bool is_picky = false;     // it asks for labels of a pool
  bool is_tied = false;      // it has a disk of its host
  bool needs_fence = false;  // its host has to kill it when contact is lost
  int32_t priority = 0;
  bool is_spare = false;             // it may be stopped for what is more important
  std::string nominated_uid;         // of the pool where room was last made for it
  bool wants_place = true;           // a reservation that is over, used up or of parts wants none
  std::vector<std::string> pools;    // that will do; empty: any
  std::string group;                 // that it is placed with
  std::vector<std::string> volumes;  // names of those that it needs
  std::vector<apis::core::Toleration> tolerations;
  std::string reservation;          // of a machine: that it names
  std::string reservation_uid;      // of a machine: whose room it took
  bool is_whole = false;            // of a reservation: every one of its pools has a part of it
  std::string whole;                // of a reservation: the one that it is a part of
  int64_t count = 0;                // of a reservation: for how many machines
  int64_t left = 0;                 // of a reservation: for how many it still is
  std::set<std::string> consumers;  // of a reservation: UIDs of the machines that used it
  std::string release;              // why it has to leave its pool
  std::string state;                // as its host said
  std::string reason;               // of Scheduled=False
  std::string message;
  int64_t edit = 0;
  bool operator==(const PlacedFact&) const = default;
};

struct PoolFact {
  const meta::KindInfo* kind = nullptr;
  std::string name;
  std::string uid;
  bool is_cordoned = false;
  bool is_deleting = false;
  bool is_leaving = false;  // its host has said that it leaves with a drain
  bool is_drained = false;  // and the server that what could leave has left
  std::vector<apis::core::Taint> taints;
  apis::Amounts allocatable;
  bool operator==(const PoolFact&) const = default;
};

struct SetFact {
  client::ObjectKey key;
  std::string uid;
  int64_t replicas = 0;
  bool replaces = false;  // what is on a host that is lost
  bool is_deleting = false;
  bool operator==(const SetFact&) const = default;
};

struct GroupFact {
  client::ObjectKey key;
  int64_t min_members = 0;
  bool operator==(const GroupFact&) const = default;
};

struct StoredFact {
  store::Revision revision;
  uint64_t hash = 0;  // of the value
};

class Truth {
 public:
  // What a change did to something that is placed; both null for anything else.
  struct Change {
    std::string key;
    store::Revision revision;
    bool is_deleted = false;
    std::optional<PlacedFact> before;
    std::optional<PlacedFact> now;
  };
  // A value of nullopt is a deletion. Nullopt if something newer is known.
  std::optional<Change> Apply(const std::string& key,
                              const std::optional<Bytes>& value,
                              store::Revision revision);
  void Clear() { *this = Truth(); }

  // The highest that was seen.
  store::Revision last_revision() const { return last_revision_; }
  const std::map<std::string, StoredFact>& keys() const { return keys_; }
  const std::map<std::string, PlacedFact>& placed() const { return placed_; }  // by UID
  const std::map<std::string, PoolFact>& pools() const { return pools_; }      // by UID
  const std::map<std::string, SetFact>& sets() const { return sets_; }         // by UID
  const std::map<std::string, GroupFact>& groups() const { return groups_; }   // by UID
  const PlacedFact* Find(const std::string& uid) const;
  // The one of that kind and name.
  const PlacedFact* FindPlaced(const meta::KindInfo& kind, const client::ObjectKey& key) const;
  // The pool of that kind and name.
  const PoolFact* FindPool(const meta::KindInfo& kind, std::string_view name) const;
  // Whether the machine took room of a reservation that still has it in its own amounts: the store
  // tells of the two one after the other.
  bool IsInside(const PlacedFact& machine) const;
  // Whether room was ever made there for the object.
  bool WasNominated(const std::string& uid, const std::string& pool_uid) const;
  // How many machines of the set are not on their way out.
  int64_t MembersOf(const std::string& set_uid) const;

 private:
  store::Revision last_revision_;
  std::map<std::string, StoredFact> keys_;
  std::map<std::string, std::string> uid_of_;  // by key
  std::map<std::string, PlacedFact> placed_;
  std::map<std::string, PoolFact> pools_;
  std::map<std::string, SetFact> sets_;
  std::map<std::string, GroupFact> groups_;
  std::set<std::pair<std::string, std::string>> nominated_;  // UID and that of the pool
};

// What a machine of the class takes; empty for an unknown one.
apis::Amounts ClassAmounts(std::string_view class_name);

}  // namespace berth::sim
