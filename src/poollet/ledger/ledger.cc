// SPDX-License-Identifier: Apache-2.0
#include "poollet/ledger/ledger.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "fleet/refusals.h"

namespace berth::poollet {
namespace {

using fleet::ObjectKind;

Verdict Yes() { return {.fits = true, .reason = {}, .message = {}, .missing = {}}; }
Verdict No(std::string reason, std::string message, Amounts missing = {}) {
  return {.fits = false,
          .reason = std::move(reason),
          .message = std::move(message),
          .missing = std::move(missing)};
}

std::string Describe(const Allocation& item) {
  return fmt::format("{} {}", fleet::NameOf(item.kind), item.uid);
}

// Parts of a whole are the ledger's own: nobody knows what so many of them are.
std::string DescribeMissing(const Allocation& item, const Amounts& missing) {
  if (!missing.contains(kShare)) return Format(missing) + " missing";
  if (item.class_name.empty()) return "this pool has no room left for it";
  return (item.kind == ObjectKind::kVolume ? "no room for that much more of class "
                                           : "no room for one more of class ") +
         item.class_name;
}

int64_t WholeCores(int64_t millis) {
  constexpr int64_t kMillisPerCore = 1000;
  return millis / kMillisPerCore + (millis % kMillisPerCore > 0 ? 1 : 0);
}

// What classes have: local disks and parts of a whole are none of it.
Amounts SizeOf(const Amounts& amounts) {
  Amounts size;
  for (const auto& [name, amount] : amounts) {
    if (amount > 0 && name != kStorage && name != kShare) size[name] = amount;
  }
  return size;
}

std::string FormatSize(const Amounts& size) {
  std::string text;
  for (const auto& [name, amount] : size) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, amount);
  }
  return text.empty() ? "nothing" : text;
}

// Whether the item lives in the room of the reservation.
bool Draws(const Allocation& item, const Allocation& reservation) {
  return item.reservation_uid == reservation.uid && item.pool_uid == reservation.pool_uid &&
         !reservation.consumers.contains(item.uid);
}

Allocation ToAllocation(const fleet::OfferItem& item, const std::string& reservation_uid) {
  return {.uid = item.uid,
          .kind = item.kind,
          .pool_uid = item.pool_uid,
          .class_name = item.class_name,
          .placement = item.placement,
          .amounts = item.resources,
          .reservation_uid = reservation_uid};
}

}  // namespace

void Ledger::SetCapacity(Amounts capacity) {
  if (capacity == capacity_) return;
  capacity_ = std::move(capacity);
  ++counter_;
  ++corrections_;
}

void Ledger::SetPool(PoolBudget pool) {
  std::string uid = pool.uid;
  pools_.insert_or_assign(std::move(uid), std::move(pool));
  for (auto& [_, hold] : holds_) hold.entry.counted = Count(hold.entry.item);
  for (auto& [_, entry] : allocations_) entry.counted = Count(entry.item);
  sums_current_ = false;
  ++counter_;
  ++corrections_;
}

const PoolBudget* Ledger::PoolOf(const std::string& pool_uid) const {
  const auto found = pools_.find(pool_uid);
  return found == pools_.end() ? nullptr : &found->second;
}

bool Ledger::SharesHost(const std::string& pool_uid) const {
  const PoolBudget* pool = PoolOf(pool_uid);
  return pool == nullptr || pool->counting == PoolBudget::Counting::kAmounts;
}

Amounts Ledger::Count(const Allocation& item) const {
  if (SharesHost(item.pool_uid)) {
    Amounts counted = item.amounts;
    // Parts of a whole mean nothing where amounts are known.
    counted.erase(std::string(kShare));
    std::erase_if(counted, [](const auto& amount) { return amount.second <= 0; });
    return counted;
  }
  const PoolBudget* pool = PoolOf(item.pool_uid);
  const auto found = pool->classes.find(item.class_name);
  const int64_t quantity = found == pool->classes.end() ? 0 : found->second;
  if (item.kind == ObjectKind::kBucket) return {};
  // A snapshot may outlive the volume whose class it was counted by.
  const bool is_counted_by_server =
      item.kind == ObjectKind::kVolumeSnapshot ||
      (item.kind == ObjectKind::kReservation && item.class_name.empty());
  if (is_counted_by_server) {
    return {{std::string(kShare), AmountOf(item.amounts, kShare)}};
  }
  const int64_t size =
      item.kind == ObjectKind::kVolume ? std::max<int64_t>(AmountOf(item.amounts, kStorage), 1) : 1;
  return {{std::string(kShare), ShareOf(size, quantity)}};
}

