// SPDX-License-Identifier: Apache-2.0
// A slow scheduler that is obviously right: plain structs, no index, every question answered by
// looking at everything. The board must agree with it in every decision.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/core/answers.h"
#include "scheduler/core/pool.h"
#include "scheduler/core/reference_room.h"
#include "scheduler/core/request.h"

namespace berth::scheduler {

struct ReferencePool {
  PoolSpec spec;
  std::optional<Resources> report;
  LedgerVersion version;
  Time avoid_until;
};

struct ReferenceObject {
  Requirements requirements;
  Request request;
  size_t pool = 0;
  bool is_confirmed = false;
  bool is_counted_by_host = false;
  std::optional<LedgerVersion> held;
  std::optional<ObjectKey> inside;  // the reservation that pays for it
};

class ReferenceBoard : public ReferenceRoom {
 public:
  explicit ReferenceBoard(uint64_t seed) : seed_(seed) {}

  std::map<size_t, ReferencePool> pools;
  std::map<ObjectKey, ReferenceObject> objects;
  Time now;
  size_t slots = 0;  // highest index ever used, plus one
  std::set<std::string> resources = {"cpu", "memory", "storage"};  // that any pool ever had

  // ---- Rules, word by word as in words.h.
  std::optional<Rule> FirstFailure(const Request& request,
                                   const Requirements& r,
                                   size_t pool) const {
    if (const auto rule = FailureBeforeRoom(request, r, pool)) return rule;
    const PoolSpec& spec = pools.at(pool).spec;
    if (!request.reservation.empty()) {
      if (!ReservedAt(request, r, pool)) return Rule::kReservation;
    } else {
      if (!Fits(Demand(r, spec), Unpromised(pool))) return Rule::kRoom;
      if (!Fits(Demand(r, spec), Free(pool))) return Rule::kHostRoom;
    }
    return FailureAfterRoom(request, r, pool);
  }
  std::optional<Rule> FailureBeforeRoom(const Request& request,
                                        const Requirements& r,
                                        size_t pool) const {
    const PoolSpec& spec = pools.at(pool).spec;
    if (request.pinned && ToSize(*request.pinned) != pool) return Rule::kPinned;
    if (!request.among.empty() &&
        std::ranges::count(request.among, PoolIndex{static_cast<uint32_t>(pool)}) == 0) {
      return Rule::kPinned;
    }
    if (!spec.state.is_ready) return Rule::kNotReady;
    if (!spec.state.has_session) return Rule::kNoSession;
    if (spec.state.is_deleting) return Rule::kDeleting;
    if (spec.state.is_cordoned) return Rule::kCordoned;
    for (const auto& taint : spec.taints)
      if (taint.effect != TaintEffect::kPreferNoSchedule && !IsTolerated(taint, r.tolerations))
        return Rule::kTaint;
    if (!r.pools.Matches(spec.labels)) return Rule::kSelector;
    if (!Offers(spec, r.class_name)) return Rule::kClass;
    if (r.needs_fence && !spec.state.is_fence_ready) return Rule::kFence;
    return std::nullopt;
  }
  std::optional<Rule> FailureAfterRoom(const Request& request,
                                       const Requirements& r,
                                       size_t pool) const {
    for (const PoolIndex volume_pool : request.bound_volumes)
      if (!pools.contains(ToSize(volume_pool)) || !Reaches(ToSize(volume_pool), pool))
        return Rule::kVolumeReach;
    if (!request.joint.empty() && !VolumesAt(request, pool)) return Rule::kJointVolume;
    for (const auto& company : r.affinity) {
      int64_t everywhere = 0;
      for (const auto& [other, unused] : pools)
        if (DomainOf(company.topology_key, other)) everywhere += CountOn(company, r, other);
      const auto domain = DomainOf(company.topology_key, pool);
      const bool is_first = everywhere == 0 && domain && Counts(company, r, r);
      if (!is_first && CountAround(company, r, pool) == 0) return Rule::kAffinity;
    }
    for (const auto& company : r.anti_affinity)
      if (CountAround(company, r, pool) > 0) return Rule::kAntiAffinity;
    for (const auto& [key, object] : objects)
      for (const auto& company : object.requirements.anti_affinity)
        if (Counts(company, object.requirements, r) &&
            SameDomain(company.topology_key, pool, object.pool))
          return Rule::kAntiAffinity;
    for (const auto& rule : r.spread)
      if (rule.otherwise == SpreadRule::Otherwise::kDoNotSchedule && BreaksSpread(rule, r, pool))
        return Rule::kSpread;
    for (const PoolIndex refused : request.refused)
      if (ToSize(refused) == pool) return Rule::kRefused;
    return std::nullopt;
  }

