// SPDX-License-Identifier: Apache-2.0
// The rules, one pool at a time: what Explain counts, what Admits answers, and what the masks of
// decide.cc must agree with.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "scheduler/core/internal/state.h"

namespace berth::scheduler {
namespace {

// How many matches a domain may have before one more breaks the rule. Domains that count are those
// in which the request could be placed if there were room: a zone that is down, or that the
// selector rules out, must not hold the others back.
int64_t LimitOf(const SpreadRule& rule,
                const CompanyTerm& term,
                const Requirements& requirements,
                const Bitmap& eligible) {
  int64_t least = std::numeric_limits<int64_t>::max();
  const Bitmap& present = term.topology->present;
  for (size_t w = 0; w < eligible.words() && least > 0; ++w) {
    const uint64_t here = eligible.word(w) & present.word(w);
    if ((here & ~term.occupied.word(w)) != 0) {
      least = 0;
      break;
    }
    for (uint64_t bits = here; bits != 0; bits &= bits - 1) {
      const size_t pool = w * kWordBits + static_cast<size_t>(std::countr_zero(bits));
      least = std::min<int64_t>(least, term.MatchesAt(pool));
    }
  }
  if (least == std::numeric_limits<int64_t>::max()) least = 0;
  const int64_t self = term.Counts(requirements) ? 1 : 0;
  return least + std::max(1, rule.max_skew) - self;
}

bool HasAffinity(const CompanyTerm& term, const Requirements& requirements, size_t pool) {
  if (term.occupied.Test(pool)) return true;
  // The first of a group that wants to be together has nobody to join.
  return term.total_matches == 0 && term.topology->present.Test(pool) && term.Counts(requirements);
}

// Whether a copy of `held` keeps what `wanted` asks for of resources that no pool has ever had: it
// may have been told to keep them all the same.
bool HoldsUnknown(const CompiledShape& held, const CompiledShape& wanted) {
  return std::ranges::all_of(wanted.unknown, [&](const std::string& name) {
    const Resources& kept = held.requirements.resources;
    const auto found = kept.find(name);
    return found != kept.end() && found->second >= wanted.requirements.resources.at(name);
  });
}

}  // namespace

Inquiry BoardState::Inquire(const Request& request) {
  CHECK(request.shape != nullptr) << "a request needs a shape";
  CompiledShape& shape = *request.shape;
  const Requirements& requirements = shape.requirements;
  Compile(shape);
  RefreshCounts(shape);
  Inquiry inquiry{.request = request, .shape = shape};
  inquiry.taints = &views.Untolerated(shape.taint_view, requirements.tolerations);
  if (!requirements.pools.terms.empty())
    inquiry.matching = &views.Matching(shape.pool_view, requirements.pools);
  for (size_t i = 0; i < requirements.preferred_pools.size(); ++i)
    inquiry.preferred_views.push_back(
        &views.Matching(shape.preferred_views[i], requirements.preferred_pools[i].selector));
  if (!requirements.spread.empty()) {
    Bitmap eligible = pools.usable(requirements.kind);
    if (shape.class_id != 0) {
      Bitmap offering;
      offering.Resize(pools.words());
      pools.offers(shape.class_id).OrInto(offering);
      for (size_t w = 0; w < eligible.words(); ++w) eligible.word(w) &= offering.word(w);
    }
    for (size_t w = 0; w < eligible.words(); ++w) {
      eligible.word(w) &= ~inquiry.taints->hard.word(w);
      if (inquiry.matching != nullptr) eligible.word(w) &= inquiry.matching->word(w);
    }
    for (size_t i = 0; i < requirements.spread.size(); ++i) {
      const SpreadRule& rule = requirements.spread[i];
      if (rule.otherwise != SpreadRule::Otherwise::kDoNotSchedule) continue;
      const CompanyTerm& term = *shape.spread[i];
      inquiry.spread.push_back(
          {.term = &term, .limit = LimitOf(rule, term, requirements, eligible)});
    }
  }
  if (!request.joint.empty()) {
    inquiry.joint = RankJoint(request);
    inquiry.joint_answers = NoAnswersYet(inquiry.joint);
  }
  return inquiry;
}

bool BoardState::IsRefused(const Request& request, size_t pool) const {
  return std::ranges::find(request.refused, PoolIndex{static_cast<uint32_t>(pool)}) !=
         request.refused.end();
}

bool BoardState::Reaches(size_t volume_pool, size_t machine_pool) const {
  const PoolSpec& from = pools.spec(volume_pool);
  const PoolSpec& to = pools.spec(machine_pool);
  // Places are the same if both name one and it is the same one.
  const auto same = [&](const std::string& label) {
    const auto a = from.labels.find(label);
    const auto b = to.labels.find(label);
    return a != from.labels.end() && b != to.labels.end() && a->second == b->second;
  };
  const auto has = [&](const PoolSpec& spec, const std::string& label) {
    return spec.labels.contains(label);
  };
  // A host is in its own zone and region, also when nobody has said which these are.
  if (pools.host_of(volume_pool) == pools.host_of(machine_pool)) return true;
  switch (from.reach) {
    case Reach::kAny: return true;
    case Reach::kHost: return false;
    case Reach::kRegion: return same(options.region_label);
    case Reach::kZone:
      // Zones of different regions may have the same name.
      return same(options.zone_label) &&
             (same(options.region_label) ||
              (!has(from, options.region_label) && !has(to, options.region_label)));
  }
  return false;
}

const Placed* BoardState::ReservedAt(const Inquiry& inquiry, size_t pool) const {
  for (const ObjectKey& key : inquiry.request.reservation) {
    const Placed* copy = objects.Find(key);
    if (copy == nullptr || copy->pool != pool || !copy->is_charged) continue;
    const Placed* consumer = objects.ConsumerOf(*copy);
    if (consumer != nullptr && consumer->key != inquiry.request.key) continue;
    // It must fit inside: in every dimension at most what the copy holds.
    std::array<int64_t, kDimensionsMax> held{};
    pools.ForEachDemand(*copy->shape, pool, [&](size_t d, int64_t amount) { held[d] = amount; });
    bool fits = pools.is_counted(pool) || HoldsUnknown(*copy->shape, inquiry.shape);
    pools.ForEachDemand(
        inquiry.shape, pool, [&](size_t d, int64_t amount) { fits = fits && amount <= held[d]; });
    if (fits) return copy;
  }
  return nullptr;
}

std::optional<Rule> BoardState::FirstFailure(const Inquiry& inquiry, size_t pool, RoomCheck room) {
  const Request& request = inquiry.request;
  const CompiledShape& shape = inquiry.shape;
  const PoolState& state = pools.spec(pool).state;
  if (request.pinned && ToSize(*request.pinned) != pool) return Rule::kPinned;
  if (!request.among.empty() &&
      std::ranges::find(request.among, pool, ToSize) == request.among.end())
    return Rule::kPinned;
  if (!state.is_ready) return Rule::kNotReady;
  if (!state.has_session) return Rule::kNoSession;
  if (state.is_deleting) return Rule::kDeleting;
  if (state.is_cordoned) return Rule::kCordoned;
  if (inquiry.taints->hard.Test(pool)) return Rule::kTaint;
  if (inquiry.matching != nullptr && !inquiry.matching->Test(pool)) return Rule::kSelector;
  if (!pools.Offers(pool, shape.class_id)) return Rule::kClass;
  if (shape.requirements.needs_fence && !state.is_fence_ready) return Rule::kFence;
  if (!request.reservation.empty()) {
    if (ReservedAt(inquiry, pool) == nullptr) return Rule::kReservation;
  } else if (room == RoomCheck::kAsked && !pools.HasRoom(shape, pool)) {
    bool is_promised = shape.unknown.empty() || pools.is_counted(pool);
    pools.ForEachDemand(shape, pool, [&](size_t d, int64_t amount) {
      is_promised = is_promised && pools.unpromised(pool, d) >= amount;
    });
    return is_promised ? Rule::kHostRoom : Rule::kRoom;
  }
  for (const PoolIndex volume_pool : request.bound_volumes) {
    if (!pools.IsLive(ToSize(volume_pool)) || !Reaches(ToSize(volume_pool), pool))
      return Rule::kVolumeReach;
  }
  if (!inquiry.joint.empty() && !AssignJoint(inquiry, pool, nullptr)) return Rule::kJointVolume;
  for (const auto& term : shape.affinity)
    if (!HasAffinity(*term, shape.requirements, pool)) return Rule::kAffinity;
  for (const auto& term : shape.anti_affinity)
    if (term->occupied.Test(pool)) return Rule::kAntiAffinity;
  for (const auto* term : shape.counted_by)
    if (term->refused.Test(pool)) return Rule::kAntiAffinity;
  for (const auto& [term, limit] : inquiry.spread)
    if (!term->topology->present.Test(pool) || term->MatchesAt(pool) > limit) return Rule::kSpread;
  if (IsRefused(request, pool)) return Rule::kRefused;
  return std::nullopt;
}

int32_t BoardState::PointsOf(const Inquiry& inquiry, size_t pool) const {
  const CompiledShape& shape = inquiry.shape;
  const Requirements& requirements = shape.requirements;
  int64_t points = 0;
  for (size_t i = 0; i < requirements.preferred_company.size(); ++i)
    if (shape.preferred[i]->occupied.Test(pool)) points += requirements.preferred_company[i].weight;
  for (size_t i = 0; i < requirements.preferred_pools.size(); ++i)
    if (inquiry.preferred_views[i]->Test(pool)) points += requirements.preferred_pools[i].weight;
  for (size_t i = 0; i < requirements.spread.size(); ++i) {
    if (requirements.spread[i].otherwise != SpreadRule::Otherwise::kScheduleAnyway) continue;
    // A pool outside the topology is as bad as a domain that has them all.
    const CompanyTerm& term = *shape.spread[i];
    points -= term.topology->present.Test(pool) ? term.MatchesAt(pool) : term.total_matches;
  }
  return static_cast<int32_t>(std::clamp<int64_t>(
      points, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}

Tier BoardState::TierOf(const Inquiry& inquiry, size_t pool) const {
  if (avoided.Test(pool)) return Tier::kAvoided;
  return inquiry.taints->soft.Test(pool) ? Tier::kPreferNot : Tier::kWilling;
}

}  // namespace berth::scheduler
