// SPDX-License-Identifier: Apache-2.0
#include "store/mvcc/lease_table.h"

#include "base/check.h"

namespace berth::store {

void LeaseTable::Add(LeaseId id, Duration ttl, Time now) {
  const auto [it, is_new] = leases_.try_emplace(id);
  CHECK(is_new) << id.value;
  it->second.ttl = ttl;
  it->second.deadline = now + ttl;
  deadlines_.emplace(it->second.deadline, id);
}

bool LeaseTable::IsAlive(LeaseId id) const {
  const auto it = leases_.find(id);
  return it != leases_.end() && !it->second.ending;
}

void LeaseTable::Renew(LeaseId id, Time now) {
  CHECK(IsAlive(id)) << id.value;
  Lease& lease = leases_.at(id);
  deadlines_.erase({lease.deadline, id});
  lease.deadline = now + lease.ttl;
  deadlines_.emplace(lease.deadline, id);
}

void LeaseTable::Move(std::string_view key, LeaseId from, LeaseId to) {
  if (from == to) return;
  if (const auto it = leases_.find(from); it != leases_.end()) {
    const auto attached = it->second.keys.find(key);
    if (attached != it->second.keys.end()) it->second.keys.erase(attached);
  }
  if (const auto it = leases_.find(to); it != leases_.end()) it->second.keys.emplace(key);
}

void LeaseTable::BeginEnd(LeaseId id) {
  CHECK(IsAlive(id)) << id.value;
  Lease& lease = leases_.at(id);
  lease.ending = true;
  deadlines_.erase({lease.deadline, id});
}

std::vector<std::string> LeaseTable::Keys(LeaseId id, size_t max) const {
  std::vector<std::string> keys;
  const auto it = leases_.find(id);
  if (it == leases_.end()) return keys;
  for (const std::string& key : it->second.keys) {
    if (keys.size() == max) break;
    keys.push_back(key);
  }
  return keys;
}

size_t LeaseTable::KeyCount(LeaseId id) const {
  const auto it = leases_.find(id);
  return it == leases_.end() ? 0 : it->second.keys.size();
}

void LeaseTable::Forget(LeaseId id) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) return;
  deadlines_.erase({it->second.deadline, id});
  leases_.erase(it);
}

std::optional<Time> LeaseTable::NextDeadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

std::vector<LeaseId> LeaseTable::Expired(Time now) const {
  std::vector<LeaseId> expired;
  for (const auto& [deadline, id] : deadlines_) {
    if (deadline > now) break;
    expired.push_back(id);
  }
  return expired;
}

void LeaseTable::Reset(Time now) {
  deadlines_.clear();
  for (auto& [id, lease] : leases_) {
    lease.keys.clear();
    lease.ending = false;
    lease.deadline = now + lease.ttl;
    deadlines_.emplace(lease.deadline, id);
  }
}

}  // namespace berth::store
