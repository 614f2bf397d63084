// SPDX-License-Identifier: Apache-2.0
// Truth is what the store holds, decoded as far as the checkers need it. It is fed by every commit
// that the store acknowledged, so it is right at every moment, whatever the server believes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/placement.h"
#include "base/bytes.h"
#include "client/client.h"
#include "meta/kind.h"
#include "store/store.h"

namespace berth::sim {

// Counts what a user has changed of an object: never goes back.
inline constexpr std::string_view kEditAnnotation = "sim.berth.dev/edit";

// A Machine or a Volume.
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
  bool is_picky = false;             // it asks for labels of a pool
  std::string group;                 // that it is placed with
  std::vector<std::string> volumes;  // names of those that it needs
  std::string release;               // why it has to leave its pool
  std::string state;                 // as its host said
  std::string reason;                // of Scheduled=False
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
  apis::Amounts allocatable;
  bool operator==(const PoolFact&) const = default;
};

struct SetFact {
  client::ObjectKey key;
  std::string uid;
  int64_t replicas = 0;
  bool is_deleting = false;
  bool operator==(const SetFact&) const = default;
};

struct StoredFact {
  store::Revision revision;
  uint64_t hash = 0;  // of the value
};

class Truth {
 public:
  // What a change did to a machine or a volume; both null for anything else.
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
  const PlacedFact* Find(const std::string& uid) const;
  // The pool of that kind and name.
  const PoolFact* FindPool(const meta::KindInfo& kind, std::string_view name) const;
  // How many machines of the set are not on their way out.
  int64_t MembersOf(const std::string& set_uid) const;

 private:
  store::Revision last_revision_;
  std::map<std::string, StoredFact> keys_;
  std::map<std::string, std::string> uid_of_;  // by key
  std::map<std::string, PlacedFact> placed_;
  std::map<std::string, PoolFact> pools_;
  std::map<std::string, SetFact> sets_;
};

// What a machine of the class takes; empty for an unknown one.
apis::Amounts ClassAmounts(std::string_view class_name);

}  // namespace berth::sim
