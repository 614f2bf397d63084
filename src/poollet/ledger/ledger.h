// SPDX-License-Identifier: Apache-2.0
// The Ledger counts what a host has and what is promised of it. It is the authority on the host's
// real resources (P3): nothing is admitted that does not fit, whoever asks. Pure: time comes in.
//
//   free = capacity - allocations - reservations - orphans - holds
//
// Invariants: 1. A uid has at most one hold (P2) and at most one allocation. 2. An allocation ends
// the hold of its uid. 3. Offer and Admit never make `free` negative in any dimension; only what is
// restored from the record or found on the host may, after the host has shrunk. 4. The version
// grows with every change of a figure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "fleet/fleet.h"
#include "poollet/ledger/amounts.h"

namespace berth::poollet {

// 4,096 holds of about 500 bytes are 2 MiB; a scheduler that has more offers open is refused.
inline constexpr size_t kHoldsMax = 4096;

// One pool of the host and how its objects are counted.
struct PoolBudget {
  enum class Counting : uint8_t {
    kAmounts,  // against the host's capacity, which all pools share
    kShares,   // its runtime knows counts per class only: parts of a whole of this pool
  };
  std::string uid;
  Counting counting = Counting::kAmounts;
  Amounts limits;  // what the pool may use at most; a dimension that is not named has no limit
  // Classes that the runtime offers; for kShares with how many (volumes: bytes) fit if nothing else
  // ran. Empty: not known yet, any class is taken as offered.
  std::map<std::string, int64_t, std::less<>> classes;
  // What one machine of a class gets of the runtime, cpu in whole cores. Not known for a class that
  // is not named.
  std::map<std::string, Amounts, std::less<>> sizes;
};

// Something that is on this host, or shall be.
struct Allocation {
  std::string uid;
  fleet::ObjectKind kind = fleet::ObjectKind::kMachine;
  std::string pool_uid;
  std::string class_name;
  uint64_t placement = 0;
  Amounts amounts;
  std::string reservation_uid;  // what it consumes; "" for nothing
  // Of a reservation: those who have used it. Its amounts are without theirs, so they draw no more
  // from it, whatever came first here, they or this.
  std::set<std::string> consumers;
};

// Runs here, and nobody asked for it.
struct OrphanUse {
  std::string runtime_id;
  std::string uid;
  fleet::ObjectKind kind = fleet::ObjectKind::kMachine;
  std::string pool_uid;
  std::string class_name;
  Amounts amounts;
};

struct Verdict {
  bool fits = false;
  std::string reason;   // one word: "Insufficient", "ClassUnknown", "PoolUnknown", …
  std::string message;  // for people
  Amounts missing;
};

class Ledger {
 public:
  // `boot` names this life of the ledger: versions compare within it.
  explicit Ledger(std::string boot) : boot_(std::move(boot)) {}

  void SetCapacity(Amounts capacity);
  void SetPool(PoolBudget pool);

  // P1, P2, P3. All items of the offer or none; a second offer for a uid takes the place of the
  // first. `term_seen` is the highest term that the host knows of.
  fleet::Answer Ask(const fleet::Offer& offer, uint64_t term_seen, Time now);
  // Gives up what is held under the offer. Idempotent.
  void Release(fleet::OfferId offer);
  // Ends holds whose time is over.
  void Expire(Time now);
  std::optional<Time> next_expiry() const;
  size_t holds() const { return holds_.size(); }

  // P5: makes the allocation if it fits, with or without a hold. One that is there already is
  // changed to the new amounts, or left as it is if those do not fit. The hold ends either way.
  Verdict Admit(const Allocation& allocation, Time now);
  // Takes it without asking: it is on the host, the record says so.
  void Restore(const Allocation& allocation);
  // The runtime says that it is gone. Idempotent.
  void Free(const std::string& uid);
  // Replaces the list. An orphan whose uid is allocated or held is counted there, not twice.
  void SetOrphans(std::vector<OrphanUse> orphans);

  bool IsAllocated(const std::string& uid) const { return allocations_.contains(uid); }
  const Allocation* Find(const std::string& uid) const;

  fleet::LedgerVersion version() const { return {.boot = boot_, .counter = counter_}; }
  // Grows with every change that may have made room, or refused for want of it: whoever decides on
  // older figures would decide wrongly.
  uint64_t corrections() const { return corrections_; }
  // As the server is told: of one pool, what it could use at most and what is used of that. All
  // pools of a host that share its capacity show the same use.
  Amounts CapacityOf(const std::string& pool_uid) const;
  Amounts AllocatedOf(const std::string& pool_uid) const;
  Amounts HeldOf(const std::string& pool_uid) const;
  // What is kept free on a pool that shares the host's capacity: by reservation, without what was
  // drawn from it. What is used up is not named.
  std::map<std::string, Amounts> ReservedOn(const std::string& pool_uid) const;

 private:
  // An object and what it counts for on its pool.
  struct Entry {
    Allocation item;
    Amounts counted;
  };
  struct Hold {
    Entry entry;
    fleet::OfferId offer;
    Time expires;
  };
  struct Sums {
    Amounts host;
    std::map<std::string, Amounts, std::less<>> pools;
  };
  enum class Sign : uint8_t { kPlus, kMinus };

  const PoolBudget* PoolOf(const std::string& pool_uid) const;
  bool SharesHost(const std::string& pool_uid) const;
  // What the item counts for on its pool.
  Amounts Count(const Allocation& item) const;
  // Whether its pool and class exist here.
  Verdict Known(const Allocation& item) const;
  // Whether the runtime would make it as large as it is counted.
  Verdict CheckSize(const Allocation& item) const;
  Verdict Check(const Entry& entry) const;
  Amounts FreeOf(const std::string& pool_uid, const Amounts& wanted) const;
  using OfferItems = std::vector<const fleet::OfferItem*>;
  std::vector<Hold> TakeReplaced(const OfferItems& items);
  Verdict HoldAll(const fleet::Offer& offer, Time now);
  Verdict TryHold(const fleet::OfferItem& item, const fleet::Offer& offer, Time now);

  // Each of these changes one entry and the sums with it.
  void PutHold(Hold hold);
  std::optional<Hold> TakeHold(const std::string& uid);
  void PutAllocation(Entry entry);
  void TakeAllocation(const std::string& uid);
  // Adds to the sums, or leaves them to be made anew where a reservation or an orphan is involved.
  void Charge(Sums& sums, const Entry& entry, Sign sign);
  void Apply(Sums& sums, const std::string& pool_uid, const Amounts& amounts, Sign sign) const;
  bool IsOrphan(const std::string& uid) const;
  // What is left of a reservation.
  Amounts LeftOf(const Entry& reservation) const;
  void Sum() const;

  const std::string boot_;
  uint64_t counter_ = 0;
  uint64_t corrections_ = 0;
  Amounts capacity_;
  std::map<std::string, PoolBudget, std::less<>> pools_;
  std::map<std::string, Hold, std::less<>> holds_;
  // No hold ends before; so not every question looks through all of them.
  std::optional<Time> expires_from_;
  std::map<std::string, Entry, std::less<>> allocations_;
  std::vector<OrphanUse> orphans_;
  // Derived from the above; made anew by Sum() when not current.
  mutable bool sums_current_ = false;
  mutable Sums allocated_;
  mutable Sums held_;
};

}  // namespace berth::poollet
