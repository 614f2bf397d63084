// SPDX-License-Identifier: Apache-2.0
#include "gateway/rules/health_book.h"

#include <algorithm>
#include <utility>

namespace berth::gateway {
namespace {

// The host's clock and this one may each be wrong by 1 %.
Duration WithDrift(Duration lease) { return lease + lease / 50; }

}  // namespace

HealthBook::Host& HealthBook::HostOf(const std::string& host) {
  const auto [found, is_new] = hosts_.try_emplace(host);
  if (is_new) {
    found->second.last_word = start_;
    found->second.last_grant = start_;
  }
  return found->second;
}

Duration HealthBook::LongestLeaseOf(const Host& host) const {
  return std::max(host.lease.value_or(lease()), host.longer);
}

void HealthBook::Know(const std::string& pool_uid, const std::string& host, const Past& past) {
  if (host_of_.contains(pool_uid)) return;
  host_of_[pool_uid] = host;
  Host& it = HostOf(host);
  it.pools.insert(pool_uid);
  // Also if a session has begun: what an earlier server granted may still hold.
  if (past.lease > it.longer) {
    it.longer = past.lease;
    it.longer_until = std::max(it.longer_until, start_ + WithDrift(past.lease));
  }
  if (it.lease || !past.planned_until) return;
  it.said_goodbye = true;
  it.planned_until = std::max(it.planned_until, *past.planned_until);
  it.told = Ready::kAway;
}

void HealthBook::Forget(const std::string& pool_uid) {
  const auto found = host_of_.find(pool_uid);
  if (found == host_of_.end()) return;
  const auto host = hosts_.find(found->second);
  host_of_.erase(found);
  if (host == hosts_.end()) return;
  host->second.pools.erase(pool_uid);
  if (host->second.pools.empty() && !host->second.connected) hosts_.erase(host);
}

void HealthBook::Begin(const std::string& host, Duration lease, Time now) {
  Host& it = HostOf(host);
  // Guests live on with what was granted last until the host is granted anything anew.
  if (const Duration before = LongestLeaseOf(it); before > lease) {
    it.longer = before;
    it.longer_until = std::max(it.longer_until, it.last_grant + WithDrift(before));
  }
  it.connected = true;
  it.fenced = false;
  it.said_goodbye = false;
  it.last_word = now;
  it.lease = lease;
  it.told = Ready::kYes;
}

void HealthBook::Word(const std::string& host, Time now) { HostOf(host).last_word = now; }

bool HealthBook::Grant(const std::string& host, Time now) {
  Host& it = HostOf(host);
  it.last_word = now;
  if (it.fenced || !it.connected) return false;
  it.last_grant = now;
  if (now >= it.longer_until) it.longer = Duration();
  return true;
}

void HealthBook::End(const std::string& host, Time now) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) return;
  found->second.connected = false;
  if (found->second.said_goodbye) found->second.planned_until = now + kPlannedAbsence;
  if (found->second.pools.empty()) hosts_.erase(found);
}

void HealthBook::Goodbye(const std::string& host, Time now) {
  Host& it = HostOf(host);
  it.said_goodbye = true;
  it.planned_until = now + kPlannedAbsence;
}

HealthBook::Ready HealthBook::ReadyOf(const Host& host, Time now) const {
  if (host.connected) {
    return now - host.last_word < GraceFor(LongestLeaseOf(host)) ? Ready::kYes : Ready::kUnknown;
  }
  if (host.said_goodbye) return now < host.planned_until ? Ready::kAway : Ready::kUnknown;
  return now - host.last_word < GraceFor(LongestLeaseOf(host)) ? host.told : Ready::kUnknown;
}

fleet::PoolHealth HealthBook::HealthOf(const std::string& pool_uid,
                                       const Host& host,
                                       Time now) const {
  using Contact = fleet::PoolHealth::Contact;
  Contact contact = Contact::kSilent;
  if (host.connected && ReadyOf(host, now) == Ready::kYes) {
    contact = Contact::kConnected;
  } else if (!host.connected && host.said_goodbye && now < host.planned_until) {
    contact = Contact::kAway;
  }
  return {.pool_uid = pool_uid,
          .contact = contact,
          .silent_since = host.last_word,
          .planned_until = host.said_goodbye ? host.planned_until : Time(),
          .last_grant = host.last_grant,
          .lease = LongestLeaseOf(host)};
}

fleet::PoolHealth HealthBook::Fence(const std::string& pool_uid, Time now) {
  const auto found = host_of_.find(pool_uid);
  if (found == host_of_.end()) {
    return {.pool_uid = pool_uid,
            .contact = fleet::PoolHealth::Contact::kSilent,
            .silent_since = start_,
            .last_grant = start_,
            .lease = lease()};
  }
  Host& host = HostOf(found->second);
  host.fenced = true;
  return HealthOf(pool_uid, host, now);
}

std::vector<fleet::PoolHealth> HealthBook::All(Time now) const {
  std::vector<fleet::PoolHealth> all;
  for (const auto& [name, host] : hosts_) {
    for (const std::string& pool_uid : host.pools) all.push_back(HealthOf(pool_uid, host, now));
  }
  return all;
}

bool HealthBook::IsReachable(std::string_view pool_uid) const {
  const auto found = host_of_.find(pool_uid);
  if (found == host_of_.end()) return false;
  const auto host = hosts_.find(found->second);
  return host != hosts_.end() && host->second.connected && host->second.told == Ready::kYes;
}

Duration HealthBook::LeaseOf(std::string_view host) const {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) return lease();
  return found->second.lease.value_or(lease());
}

Duration HealthBook::LongestLeaseOf(std::string_view host) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? lease() : LongestLeaseOf(found->second);
}

std::vector<HealthBook::Turn> HealthBook::Tick(Time now) {
  std::vector<Turn> turns;
  const bool was_paused = now - last_tick_ > kGraceMin;
  last_tick_ = now;
  for (auto& [name, host] : hosts_) {
    if (was_paused) host.last_word = now;
    const Ready ready = ReadyOf(host, now);
    if (ready == host.told) continue;
    host.told = ready;
    for (const std::string& pool_uid : host.pools) turns.push_back({pool_uid, ready});
  }
  return turns;
}

}  // namespace berth::gateway