Verdict Ledger::Known(const Allocation& item) const {
  const PoolBudget* pool = PoolOf(item.pool_uid);
  if (pool == nullptr) {
    return No("PoolUnknown", fmt::format("this host has no pool {}", item.pool_uid));
  }
  for (const auto& [name, amount] : item.amounts) {
    if (amount < 0) {
      return No("BadRequest", fmt::format("{}: {} is {}", Describe(item), name, amount));
    }
  }
  const bool has_class =
      item.kind != ObjectKind::kReservation && item.kind != ObjectKind::kVolumeSnapshot;
  if (!has_class || pool->classes.empty()) return Yes();
  if (pool->classes.contains(item.class_name)) return Yes();
  return No("ClassUnknown",
            fmt::format("the runtime of this pool has no class \"{}\"", item.class_name));
}

Verdict Ledger::CheckSize(const Allocation& item) const {
  const PoolBudget* pool = PoolOf(item.pool_uid);
  if (pool == nullptr || item.kind != ObjectKind::kMachine) return Yes();
  const auto size = pool->sizes.find(item.class_name);
  if (size == pool->sizes.end()) return Yes();
  Amounts counted = SizeOf(item.amounts);
  if (const auto cpu = counted.find(kCpu); cpu != counted.end()) {
    cpu->second = WholeCores(cpu->second);
  }
  const Amounts made = SizeOf(size->second);
  if (made == counted) return Yes();
  return No(fleet::kClassDiffers,
            fmt::format("class \"{}\" has {} at the runtime of this pool, and {} in the cluster",
                        item.class_name,
                        FormatSize(made),
                        FormatSize(counted)));
}

Amounts Ledger::FreeOf(const std::string& pool_uid, const Amounts& wanted) const {
  Sum();
  const bool shares_host = SharesHost(pool_uid);
  const PoolBudget* pool = PoolOf(pool_uid);
  const auto used = allocated_.pools.find(pool_uid);
  const auto held = held_.pools.find(pool_uid);
  Amounts free;
  for (const auto& [name, _] : wanted) {
    const int64_t of_pool = (used == allocated_.pools.end() ? 0 : AmountOf(used->second, name)) +
                            (held == held_.pools.end() ? 0 : AmountOf(held->second, name));
    int64_t amount = shares_host ? AmountOf(capacity_, name) - AmountOf(allocated_.host, name) -
                                       AmountOf(held_.host, name)
                                 : fleet::kShareWhole - of_pool;
    if (pool != nullptr) {
      const auto limit = pool->limits.find(name);
      if (limit != pool->limits.end()) amount = std::min(amount, limit->second - of_pool);
    }
    free[name] = amount;
  }
  return free;
}

Amounts Ledger::LeftOf(const Entry& reservation) const {
  Amounts left = reservation.counted;
  const auto take = [&](const Entry& entry) {
    if (Draws(entry.item, reservation.item)) {
      Subtract(left, Common(entry.counted, left));
    }
  };
  for (const auto& [_, hold] : holds_) take(hold.entry);
  for (const auto& [_, entry] : allocations_) take(entry);
  return left;
}

