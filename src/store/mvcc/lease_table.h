// SPDX-License-Identifier: Apache-2.0
// A LeaseTable knows the leases, when they end, and which keys hang on them at the tip. Pure: time
// comes in as a value.
//
//   granted ──Renew──► granted ──Begin end──► ending ──last key deleted──► forgotten
//
// An ending lease takes no new keys and cannot be renewed.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "store/store.h"

namespace berth::store {

// 100,000 leases * 200 bytes = 20 MB.
constexpr size_t kMaxLeases = 100'000;

class LeaseTable {
 public:
  void Add(LeaseId id, Duration ttl, Time now);
  // False if the lease is unknown or ending.
  bool IsAlive(LeaseId id) const;
  bool Exists(LeaseId id) const { return leases_.contains(id); }
  // REQUIRES: IsAlive(id).
  void Renew(LeaseId id, Time now);

  // The key is no longer on one lease but on the other; zero means none.
  void Move(std::string_view key, LeaseId from, LeaseId to);

  // From now on the lease is ending. REQUIRES: IsAlive(id).
  void BeginEnd(LeaseId id);
  // Up to `max` keys of a lease.
  std::vector<std::string> Keys(LeaseId id, size_t max) const;
  size_t KeyCount(LeaseId id) const;
  void Forget(LeaseId id);

  // When the next lease ends, and all that have ended by now.
  std::optional<Time> NextDeadline() const;
  std::vector<LeaseId> Expired(Time now) const;

  // After a failed write: no key is attached, no lease is ending, every lease has its whole ttl.
  void Reset(Time now);
  size_t size() const { return leases_.size(); }

 private:
  struct Lease {
    Duration ttl;
    Time deadline;
    bool ending = false;
    std::set<std::string, std::less<>> keys;
  };
  std::map<LeaseId, Lease> leases_;
  std::set<std::pair<Time, LeaseId>> deadlines_;  // of the leases that are not ending
};

}  // namespace berth::store