  // ---- Ranking.
  std::vector<Candidate> Decide(const Request& request, const Requirements& r) const {
    std::vector<Candidate> ranked;
    for (const auto& [pool, entry] : pools) {
      if (entry.spec.kind != r.kind || FirstFailure(request, r, pool)) continue;
      Candidate candidate{.pool = PoolIndex{static_cast<uint32_t>(pool)}};
      candidate.tier = TierOf(r, pool);
      candidate.points = PointsOf(r, pool);
      candidate.level = LevelOf(r, pool);
      if (!request.reservation.empty()) candidate.reservation = *ReservedAt(request, r, pool);
      if (!request.joint.empty()) candidate.joint = *VolumesAt(request, pool);
      ranked.push_back(candidate);
    }
    const bool is_few = request.pinned || !request.among.empty() || !request.reservation.empty();
    const size_t start = is_few ? 0 : Start(request, r);
    const size_t chunks = (slots + 63) / 64;
    const auto order = [&](PoolIndex pool) {
      const size_t p = ToSize(pool);
      return std::pair((p / 64 + chunks - start / 64) % chunks, (p % 64 + 64 - start % 64) % 64);
    };
    std::ranges::sort(ranked, [&](const Candidate& a, const Candidate& b) {
      if (a.tier != b.tier) return a.tier < b.tier;
      if (a.points != b.points) return a.points > b.points;
      if (a.level != b.level) return a.level > b.level;
      return order(a.pool) < order(b.pool);
    });
    return ranked;
  }

  ReferenceObject& Assume(const Request& request, const Requirements& r, const Candidate& chosen) {
    ReferenceObject object{.requirements = r, .request = request, .pool = ToSize(chosen.pool)};
    if (!request.reservation.empty()) object.inside = chosen.reservation;
    for (size_t i = 0; i < request.joint.size(); ++i)
      objects[request.joint[i].key] = {.requirements = RequirementsOf(request.joint[i].shape),
                                       .request = request.joint[i],
                                       .pool = ToSize(chosen.joint[i])};
    return objects[request.key] = object;
  }

  // ---- Volumes that are placed with a machine.
  // A pool for each of them, if the machine is on this one: of all ways that leave no pool without
  // room, the first one.
  std::optional<std::vector<PoolIndex>> VolumesAt(const Request& machine, size_t pool) const {
    std::vector<std::vector<Candidate>> options;
    std::map<size_t, Resources> room;
    for (const Request& volume : machine.joint) {
      options.push_back(PoolsOf(volume, pool));
      for (const Candidate& option : options.back())
        room[ToSize(option.pool)] = Free(ToSize(option.pool));
    }
    std::vector<PoolIndex> chosen;
    if (!FillIn(machine, options, room, chosen)) return std::nullopt;
    return chosen;
  }

  // ---- Room.
  Resources Unpromised(size_t pool) const {
    Resources free = Capacity(pools.at(pool).spec);
    for (const auto& [key, object] : objects)
      if (object.pool == pool && !object.inside) Subtract(free, object, pool);
    return free;
  }
  Resources Free(size_t pool) const {
    const ReferencePool& entry = pools.at(pool);
    Resources free = Unpromised(pool);
    if (!entry.report) return free;
    Resources said = *entry.report;
    if (!entry.spec.class_counts.empty()) {
      const auto share = entry.report->find(std::string(kShareResource));
      if (share == entry.report->end()) return free;
      const long double parts = static_cast<long double>(share->second) *
                                static_cast<long double>(Whole(entry.spec)) / kReportedWhole;
      said = {{"share", static_cast<int64_t>(std::floor(parts))}};
    }
    Resources host = said;
    for (const auto& [key, object] : objects)
      if (object.pool == pool && !object.inside && !object.is_counted_by_host)
        Subtract(host, object, pool);
    for (const auto& [name, amount] : said)
      if (free.contains(name)) free[name] = std::min(free[name], host[name]);
    return free;
  }

  std::optional<ObjectKey> ReservedAt(const Request& request,
                                      const Requirements& r,
                                      size_t pool) const {
    for (const ObjectKey& key : request.reservation) {
      const auto copy = objects.find(key);
      if (copy == objects.end() || copy->second.pool != pool) continue;
      const bool is_taken = std::ranges::any_of(objects, [&](const auto& entry) {
        return entry.second.inside == key && entry.first != request.key;
      });
      const PoolSpec& spec = pools.at(pool).spec;
      if (!is_taken && !copy->second.inside &&
          Fits(Demand(r, spec), Demand(copy->second.requirements, spec)))
        return key;
    }
    return std::nullopt;
  }