Verdict Ledger::Check(const Entry& entry) const {
  const auto reservation = allocations_.find(entry.item.reservation_uid);
  const bool draws =
      reservation != allocations_.end() && Draws(entry.item, reservation->second.item);
  const Amounts beyond = draws ? Beyond(entry.counted, LeftOf(reservation->second)) : Amounts();
  const Amounts& need = draws ? beyond : entry.counted;
  // What an orphan of this uid uses, the object will use in its place.
  Amounts free = FreeOf(entry.item.pool_uid, need);
  for (const OrphanUse& orphan : orphans_) {
    if (orphan.uid == entry.item.uid && orphan.pool_uid == entry.item.pool_uid) {
      Add(free, Common(orphan.amounts, need));
    }
  }
  Amounts missing = Beyond(need, free);
  if (missing.empty()) return Yes();
  const std::string text = fmt::format(
      "{} does not fit: {}", Describe(entry.item), DescribeMissing(entry.item, missing));
  return No("Insufficient", text, std::move(missing));
}

Verdict Ledger::TryHold(const fleet::OfferItem& item, const fleet::Offer& offer, Time now) {
  Entry entry{.item = ToAllocation(item, offer.reservation_uid), .counted = {}};
  if (Verdict known = Known(entry.item); !known.fits) return known;
  if (Verdict size = CheckSize(entry.item); !size.fits) return size;
  entry.counted = Count(entry.item);
  if (!offer.reservation_uid.empty() && item.uid == offer.item.uid) {
    const auto reservation = allocations_.find(offer.reservation_uid);
    if (reservation == allocations_.end()) {
      return No("ReservationUnknown",
                fmt::format("no reservation {} on this host", offer.reservation_uid));
    }
    if (Amounts beyond = Beyond(entry.counted, LeftOf(reservation->second)); !beyond.empty()) {
      const std::string text = fmt::format("{} is larger than what is left of reservation {}{}",
                                           Describe(entry.item),
                                           offer.reservation_uid,
                                           beyond.contains(kShare) ? "" : " by " + Format(beyond));
      return No("ReservationTooSmall", text, std::move(beyond));
    }
  }
  if (Verdict verdict = Check(entry); !verdict.fits) return verdict;
  PutHold({.entry = std::move(entry), .offer = offer.id, .expires = now + offer.hold_ttl});
  return Yes();
}

// P2: takes away what the offer would take the place of: everything held together with its uid, and
// whatever is held for the uids that come with it.
std::vector<Ledger::Hold> Ledger::TakeReplaced(const OfferItems& items) {
  std::vector<Hold> taken;
  if (const auto old = holds_.find(items.front()->uid); old != holds_.end()) {
    const fleet::OfferId group = old->second.offer;
    for (auto it = holds_.begin(); it != holds_.end();) {
      const std::string uid = it->first;
      const bool together = it->second.offer == group;
      ++it;
      if (together) taken.push_back(*TakeHold(uid));
    }
  }
  for (const fleet::OfferItem* item : items) {
    if (auto hold = TakeHold(item->uid)) taken.push_back(*std::move(hold));
  }
  return taken;
}

Verdict Ledger::HoldAll(const fleet::Offer& offer, Time now) {
  OfferItems items = {&offer.item};
  for (const auto& joint : offer.joint) {
    if (!allocations_.contains(joint.uid)) items.push_back(&joint);
  }
  std::vector<Hold> before = TakeReplaced(items);
  Verdict verdict = Yes();
  if (holds_.size() + items.size() > kHoldsMax) {
    verdict = No("TooManyHolds", fmt::format("this host holds {} offers", holds_.size()));
  }
  size_t made = 0;
  while (verdict.fits && made < items.size()) {
    verdict = TryHold(*items[made], offer, now);
    if (verdict.fits) ++made;
  }
  if (verdict.fits) return verdict;
  for (size_t i = 0; i < made; ++i) TakeHold(items[i]->uid);
  for (auto& hold : before) PutHold(std::move(hold));
  return verdict;
}

