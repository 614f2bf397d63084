// SPDX-License-Identifier: Apache-2.0
// The LossJudge says what may be done about hosts that fell silent, and when (PROTOCOL §3). It is
// pure: it sees the pools, one for each host, and the time, and answers. It never says that
// something may be started elsewhere while it could still run where it was, provided that clock
// rates agree within 1 %, the fencer lives, and no host is frozen and thawed as a whole.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace berth::controller {

// One pool with a session, as it looks now.
struct PoolSight {
  std::string uid;
  std::string zone;  // "" without
  bool is_connected = false;
  Time silent_since;                  // when its last word came, if it is not connected
  std::optional<Time> planned_until;  // it said goodbye and comes back by then
  Time last_grant;                    // g(last)
  Duration lease;                     // L
};

struct LossOptions {
  // Of a pool with the shortest lease, 8 s; with a longer one both grow as it does, because hosts
  // need longer to come back to a server that has many.
  Duration grace = Duration::Seconds(6);
  Duration replace_after = Duration::Seconds(10);
  Duration kill_budget = Duration::Seconds(4);  // K
  // Loss of more than a third of the pools, and at least three, within a minute is a loss of the
  // network or of this server, not of hosts.
  size_t mass_min = 3;
  size_t mass_divisor = 3;
  Duration mass_window = Duration::Minutes(1);
  // Otherwise one pool after the other.
  Duration evacuation_pause = Duration::Seconds(2);
};

struct LossVerdict {
  std::vector<std::string> replace;  // pools whose objects may be replaced by new ones
  std::vector<std::string> fence;    // pools that must get no more grants: something is to be moved
  std::vector<std::string> move;     // pools whose Move guests are dead by now
  bool is_mass_loss = false;         // nothing is moved or replaced
  std::string mass_loss;             // for people: "7 of 12 pools of zone a fell silent"
  bool is_released = false;          // it would be one, but for an operator's word
};

class LossJudge {
 public:
  explicit LossJudge(LossOptions options = {}) : options_(options) {}

  // Called again and again, at least every grace time: a longer gap means that this server was
  // itself asleep, and then all silence is counted anew. `movable` are the pools that have anything
  // to be moved.
  LossVerdict Look(const std::vector<PoolSight>& pools,
                   const std::set<std::string>& movable,
                   Time now);

  // An earlier server had told this mass loss, and not its end. It goes on until every pool is
  // heard of, or was silent for its grace before this judge, too.
  void Resume(std::string mass_loss) { mass_loss_ = std::move(mass_loss); }

  // An operator says that the silent pools are really gone: the brake is off until contact returns.
  void OverrideMassLoss() { is_overridden_ = true; }

  // When Move guests of the pool are dead: not before g(last) + 1.02 L + K.
  Time DeadAt(const PoolSight& pool) const;

 private:
  Duration GraceOf(const PoolSight& pool) const;
  Duration ReplaceAfter(const PoolSight& pool) const;
  bool IsLost(const PoolSight& pool, Time now) const;
  bool IsUndecided(const PoolSight& pool, Time now) const;
  Time SilentSince(const PoolSight& pool) const;
  std::optional<std::string> FindMassLoss(const std::vector<PoolSight>& pools, Time now) const;
  bool MayEvacuate(const std::string& uid, Time now);

  const LossOptions options_;
  std::optional<Time> last_look_;
  Time awake_since_;       // silence before this does not count
  std::string mass_loss_;  // of the last look; "" without
  bool is_overridden_ = false;
  std::set<std::string> evacuated_;  // pools whose evacuation began
  std::optional<Time> last_evacuation_;
};

}  // namespace berth::controller
