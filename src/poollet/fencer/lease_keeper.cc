// SPDX-License-Identifier: Apache-2.0
#include "poollet/fencer/lease_keeper.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace berth::poollet {
namespace {

// Heartbeats come every 2 s and their grants within a second; 64 are two minutes of silence.
constexpr size_t kHeartbeatsMax = 64;

}  // namespace

LeaseKeeper::LeaseKeeper(rt::Loop& loop,
                         Fencer* fencer,
                         std::function<void(const std::string&)> on_change,
                         std::function<Duration()> slept)
    : loop_(loop),
      fencer_(fencer),
      on_change_(std::move(on_change)),
      slept_(std::move(slept)),
      scope_(loop) {
  if (fencer_ == nullptr) problem_ = "this host has no fencer";
}

rt::Task<Status> LeaseKeeper::Probe() {
  if (fencer_ == nullptr) co_return OkStatus();
  iri::LeaseRenewal nothing;
  co_return co_await Send(std::move(nothing));
}

void LeaseKeeper::SessionBegan() {
  in_session_ = true;
  sent_.clear();
  deadline_.reset();
  confirmed_.clear();
}

void LeaseKeeper::SessionEnded() {
  in_session_ = false;
  sent_.clear();
  deadline_.reset();
  confirmed_.clear();
}

void LeaseKeeper::HeartbeatSent(uint64_t number) {
  sent_[number] = BootNow();
  while (sent_.size() > kHeartbeatsMax) sent_.erase(sent_.begin());
}

void LeaseKeeper::Granted(uint64_t number, Duration ttl) {
  const auto sent = sent_.find(number);
  if (!in_session_ || sent == sent_.end()) return;  // not of this session, or answered already
  const Time deadline = sent->second + ttl;
  sent_.erase(sent_.begin(), std::next(sent));
  const bool began = !deadline_.has_value();
  if (began || deadline > *deadline_) deadline_ = deadline;
  again_ = true;
  if (!renewing_ && fencer_ != nullptr) {
    renewing_ = true;
    scope_.Spawn("poollet.lease", RenewAll());
  }
  if (began) {
    for (const auto& [uid, _] : confirmed_) on_change_(uid);
  }
}

void LeaseKeeper::Confirm(const std::string& uid, Placement placement) {
  if (!in_session_) return;
  withdrawn_.erase(uid);
  confirmed_.insert_or_assign(uid, placement);
  if (deadline_.has_value()) {
    again_ = true;
    if (!renewing_ && fencer_ != nullptr) {
      renewing_ = true;
      scope_.Spawn("poollet.lease", RenewAll());
    }
    on_change_(uid);
  }
}

// No placement of a host is (0, 0): it is renewed, and Covers() is false.
void LeaseKeeper::Keep(const std::string& uid) { Confirm(uid, Placement()); }

void LeaseKeeper::Withdraw(const std::string& uid) {
  confirmed_.erase(uid);
  fenced_.erase(uid);
  if (leases_.erase(uid) > 0) withdrawn_.insert(uid);
}

bool LeaseKeeper::Covers(const std::string& uid, Placement placement) const {
  if (!in_session_ || !is_ready() || !deadline_.has_value()) return false;
  if (BootNow() + kMargin >= *deadline_) return false;
  const auto found = confirmed_.find(uid);
  return found != confirmed_.end() && found->second == placement;
}

bool LeaseKeeper::IsArmed(const std::string& uid, Placement placement) const {
  return Covers(uid, placement) && leases_.contains(uid) && !fenced_.contains(uid);
}

rt::Task<Status> LeaseKeeper::Cover(std::string uid) {
  if (fencer_ == nullptr) co_return Unavailable("this host has no fencer");
  if (!deadline_.has_value() || !confirmed_.contains(uid)) {
    co_return Unavailable("no lease of this session covers it");
  }
  iri::LeaseRenewal renewal;
  renewal.machine_uids = {uid};
  // Dead by our own hand, and allowed again: an old lease is over before the new one begins.
  if (fenced_.contains(uid)) renewal.released_uids = {uid};
  CO_TRY_STATUS(co_await Send(std::move(renewal)));
  if (fenced_.contains(uid)) co_return Unavailable("its lease ran out before it began");
  co_return OkStatus();
}

rt::Task<Status> LeaseKeeper::RenewAll() {
  while (std::exchange(again_, false)) {
    iri::LeaseRenewal renewal;
    if (deadline_.has_value()) {
      for (const auto& [uid, _] : confirmed_) {
        if (!fenced_.contains(uid)) renewal.machine_uids.push_back(uid);
      }
    }
    renewal.released_uids.assign(withdrawn_.begin(), withdrawn_.end());
    const auto released = renewal.released_uids;
    const Status status = co_await Send(std::move(renewal));
    if (status.Is(Reason::kCancelled)) break;
    if (status.ok()) {
      for (const auto& uid : released) withdrawn_.erase(uid);
    }
  }
  renewing_ = false;
  co_return OkStatus();
}

rt::Task<Status> LeaseKeeper::Send(iri::LeaseRenewal renewal) {
  if (deadline_.has_value() && !renewal.machine_uids.empty()) {
    renewal.deadline = *deadline_ - Slept();
  }
  auto states = co_await fencer_->Renew(std::move(renewal));
  if (states.ok()) {
    problem_.clear();
    Learn(*states);
  } else if (!states.status().Is(Reason::kCancelled)) {
    if (problem_.empty()) LOG_WARNING("fencer: {}", states.status().message());
    problem_ = states.status().message();
  }
  co_return states.status();
}

void LeaseKeeper::Learn(const std::vector<iri::LeaseState>& states) {
  const std::set<std::string> before = std::exchange(fenced_, {});
  const std::map<std::string, Time> armed = std::exchange(leases_, {});
  for (const auto& state : states) {
    leases_[state.machine_uid] = state.deadline + Slept();
    if (state.fenced) fenced_.insert(state.machine_uid);
  }
  for (const auto& [uid, deadline] : leases_) {
    const bool is_news = fenced_.contains(uid) ? !before.contains(uid) : !armed.contains(uid);
    if (is_news) on_change_(uid);
  }
}

Duration LeaseKeeper::left() const {
  Duration longest;
  for (const auto& [uid, deadline] : leases_) {
    if (!fenced_.contains(uid)) longest = std::max(longest, deadline - BootNow());
  }
  return longest;
}

rt::Task<Status> LeaseKeeper::Close() { co_return co_await scope_.Close(); }

}  // namespace berth::poollet