fleet::Answer Ledger::Ask(const fleet::Offer& offer, uint64_t term_seen, Time now) {
  Expire(now);
  fleet::Answer answer;
  answer.id = offer.id;
  answer.verdict = fleet::Answer::Verdict::kRejected;
  const auto here = allocations_.find(offer.item.uid);
  if (offer.id.term < term_seen) {
    answer.reason = "StaleTerm";
    answer.message = fmt::format("term {} is over: {} was seen", offer.id.term, term_seen);
  } else if (here != allocations_.end()) {
    answer.verdict = fleet::Answer::Verdict::kAlreadyHere;
    answer.placement = here->second.item.placement;
  } else {
    Verdict verdict = HoldAll(offer, now);
    if (verdict.fits) answer.verdict = fleet::Answer::Verdict::kAccepted;
    answer.reason = std::move(verdict.reason);
    answer.message = std::move(verdict.message);
    answer.missing = std::move(verdict.missing);
  }
  if (answer.verdict != fleet::Answer::Verdict::kAccepted) ++corrections_;
  answer.ledger = version();
  return answer;
}

void Ledger::Release(fleet::OfferId offer) {
  std::vector<std::string> uids;
  for (const auto& [uid, hold] : holds_) {
    if (hold.offer == offer) uids.push_back(uid);
  }
  for (const auto& uid : uids) TakeHold(uid);
  if (!uids.empty()) ++corrections_;
}

void Ledger::Expire(Time now) {
  if (!expires_from_ || now < *expires_from_) return;
  std::vector<std::string> uids;
  for (const auto& [uid, hold] : holds_) {
    if (hold.expires <= now) uids.push_back(uid);
  }
  for (const auto& uid : uids) TakeHold(uid);
  if (!uids.empty()) ++corrections_;
  expires_from_ = next_expiry();
}

std::optional<Time> Ledger::next_expiry() const {
  std::optional<Time> next;
  for (const auto& [_, hold] : holds_) {
    if (!next.has_value() || hold.expires < *next) next = hold.expires;
  }
  return next;
}

Verdict Ledger::Admit(const Allocation& allocation, Time now) {
  Expire(now);
  if (Verdict known = Known(allocation); !known.fits) return known;
  Entry entry{.item = allocation, .counted = Count(allocation)};
  std::optional<Hold> hold = TakeHold(allocation.uid);
  if (hold.has_value() && entry.item.reservation_uid.empty()) {
    entry.item.reservation_uid = hold->entry.item.reservation_uid;
  }
  std::optional<Entry> before;
  if (const auto found = allocations_.find(allocation.uid); found != allocations_.end()) {
    before = found->second;
    TakeAllocation(allocation.uid);
  }
  Verdict verdict = Check(entry);
  if (!verdict.fits || before.has_value()) ++corrections_;
  if (verdict.fits) {
    PutAllocation(std::move(entry));
  } else if (before.has_value()) {
    PutAllocation(*std::move(before));
  }
  return verdict;
}

void Ledger::Restore(const Allocation& allocation) {
  TakeHold(allocation.uid);
  TakeAllocation(allocation.uid);
  PutAllocation({.item = allocation, .counted = Count(allocation)});
  ++corrections_;
}

void Ledger::Free(const std::string& uid) {
  TakeAllocation(uid);
  ++corrections_;
}

void Ledger::SetOrphans(std::vector<OrphanUse> orphans) {
  orphans_ = std::move(orphans);
  for (OrphanUse& orphan : orphans_) {
    Allocation item;
    item.uid = orphan.uid;
    item.kind = orphan.kind;
    item.pool_uid = orphan.pool_uid;
    item.class_name = orphan.class_name;
    item.amounts = orphan.amounts;
    orphan.amounts = Count(item);
  }
  sums_current_ = false;
  ++counter_;
  ++corrections_;
}

const Allocation* Ledger::Find(const std::string& uid) const {
  const auto found = allocations_.find(uid);
  return found == allocations_.end() ? nullptr : &found->second.item;
}

void Ledger::PutHold(Hold hold) {
  Charge(held_, hold.entry, Sign::kPlus);
  expires_from_ = std::min(expires_from_.value_or(hold.expires), hold.expires);
  std::string uid = hold.entry.item.uid;
  holds_.insert_or_assign(std::move(uid), std::move(hold));
  ++counter_;
}

std::optional<Ledger::Hold> Ledger::TakeHold(const std::string& uid) {
  const auto found = holds_.find(uid);
  if (found == holds_.end()) return std::nullopt;
  Hold hold = std::move(found->second);
  holds_.erase(found);
  Charge(held_, hold.entry, Sign::kMinus);
  ++counter_;
  return hold;
}

