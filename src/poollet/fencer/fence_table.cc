// SPDX-License-Identifier: Apache-2.0
#include "poollet/fencer/fence_table.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/strings.h"

namespace berth::poollet {

bool IsFenceUid(std::string_view uid) {
  return !uid.empty() && uid.size() <= kFenceUidBytesMax &&
         std::ranges::all_of(uid, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
         });
}

Status FenceTable::Apply(const FenceRequest& request, int64_t now) {
  for (const std::string& uid : request.leases) {
    if (!IsFenceUid(uid)) return BadRequest("fencer: " + Quote(uid) + " is no uid");
  }
  if (leases_.size() + request.leases.size() > 2 * kFenceLeasesMax) {
    return BadRequest("fencer: more than " + std::to_string(kFenceLeasesMax) + " leases");
  }
  Expire(now);
  for (const std::string& uid : request.releases) leases_.erase(uid);
  for (const std::string& uid : request.leases) {
    const auto found = leases_.find(uid);
    if (found == leases_.end() && leases_.size() >= kFenceLeasesMax) {
      return BadRequest("fencer: more than " + std::to_string(kFenceLeasesMax) + " leases");
    }
    FenceLease& lease = found == leases_.end() ? leases_[uid] : found->second;
    // What has run out is not revived, and no deadline moves back.
    if (!lease.expired) lease.deadline = std::max(lease.deadline, request.deadline);
  }
  for (const auto& guest : request.guests) {
    const auto lease = leases_.find(guest.uid);
    if (lease == leases_.end() || guest.process.pid <= 1) continue;
    auto& processes = lease->second.processes;
    if (processes.size() >= kFenceProcessesMax && !processes.contains(guest.process)) {
      return BadRequest("fencer: " + Quote(guest.uid) + " has more than " +
                        std::to_string(kFenceProcessesMax) + " processes");
    }
    if (processes.insert(guest.process).second) lease->second.fenced = false;
  }
  Expire(now);  // a deadline may lie in the past already
  return OkStatus();
}

void FenceTable::Expire(int64_t now) {
  for (auto& [uid, lease] : leases_) {
    if (lease.deadline <= now) lease.expired = true;
  }
  Settle();
}

void FenceTable::Died(const FenceProcess& process) {
  for (auto& [uid, lease] : leases_) lease.processes.erase(process);
  Settle();
}

void FenceTable::Settle() {
  for (auto& [uid, lease] : leases_) {
    if (!lease.expired || lease.fenced || !lease.processes.empty()) continue;
    lease.fenced = true;
    fenced_.push_back(uid);
  }
}

std::vector<std::string> FenceTable::TakeFenced() { return std::exchange(fenced_, {}); }

std::set<FenceProcess> FenceTable::Condemned() const {
  std::set<FenceProcess> all;
  for (const auto& [uid, lease] : leases_) {
    if (lease.expired) all.insert(lease.processes.begin(), lease.processes.end());
  }
  return all;
}

std::set<FenceProcess> FenceTable::Processes() const {
  std::set<FenceProcess> all;
  for (const auto& [uid, lease] : leases_) {
    all.insert(lease.processes.begin(), lease.processes.end());
  }
  return all;
}

std::optional<int64_t> FenceTable::NextDeadline() const {
  std::optional<int64_t> next;
  for (const auto& [uid, lease] : leases_) {
    if (!lease.expired && (!next.has_value() || lease.deadline < *next)) next = lease.deadline;
  }
  return next;
}

}  // namespace berth::poollet