 private:
  bool Reaches(size_t volume_pool, size_t machine_pool) const {
    const PoolSpec& spec = pools.at(volume_pool).spec;
    const auto same = [&](const std::string& label) {
      const auto domain = DomainOf(label, volume_pool);
      return domain && domain == DomainOf(label, machine_pool);
    };
    const auto has_region = [&](size_t pool) { return DomainOf(kRegion, pool).has_value(); };
    if (SameDomain(std::string(kHostTopology), volume_pool, machine_pool)) return true;
    const bool may_be_one_region = !has_region(volume_pool) && !has_region(machine_pool);
    switch (spec.reach) {
      case Reach::kHost: return false;
      case Reach::kZone: return same(kZone) && (same(kRegion) || may_be_one_region);
      case Reach::kRegion: return same(kRegion);
      case Reach::kAny: return true;
    }
    return false;
  }
  // Where the volume could go by itself, best first.
  std::vector<Candidate> PoolsOf(const Request& volume, size_t machine_pool) const {
    const Requirements& r = RequirementsOf(volume.shape);
    std::vector<Candidate> found;
    for (const auto& [pool, entry] : pools) {
      if (entry.spec.kind != r.kind || FirstFailure(volume, r, pool)) continue;
      if (!Reaches(pool, machine_pool)) continue;
      found.push_back({.pool = PoolIndex{static_cast<uint32_t>(pool)},
                       .tier = TierOf(r, pool),
                       .level = LevelOf(r, pool),
                       .points = PointsOf(r, pool)});
    }
    std::ranges::sort(found, [](const Candidate& a, const Candidate& b) {
      if (a.tier != b.tier) return a.tier < b.tier;
      if (a.points != b.points) return a.points > b.points;
      if (a.level != b.level) return a.level > b.level;
      return a.pool < b.pool;
    });
    return found;
  }
  bool FillIn(const Request& machine,
              const std::vector<std::vector<Candidate>>& options,
              std::map<size_t, Resources> room,
              std::vector<PoolIndex>& chosen) const {
    const size_t next = chosen.size();
    if (next == options.size()) return true;
    const Requirements& r = RequirementsOf(machine.joint[next].shape);
    for (const Candidate& option : options[next]) {
      const size_t pool = ToSize(option.pool);
      const Resources demand = Demand(r, pools.at(pool).spec);
      if (!Fits(demand, room.at(pool))) continue;
      std::map<size_t, Resources> left = room;
      for (const auto& [name, amount] : demand) left[pool][name] -= amount;
      chosen.push_back(option.pool);
      if (FillIn(machine, options, left, chosen)) return true;
      chosen.pop_back();
    }
    return false;
  }
  void Subtract(Resources& from, const ReferenceObject& object, size_t pool) const {
    for (const auto& [name, amount] : Demand(object.requirements, pools.at(pool).spec))
      from[name] -= amount;
  }
  std::optional<std::string> DomainOf(const std::string& key, size_t pool) const {
    const PoolSpec& spec = pools.at(pool).spec;
    if (key == kPoolTopology) return std::to_string(pool);
    if (key == kHostTopology || key == kNodeTopology)
      return spec.host.empty() ? "alone " + std::to_string(pool) : spec.host;
    const auto found = spec.labels.find(key);
    if (found == spec.labels.end()) return std::nullopt;
    return found->second;
  }
  bool SameDomain(const std::string& key, size_t a, size_t b) const {
    const auto domain = DomainOf(key, a);
    return domain && domain == DomainOf(key, b);
  }
  // Whether the company that `asker` describes includes `other`.
  static bool Counts(const Company& company, const Requirements& asker, const Requirements& other) {
    if (asker.kind != other.kind || !company.selector.Matches(other.labels)) return false;
    if (company.namespaces.empty()) return asker.namespace_name == other.namespace_name;
    return std::ranges::find(company.namespaces, other.namespace_name) != company.namespaces.end();
  }
  int64_t CountOn(const Company& company, const Requirements& asker, size_t pool) const {
    return std::ranges::count_if(objects, [&](const auto& entry) {
      return entry.second.pool == pool && Counts(company, asker, entry.second.requirements);
    });
  }
  int64_t CountAround(const Company& company, const Requirements& asker, size_t pool) const {
    int64_t count = 0;
    for (const auto& [other, unused] : pools)
      if (SameDomain(company.topology_key, pool, other)) count += CountOn(company, asker, other);
    return count;
  }
  bool BreaksSpread(const SpreadRule& rule, const Requirements& r, size_t pool) const {
    if (!DomainOf(rule.company.topology_key, pool)) return true;
    std::optional<int64_t> least;
    for (const auto& [other, entry] : pools) {
      const PoolState& state = entry.spec.state;
      const bool is_usable =
          state.is_ready && state.has_session && !state.is_cordoned && !state.is_deleting;
      bool is_tainted = false;
      for (const auto& taint : entry.spec.taints)
        if (taint.effect != TaintEffect::kPreferNoSchedule && !IsTolerated(taint, r.tolerations))
          is_tainted = true;
      if (entry.spec.kind != r.kind || !is_usable || is_tainted) continue;
      if (!r.class_name.empty() && !Offers(entry.spec, r.class_name)) continue;
      if (!r.pools.Matches(entry.spec.labels)) continue;
      if (!DomainOf(rule.company.topology_key, other)) continue;
      const int64_t count = CountAround(rule.company, r, other);
      least = std::min(least.value_or(count), count);
    }
    const int64_t self = Counts(rule.company, r, r) ? 1 : 0;
    return CountAround(rule.company, r, pool) + self - least.value_or(0) > rule.max_skew;
  }