void Ledger::PutAllocation(Entry entry) {
  Charge(allocated_, entry, Sign::kPlus);
  std::string uid = entry.item.uid;
  allocations_.insert_or_assign(std::move(uid), std::move(entry));
  ++counter_;
}

void Ledger::TakeAllocation(const std::string& uid) {
  const auto found = allocations_.find(uid);
  if (found == allocations_.end()) return;
  const Entry entry = std::move(found->second);
  allocations_.erase(found);
  Charge(allocated_, entry, Sign::kMinus);
  ++counter_;
}

bool Ledger::IsOrphan(const std::string& uid) const {
  return std::ranges::any_of(orphans_, [&](const OrphanUse& orphan) { return orphan.uid == uid; });
}

void Ledger::Charge(Sums& sums, const Entry& entry, Sign sign) {
  if (entry.item.kind == ObjectKind::kReservation || !entry.item.reservation_uid.empty() ||
      IsOrphan(entry.item.uid)) {
    sums_current_ = false;
  }
  if (sums_current_) Apply(sums, entry.item.pool_uid, entry.counted, sign);
}

void Ledger::Apply(Sums& sums,
                   const std::string& pool_uid,
                   const Amounts& amounts,
                   Sign sign) const {
  const auto apply = sign == Sign::kPlus ? &Add : &Subtract;
  apply(sums.pools[pool_uid], amounts);
  if (SharesHost(pool_uid)) apply(sums.host, amounts);
}

void Ledger::Sum() const {
  if (sums_current_) return;
  sums_current_ = true;
  allocated_ = {};
  held_ = {};
  for (const auto& [_, hold] : holds_) {
    Apply(held_, hold.entry.item.pool_uid, hold.entry.counted, Sign::kPlus);
  }
  for (const auto& [_, entry] : allocations_) {
    const bool reserves = entry.item.kind == ObjectKind::kReservation;
    Apply(allocated_, entry.item.pool_uid, reserves ? LeftOf(entry) : entry.counted, Sign::kPlus);
  }
  for (const OrphanUse& orphan : orphans_) {
    if (allocations_.contains(orphan.uid) || holds_.contains(orphan.uid)) continue;
    Apply(allocated_, orphan.pool_uid, orphan.amounts, Sign::kPlus);
  }
}

Amounts Ledger::CapacityOf(const std::string& pool_uid) const {
  if (!SharesHost(pool_uid)) return {{std::string(kShare), fleet::kShareWhole}};
  Amounts capacity = capacity_;
  if (const PoolBudget* pool = PoolOf(pool_uid)) {
    for (auto& [name, amount] : capacity) {
      const auto limit = pool->limits.find(name);
      if (limit != pool->limits.end()) amount = std::min(amount, limit->second);
    }
  }
  return capacity;
}

Amounts Ledger::AllocatedOf(const std::string& pool_uid) const {
  Sum();
  if (SharesHost(pool_uid)) return allocated_.host;
  const auto found = allocated_.pools.find(pool_uid);
  return found == allocated_.pools.end() ? Amounts() : found->second;
}

Amounts Ledger::HeldOf(const std::string& pool_uid) const {
  Sum();
  if (SharesHost(pool_uid)) return held_.host;
  const auto found = held_.pools.find(pool_uid);
  return found == held_.pools.end() ? Amounts() : found->second;
}

std::map<std::string, Amounts> Ledger::ReservedOn(const std::string& pool_uid) const {
  std::map<std::string, Amounts> reserved;
  if (!SharesHost(pool_uid)) return reserved;
  for (const auto& [uid, entry] : allocations_) {
    if (entry.item.kind != ObjectKind::kReservation || entry.item.pool_uid != pool_uid) continue;
    Amounts left = LeftOf(entry);
    std::erase_if(left, [](const auto& amount) { return amount.second <= 0; });
    if (!left.empty()) reserved.emplace(uid, std::move(left));
  }
  return reserved;
}

}  // namespace berth::poollet
