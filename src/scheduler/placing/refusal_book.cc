// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/refusal_book.h"

#include <algorithm>
#include <iterator>

#include "scheduler/placing/given_back.h"

namespace berth::scheduler {
namespace {

constexpr char kOtherReason[] = "Refused";

uint8_t IndexOf(std::vector<std::string>& reasons, std::string reason) {
  if (reasons.size() + 1 >= RefusalBook::kReasonsMax &&
      std::ranges::find(reasons, reason) == reasons.end()) {
    reason = kOtherReason;
  }
  const auto known = std::ranges::find(reasons, reason);
  const auto index = static_cast<uint8_t>(known - reasons.begin());
  if (known == reasons.end()) reasons.push_back(std::move(reason));
  return index;
}

}  // namespace

std::vector<PoolIndex> RefusalBook::Resume(const ObjectRecord& record, Time now) {
  std::vector<PoolIndex> pools;
  const auto found = entries_.find(record.uid);
  if (found == entries_.end()) return pools;
  Entry& entry = found->second;
  if (entry.edition != EditionOf(record)) {
    Forget(record.uid);
    return pools;
  }
  for (const Refuser& refuser : entry.refusers) {
    if (refuser.is_of_pass) pools.push_back(refuser.pool);
  }
  if (!pools.empty() && entry.last + kKeptFor < now) {
    EndPass(record.uid);
    pools.clear();
  }
  return pools;
}

bool RefusalBook::Add(const ObjectRecord& record, PoolIndex pool, Told told, Time now) {
  Entry& entry = Open(record);
  entry.last = now;
  Refuser* refuser = Put(entry, pool, std::move(told));
  return refuser != nullptr && !std::exchange(refuser->is_of_pass, true);
}

void RefusalBook::Note(const ObjectRecord& record, PoolIndex pool, Told told) {
  Put(Open(record), pool, std::move(told));
}

void RefusalBook::EndPass(std::string_view uid) {
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return;
  std::vector<PoolIndex> old;
  for (const Refuser& refuser : found->second.refusers) {
    if (!refuser.is_of_pass) old.push_back(refuser.pool);
  }
  Drop(found->second, old);
  for (Refuser& refuser : found->second.refusers) refuser.is_of_pass = false;
}

void RefusalBook::Forget(std::string_view uid) {
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return;
  refusers_ -= found->second.refusers.size();
  entries_.erase(found);
}

void RefusalBook::Reopen(std::span<const PoolIndex> pools) {
  if (pools.empty()) return;
  for (auto& [uid, entry] : entries_) Drop(entry, pools);
}

std::vector<PoolIndex> RefusalBook::PoolsOf(const ObjectRecord& record) const {
  std::vector<PoolIndex> pools;
  const Entry* entry = Find(record);
  if (entry == nullptr) return pools;
  for (const Refuser& refuser : entry->refusers) pools.push_back(refuser.pool);
  return pools;
}

std::vector<RefusalBook::Told> RefusalBook::ToldOf(const ObjectRecord& record) const {
  std::vector<Told> told;
  const Entry* entry = Find(record);
  if (entry == nullptr) return told;
  for (const Refuser& refuser : entry->refusers) {
    Told& one = told.emplace_back();
    one.host = refuser.host;
    one.reason = entry->reasons[refuser.reason];
    for (const auto& [pool, message] : entry->messages) {
      if (pool == refuser.pool) one.message = message;
    }
  }
  return told;
}

const RefusalBook::Entry* RefusalBook::Find(const ObjectRecord& record) const {
  const auto found = entries_.find(record.uid);
  if (found == entries_.end() || found->second.edition != EditionOf(record)) return nullptr;
  return &found->second;
}

RefusalBook::Entry& RefusalBook::Open(const ObjectRecord& record) {
  const int64_t edition = EditionOf(record);
  Entry& entry = entries_[record.uid];
  if (entry.edition != edition) {
    refusers_ -= entry.refusers.size();
    entry = {};
  }
  entry.edition = edition;
  return entry;
}

RefusalBook::Refuser* RefusalBook::Put(Entry& entry, PoolIndex pool, Told told) {
  auto refuser = std::ranges::find(entry.refusers, pool, &Refuser::pool);
  if (refuser == entry.refusers.end()) {
    if (entry.refusers.size() >= kOfOneMax || refusers_ >= of_all_max_) return nullptr;
    ++refusers_;
    entry.refusers.push_back({.pool = pool});
    refuser = std::prev(entry.refusers.end());
  }
  refuser->host = told.host;
  refuser->reason = IndexOf(entry.reasons, std::move(told.reason));
  std::erase_if(entry.messages, [pool](const auto& message) { return message.first == pool; });
  if (!told.message.empty() && entry.messages.size() < kMessagesMax) {
    entry.messages.emplace_back(pool, std::move(told.message));
  }
  return &*refuser;
}

void RefusalBook::Drop(Entry& entry, std::span<const PoolIndex> pools) {
  const auto has = [pools](PoolIndex pool) {
    return std::ranges::find(pools, pool) != pools.end();
  };
  refusers_ -= std::erase_if(entry.refusers, [&](const auto& one) { return has(one.pool); });
  std::erase_if(entry.messages, [&](const auto& message) { return has(message.first); });
}

}  // namespace berth::scheduler
