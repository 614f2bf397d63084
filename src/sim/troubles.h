// SPDX-License-Identifier: Apache-2.0
// What goes wrong in a simulated world: at any time, by rates, and at certain moments, by chances.
// It also knows which sequence of the placement protocol (2.4) it has just brought about.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/moments.h"
#include "sim/users.h"
#include "sim/world.h"

namespace berth::sim {

class Troubles final : public Moments {
 public:
  Troubles(World& world, Users& users)
      : world_(world), users_(users), random_(world.seed() ^ 0x74726f75626c65ULL) {}

  void Begin();
  // Everything is healed and runs again, but for what is gone for good.
  void End();
  HostProcess::Hooks HooksFor(size_t host);
  bool IsGone(const HostProcess& host) const { return gone_.contains(host.index()); }

 private:
  // What became of an offer that a host said yes to.
  struct Accepted {
    std::string pool_uid;
    Time at;
  };
  struct Moved {
    size_t host = 0;
    bool had_copy = false;
  };

  // Moments.
  void Offered(const fleet::Offer& offer) override;
  void Answered(const fleet::Offer& offer, const fleet::Answer& answer) override;
  BindFault BindBegins(const std::vector<client::BindRequest>& requests) override;
  void BindEnded(const client::BindRequest& request,
                 const Status& verdict,
                 Duration slept) override;
  void UnbindBegins(const client::UnbindRequest& request) override;
  void Unbound(const client::UnbindRequest& request, const Status& verdict) override;
  void Preempting(const std::string& uid) override;
  void MoveClaimed(const std::string& uid, bool is_claimed) override;
  void Touched(size_t host, const runtime::FakeHostState::Touched& what);

  // At any time.
  void Repeat(double per_minute, void (Troubles::*act)());
  void CrashSomePoollet();
  void LoseSomePoollet();
  void TurnOffGone();
  static void TurnOff(HostProcess& host);
  void CutSomePower();
  void PauseSomePoollet();
  void PauseServer();
  void CutServer();
  void LoseLeader(Seat& seat);
  void CutOffSome();
  void SlowSomeLink();
  void DropSomeConnection();
  void CrashSomeRuntime();
  void LetSomeRuntimeLie();
  static void BeHonest(HostProcess& host);
  void FailSomeDisk();
  void StopSome(poollet::LeaveMode mode);
  void DrainSomeHost() { StopSome(poollet::LeaveMode::kDrain); }
  void StopSomeHost() { StopSome(poollet::LeaveMode::kKeep); }
  void SecondLeader();
  void Backup();
  void Restore();
  void RebirthOfAPool();
  void CrashServerNow() { CrashServer("crashes"); }
  void Look();  // every second: which branches were reached

  void CrashServer(std::string_view when);
  void NoteServerDeath(ServerProcess& server);
  void CrashPoollet(size_t host, std::string_view when);
  void CutOff(HostProcess& host, Duration time);
  void Reconnect(const HostProcess& host);
  HostProcess* PickHost();
  Duration Between(int64_t low_ms, int64_t high_ms) {
    return Duration::Millis(random_.Between(low_ms, high_ms));
  }
  bool Chance(double chance) { return is_on_ && chance > 0 && random_.Chance(chance); }
  std::string NameOf(const std::string& uid) const;
  bool IsProbe(const std::string& uid) const;
  bool IsInGroup(const std::string& uid) const;
  static bool HasCopy(HostProcess& host, const std::string& uid);

  World& world_;
  Users& users_;
  Random random_;
  bool is_on_ = false;
  std::set<size_t> gone_;
  std::set<size_t> cut_off_;
  std::map<std::string, Accepted> accepted_;      // by UID, until the bind begins
  std::map<std::string, std::string> no_answer_;  // UID to the pool that was silent
  std::map<std::string, Time> bound_;             // UID to when, the last ones
  std::set<std::string> spoilt_;                  // UIDs that were changed before their bind
  std::set<std::string> died_holding_;            // pools whose poollet died with holds
  std::map<std::string, Moved> leaving_;          // by UID: an unbind is under way
  std::map<std::string, Moved> moved_;            // by UID
  std::set<std::string> slowed_;                  // pools whose move was made slow
  int64_t term_ = 0;                              // the highest seen
  int reborn_ = 0;
  std::set<std::string> known_;  // runtime ids of machines
};

}  // namespace berth::sim
