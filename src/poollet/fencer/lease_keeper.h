// SPDX-License-Identifier: Apache-2.0
// A LeaseKeeper passes the server's grants on to the fencer. A grant for heartbeat n is good until
// h(n) + L, and only for guests whose placement the server has confirmed on the present session:
// a guest whose move is being committed is not revived by a grant to its host (PROTOCOL 3.3).
//
// h(n) and every deadline here are on a clock that counts while the host sleeps: the loop's and the
// time that was slept through. So a host that was suspended never believes in a lease for longer
// than its server does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "poollet/fencer/fencer.h"
#include "poollet/record/state.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/scope.h"

namespace berth::poollet {

class LeaseKeeper {
 public:
  // Less than this is no time to start anything in.
  static constexpr Duration kMargin = Duration::Millis(500);

  // `fencer` may be null: then there are no leases. `on_change` hears of uids whose lease began or
  // that were fenced. `slept` says how long the host has slept since it was booted; it may be null
  // where hosts do not sleep.
  LeaseKeeper(rt::Loop& loop,
              Fencer* fencer,
              std::function<void(const std::string&)> on_change,
              std::function<Duration()> slept = nullptr);

  // Asks the fencer whether it is there, and what it knows. Repeated by every grant.
  rt::Task<Status> Probe();

  void SessionBegan();
  void SessionEnded();
  void HeartbeatSent(uint64_t number);
  void Granted(uint64_t number, Duration ttl);
  // The server said on this session that the guest may go on here.
  void Confirm(const std::string& uid, Placement placement);
  // The same for a guest that runs, but it may not be started.
  void Keep(const std::string& uid);
  // It is not under a lease any more: gone, or not to be moved.
  void Withdraw(const std::string& uid);

  // P7.
  bool Covers(const std::string& uid, Placement placement) const;
  // The same, and the fencer has said that it would kill the guest in time.
  bool IsArmed(const std::string& uid, Placement placement) const;
  // The fencer has the guest's deadline; a guest that was fenced begins a new lease.
  rt::Task<Status> Cover(std::string uid);

  // The runtime has something new to show.
  void GuestsChanged() {
    if (fencer_ != nullptr) fencer_->GuestsChanged();
  }

  // How long the longest lease still runs.
  Duration left() const;
  bool is_ready() const { return fencer_ != nullptr && problem_.empty(); }
  const std::string& problem() const { return problem_; }
  bool IsFenced(const std::string& uid) const { return fenced_.contains(uid); }

  rt::Task<Status> Close();

 private:
  Duration Slept() const { return slept_ ? slept_() : Duration(); }
  Time BootNow() const { return loop_.Now() + Slept(); }
  rt::Task<Status> RenewAll();
  // Sets the deadline, of the newest grant, in the words of the loop's clock.
  rt::Task<Status> Send(iri::LeaseRenewal renewal);
  void Learn(const std::vector<iri::LeaseState>& states);

  rt::Loop& loop_;
  Fencer* const fencer_;
  const std::function<void(const std::string&)> on_change_;
  const std::function<Duration()> slept_;
  bool in_session_ = false;
  std::map<uint64_t, Time> sent_;  // h(n) of heartbeats that have no grant yet
  std::optional<Time> deadline_;   // of the newest grant of this session
  std::map<std::string, Placement, std::less<>> confirmed_;
  std::set<std::string> withdrawn_;
  std::set<std::string> fenced_;
  std::map<std::string, Time> leases_;  // as the fencer last said
  std::string problem_ = "the fencer has not answered yet";
  bool renewing_ = false;
  bool again_ = false;
  rt::TaskScope scope_;
};

}  // namespace berth::poollet