  Tier TierOf(const Requirements& r, size_t pool) const {
    if (pools.at(pool).avoid_until > now) return Tier::kAvoided;
    for (const auto& taint : pools.at(pool).spec.taints)
      if (taint.effect == TaintEffect::kPreferNoSchedule && !IsTolerated(taint, r.tolerations))
        return Tier::kPreferNot;
    return Tier::kWilling;
  }
  int32_t PointsOf(const Requirements& r, size_t pool) const {
    int64_t points = 0;
    for (const auto& preferred : r.preferred_company)
      if (CountAround(preferred.company, r, pool) > 0) points += preferred.weight;
    for (const auto& preferred : r.preferred_pools)
      if (preferred.selector.Matches(pools.at(pool).spec.labels)) points += preferred.weight;
    for (const auto& rule : r.spread) {
      if (rule.otherwise != SpreadRule::Otherwise::kScheduleAnyway) continue;
      if (DomainOf(rule.company.topology_key, pool)) {
        points -= CountAround(rule.company, r, pool);
      } else {
        for (const auto& [other, unused] : pools)
          if (DomainOf(rule.company.topology_key, other)) points -= CountOn(rule.company, r, other);
      }
    }
    return static_cast<int32_t>(points);
  }
  // The policies as words.h describes them, over what would be left.
  uint8_t LevelOf(const Requirements& r, size_t pool) const {
    const PoolSpec& spec = pools.at(pool).spec;
    const Resources free = Free(pool);
    const Resources demand = Demand(r, spec);
    // Sums go by dimension modulo 4, so that their last bit is the same.
    const std::vector<std::string> names = {"share", "cpu", "memory", "storage", "gpu"};
    std::array<float, 4> sums{};
    float largest = 0, smallest = 1, scarcest = 1, width = 0;
    for (size_t d = 0; d < names.size(); ++d) {
      const Resources all = Capacity(spec);
      if (!all.contains(names[d]) || all.at(names[d]) == 0) continue;
      const int64_t asked = demand.contains(names[d]) ? demand.at(names[d]) : 0;
      const float scale = 1 / static_cast<float>(all.at(names[d]));
      const float used = static_cast<float>(asked) * scale;
      const float rest = static_cast<float>(free.at(names[d])) * scale - used;
      sums[d % 4] += rest;
      largest = std::max(largest, rest);
      smallest = std::min(smallest, rest);
      if (asked > 0) scarcest = std::min(scarcest, rest);
      width += 1;
    }
    const float mean = ((sums[0] + sums[2]) + (sums[1] + sums[3])) * (1 / std::max(1.0F, width));
    float score = 0;
    if (r.policy == Policy::kBinpack) score = 1 - (0.5F * mean + 0.5F * largest);
    if (r.policy == Policy::kSpread) score = scarcest;
    if (r.policy == Policy::kBalanced) score = 0.75F * (1 - (largest - smallest)) + 0.25F * mean;
    return static_cast<uint8_t>(1 +
                                static_cast<int>((kLevelMax - 1) * std::clamp(score, 0.0F, 1.0F)));
  }
  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  size_t Start(const Request& request, const Requirements& r) const {
    if (r.policy == Policy::kBinpack || slots == 0) return 0;
    return Mix(seed_ ^ Mix(request.key.high ^ request.key.low)) % slots;
  }

  inline static const std::string kZone = BoardOptions().zone_label;
  inline static const std::string kRegion = BoardOptions().region_label;
  uint64_t seed_;
};

}  // namespace berth::scheduler
