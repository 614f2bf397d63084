// SPDX-License-Identifier: Apache-2.0
#include "controller/pool_loss/loss_judge.h"

#include <algorithm>
#include <utility>

namespace berth::controller {
namespace {

struct Count {
  size_t all = 0;
  size_t fresh = 0;  // fell silent within the window
  size_t lost = 0;
};

std::string Describe(const Count& count, const std::string& where) {
  return std::to_string(count.lost) + " of " + std::to_string(count.all) + " pools" + where +
         " fell silent";
}

bool IsAway(const PoolSight& pool, Time now) {
  return pool.planned_until && now < *pool.planned_until;
}

// 1 + 2 rho with clock rates that agree within 1 %: both clocks may be wrong.
Duration WithDrift(Duration lease) { return lease + lease / 50; }

}  // namespace

Time LossJudge::DeadAt(const PoolSight& pool) const {
  return pool.last_grant + WithDrift(pool.lease) + options_.kill_budget;
}

// 6 s of 8 s, as the gateway's grace.
Duration LossJudge::GraceOf(const PoolSight& pool) const {
  return std::max(options_.grace, pool.lease * 3 / 4);
}

// 10 s of 8 s.
Duration LossJudge::ReplaceAfter(const PoolSight& pool) const {
  return std::max(options_.replace_after, pool.lease * 5 / 4);
}

Time LossJudge::SilentSince(const PoolSight& pool) const {
  return std::max(pool.silent_since, awake_since_);
}

bool LossJudge::IsLost(const PoolSight& pool, Time now) const {
  if (pool.is_connected || IsAway(pool, now)) return false;
  return now - SilentSince(pool) >= GraceOf(pool);
}

// It may have been lost before this server was awake, or be about to speak.
bool LossJudge::IsUndecided(const PoolSight& pool, Time now) const {
  return !pool.is_connected && !IsAway(pool, now) && now - awake_since_ < GraceOf(pool);
}

std::optional<std::string> LossJudge::FindMassLoss(const std::vector<PoolSight>& pools,
                                                   Time now) const {
  Count everywhere;
  std::map<std::string, Count> zones;
  for (const PoolSight& pool : pools) {
    Count& zone = zones[pool.zone];
    ++everywhere.all;
    ++zone.all;
    if (!IsLost(pool, now)) continue;
    ++everywhere.lost;
    ++zone.lost;
    if (now - SilentSince(pool) > options_.mass_window + GraceOf(pool)) continue;
    ++everywhere.fresh;
    ++zone.fresh;
  }
  const auto is_mass = [this](size_t lost, size_t all) {
    return lost >= options_.mass_min && lost * options_.mass_divisor > all;
  };
  // A brake that is on stays on while too many are away, however long ago they left.
  const bool was_on = !mass_loss_.empty();
  if (is_mass(was_on ? everywhere.lost : everywhere.fresh, everywhere.all)) {
    return Describe(everywhere, "");
  }
  for (const auto& [name, zone] : zones) {
    if (!is_mass(was_on ? zone.lost : zone.fresh, zone.all)) continue;
    return Describe(zone, name.empty() ? " without a zone" : " of zone " + name);
  }
  const auto is_undecided = [&](const PoolSight& pool) { return IsUndecided(pool, now); };
  if (was_on && std::ranges::any_of(pools, is_undecided)) return mass_loss_;
  return std::nullopt;
}

// One pool at a time, but a pool whose evacuation began goes on.
bool LossJudge::MayEvacuate(const std::string& uid, Time now) {
  if (evacuated_.contains(uid)) return true;
  if (last_evacuation_ && now - *last_evacuation_ < options_.evacuation_pause) return false;
  last_evacuation_ = now;
  evacuated_.insert(uid);
  return true;
}

LossVerdict LossJudge::Look(const std::vector<PoolSight>& pools,
                            const std::set<std::string>& movable,
                            Time now) {
  // The first look is a start: whatever was silent before may have spoken to nobody.
  if (!last_look_ || now - *last_look_ > options_.grace) awake_since_ = now;
  last_look_ = now;
  LossVerdict verdict;
  const std::optional<std::string> mass = FindMassLoss(pools, now);
  mass_loss_ = mass.value_or(std::string());
  if (!mass) is_overridden_ = false;
  if (mass && !is_overridden_) {
    verdict.is_mass_loss = true;
    verdict.mass_loss = *mass;
    return verdict;
  }
  verdict.is_released = mass.has_value();
  for (const PoolSight& pool : pools) {
    if (!IsLost(pool, now)) {
      evacuated_.erase(pool.uid);
      continue;
    }
    if (now - SilentSince(pool) < ReplaceAfter(pool)) continue;
    if (!MayEvacuate(pool.uid, now)) continue;
    verdict.replace.push_back(pool.uid);
    if (!movable.contains(pool.uid)) continue;
    verdict.fence.push_back(pool.uid);
    if (now >=
        std::max(DeadAt(pool), awake_since_ + WithDrift(pool.lease) + options_.kill_budget)) {
      verdict.move.push_back(pool.uid);
    }
  }
  return verdict;
}

}  // namespace berth::controller
