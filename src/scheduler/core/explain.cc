// SPDX-License-Identifier: Apache-2.0
// Why not, how many, and what would help.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "scheduler/core/internal/state.h"

namespace berth::scheduler {
namespace {

// Whoever waits looks at these: the rule that a pool fails first may hide others.
constexpr Events kRare = ToEvents(Event::kUsable) | ToEvents(Event::kTaints) |
                         ToEvents(Event::kLabels) | ToEvents(Event::kClasses) |
                         ToEvents(Event::kFence);
// Of these every one may help, wherever it was.
constexpr Events kFarReaching = ToEvents(Event::kCompany) | ToEvents(Event::kReservation);

// What ends the rule besides those that are rare.
Events HelpOf(Rule rule) {
  switch (rule) {
    case Rule::kPinned:
    case Rule::kNotReady:
    case Rule::kNoSession:
    case Rule::kDeleting:
    case Rule::kCordoned:
    case Rule::kTaint:
    case Rule::kSelector:
    case Rule::kClass:
    case Rule::kFence:
    case Rule::kVolumeReach:
    case Rule::kRefused: return 0;
    case Rule::kReservation: return ToEvents(Event::kReservation);
    case Rule::kRoom:
    case Rule::kHostRoom: return ToEvents(Event::kRoom);
    case Rule::kJointVolume: return ToEvents(Event::kRoom) | ToEvents(Event::kVolumes);
    case Rule::kAffinity:
    case Rule::kAntiAffinity: return ToEvents(Event::kCompany);
    case Rule::kSpread: return ToEvents(Event::kCompany) | ToEvents(Event::kLost);
  }
  return 0;
}

// Of pools that would take a joint volume, which only the machine's pool keeps from it: a few names
// are enough to see whose they are.
constexpr size_t kJointRanked = 2;

bool NamesPools(const Request& request) {
  return request.pinned || !request.among.empty() || !request.bound_volumes.empty();
}
bool Names(const Request& request, PoolIndex pool) {
  const auto has = [pool](const std::vector<PoolIndex>& pools) {
    return std::ranges::find(pools, pool) != pools.end();
  };
  return request.pinned == pool || has(request.among) || has(request.bound_volumes);
}

// Whether what happened to one pool may open others.
bool MayOpenOthers(const CompiledShape& shape, Events events) {
  // As the emptiest domain it has held them back, and now it does not count.
  constexpr Events kCountsNoMore = ToEvents(Event::kLost) | ToEvents(Event::kTaints) |
                                   ToEvents(Event::kClasses) | ToEvents(Event::kLabels);
  if (!shape.spread.empty() && (events & kCountsNoMore) != 0) return true;
  // Its objects are in another domain now.
  const bool looks_around =
      !shape.affinity.empty() || !shape.anti_affinity.empty() || !shape.counted_by.empty();
  return looks_around && (events & ToEvents(Event::kLabels)) != 0;
}

}  // namespace

Miss BoardState::MissOf(const Inquiry& inquiry, size_t pool, Rule rule) const {
  Miss miss{.near = {.pool = PoolIndex{static_cast<uint32_t>(pool)}, .rule = rule}};
  if (rule != Rule::kRoom && rule != Rule::kHostRoom) {
    miss.distance = std::numeric_limits<double>::infinity();
    return miss;
  }
  const auto add = [&miss](int64_t missing, int64_t capacity) {
    miss.distance +=
        static_cast<double>(missing) / static_cast<double>(std::max<int64_t>(1, capacity));
  };
  pools.ForEachDemand(inquiry.shape, pool, [&](size_t d, int64_t amount) {
    const int64_t missing = amount - pools.free(pool, d);
    if (missing <= 0) return;
    add(missing, pools.capacity(pool, d));
    if (d != kShareDimension) {
      miss.near.missing[pools.dimension_name(d)] = missing;
    } else {
      // Parts of a whole are the board's own: nobody knows what 3 of 12 are.
      miss.near.missing[std::string(kClassPrefix) + inquiry.shape.requirements.class_name] = 1;
    }
  });
  if (pools.is_counted(pool)) return miss;
  for (const auto& name : inquiry.shape.unknown) {
    miss.near.missing[name] = inquiry.shape.requirements.resources.at(name);
    add(miss.near.missing[name], 0);
  }
  return miss;
}

Explanation BoardState::Explain(const Request& request, size_t count) {
  Explanation explanation;
  const Inquiry inquiry = Inquire(request);
  // The nearest lacks the smallest share of its own capacity; if none lacks only room, it is the
  // first pool that came furthest in the order of rules.
  double distance = 0;
  pools.of_kind(inquiry.shape.requirements.kind).ForEach([&](size_t pool) {
    ++explanation.pools;
    const auto rule = FirstFailure(inquiry, pool, RoomCheck::kAsked);
    if (!rule) {
      ++explanation.passed;
      return;
    }
    ++explanation.failed[static_cast<size_t>(*rule)];
    Miss miss = MissOf(inquiry, pool, *rule);
    for (const auto& [name, missing] : miss.near.missing) ++explanation.scarce[name];
    auto& nearest = explanation.nearest;
    const bool is_nearer = !nearest || miss.distance < distance ||
                           (miss.distance == distance && nearest->rule < *rule);
    if (!is_nearer) return;
    nearest = std::move(miss.near);
    distance = miss.distance;
  });
  Decision decision;
  Decide(request, count, decision);
  explanation.ranked = std::move(decision.ranked);
  return explanation;
}

void BoardState::ExplainJoint(const Request& request, Explanation& explanation) {
  if (explanation.failed[static_cast<size_t>(Rule::kJointVolume)] == 0) return;
  for (const Request& volume : request.joint)
    explanation.joint.push_back(Explain(volume, kJointRanked));
}

Explanation Board::Explain(const Request& request, size_t count) {
  Explanation explanation = state_->Explain(request, count);
  state_->ExplainJoint(request, explanation);
  return explanation;
}

std::optional<NearMiss> Board::MissOf(const Request& request, PoolIndex pool) {
  BoardState& s = *state_;
  const Inquiry inquiry = s.Inquire(request);
  const auto rule = s.FirstFailure(inquiry, ToSize(pool), RoomCheck::kAsked);
  if (!rule) return std::nullopt;
  return s.MissOf(inquiry, ToSize(pool), *rule).near;
}

// Takes the object out of every sum (-1) or puts it back (1); it stays where it is.
void BoardState::Count(const Placed& object, int32_t sign) {
  CompiledShape& shape = *object.shape;
  RefreshCounts(shape);
  census.Count(shape, object.pool, sign);
  if (object.is_charged) {
    pools.Charge(shape, object.pool, sign, object.is_unseen);
    // What the host's report counts is not in the server's sum of it.
    if (!object.is_unseen) pools.CountByHost(shape, object.pool, -sign);
  }
  pools.Settle(object.pool);
}

Explanation Board::ExplainAnew(const Request& request, size_t count) {
  BoardState& s = *state_;
  std::vector<const Placed*> placed;
  const auto add = [&](const ObjectKey& key) {
    if (const Placed* object = s.objects.Find(key)) placed.push_back(object);
  };
  add(request.key);
  for (const Request& volume : request.joint) add(volume.key);
  const auto changes = s.pools.TakeChanges();
  for (const Placed* object : placed) s.Count(*object, -1);
  Explanation explanation = s.Explain(request, count);
  s.ExplainJoint(request, explanation);
  for (const Placed* object : placed) s.Count(*object, 1);
  s.pools.TakeChanges();
  for (const Change& change : changes) s.pools.Note(ToSize(change.pool), change.events);
  return explanation;
}

// ---- Fit

// Copies that do not care about each other: what fits is a sum over pools.
Fitting BoardState::CountCopies(const Inquiry& inquiry, int64_t limit) {
  Fitting fitting;
  pools.of_kind(inquiry.shape.requirements.kind).ForEach([&](size_t pool) {
    if (fitting.copies >= limit) return;
    if (FirstFailure(inquiry, pool, RoomCheck::kAsked)) return;
    int64_t copies = limit;
    pools.ForEachDemand(inquiry.shape, pool, [&](size_t d, int64_t amount) {
      copies = std::min(copies, pools.free(pool, d) / amount);
    });
    fitting.copies = std::min(limit, fitting.copies + copies);
  });
  fitting.is_limited = fitting.copies >= limit;
  return fitting;
}

Fitting Board::Fit(const Request& request, int64_t limit) {
  BoardState& s = *state_;
  CHECK(request.shape != nullptr);
  if (limit <= 0) return {.copies = 0, .is_limited = true};
  const Requirements& requirements = request.shape->requirements;
  const bool is_plain = requirements.affinity.empty() && requirements.anti_affinity.empty() &&
                        requirements.spread.empty() && request.joint.empty() &&
                        request.reservation.empty();
  if (is_plain) return s.CountCopies(s.Inquire(request), limit);
  // Copies that do care are placed one after the other, and taken back.
  limit = std::min(limit, kCarefulCopiesMax);
  const auto changes = s.pools.TakeChanges();
  std::vector<Request> placed;
  Fitting fitting;
  while (fitting.copies < limit) {
    Request copy = request;
    copy.key = {.high = ~uint64_t{0}, .low = static_cast<uint64_t>(fitting.copies)};
    for (size_t i = 0; i < copy.joint.size(); ++i)
      copy.joint[i].key = {.high = ~uint64_t{0} - 1 - i, .low = copy.key.low};
    const Decision decision = Decide(copy, 1);
    if (decision.ranked.empty()) break;
    if (Assume(copy, decision.ranked[0]) != AssumeVerdict::kAssumed) break;
    placed.push_back(std::move(copy));
    ++fitting.copies;
  }
  for (const Request& copy : placed) ForgetAll(copy);
  s.pools.TakeChanges();
  for (const Change& change : changes) s.pools.Note(ToSize(change.pool), change.events);
  fitting.is_limited = fitting.copies == limit;
  return fitting;
}

// ---- Groups

std::optional<std::vector<Candidate>> Board::PlaceGroup(std::span<const Request> requests) {
  BoardState& s = *state_;
  // A large one finds room only before the small ones have taken it.
  std::array<int64_t, kDimensionsMax> largest{};
  for (size_t pool = 0; pool < s.pools.slots(); ++pool)
    for (size_t d = 0; d < s.pools.dimensions(); ++d)
      largest[d] = std::max(largest[d], s.pools.capacity(pool, d));
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < requests.size(); ++i) {
    CHECK(requests[i].shape != nullptr);
    s.Compile(*requests[i].shape);
    double size = 0;
    for (const Demand& demand : requests[i].shape->demands)
      size = std::max(size,
                      static_cast<double>(demand.amount) /
                          static_cast<double>(std::max<int64_t>(1, largest[demand.dimension])));
    order.emplace_back(-size, i);
  }
  std::ranges::sort(order);
  std::vector<Candidate> candidates(requests.size());
  const auto changes = s.pools.TakeChanges();
  size_t done = 0;
  for (; done < order.size(); ++done) {
    const Request& request = requests[order[done].second];
    Decision decision = Decide(request, 1);
    if (decision.ranked.empty()) break;
    if (Assume(request, decision.ranked[0]) != AssumeVerdict::kAssumed) break;
    candidates[order[done].second] = std::move(decision.ranked[0]);
  }
  const bool is_complete = done == order.size();
  if (!is_complete) {
    for (size_t i = 0; i < done; ++i) ForgetAll(requests[order[i].second]);
    s.pools.TakeChanges();
  }
  for (const Change& change : changes) s.pools.Note(ToSize(change.pool), change.events);
  if (!is_complete) return std::nullopt;
  return candidates;
}

// ---- Waking

Events Board::WakingEvents(const Request& request) {
  const Explanation explanation = state_->Explain(request, 0);
  Events events = kRare;  // a new pool may always help
  if (NamesPools(request)) events |= ToEvents(Event::kLost);
  if (!request.reservation.empty()) events |= ToEvents(Event::kReservation);
  for (size_t rule = 0; rule < kRules; ++rule)
    if (explanation.failed[rule] > 0) events |= HelpOf(static_cast<Rule>(rule));
  return events;
}

bool Board::Wakes(const Request& request, Events& waking, const Change& change) {
  CHECK(request.shape != nullptr);
  BoardState& s = *state_;
  const Events helpful = waking & change.events;
  const auto has = [helpful](Event event) { return (helpful & ToEvents(event)) != 0; };
  if (helpful == 0) return false;
  if ((helpful & kFarReaching) != 0) return true;
  // What it names by number may be another pool by now, or none: that is to be looked up again.
  if (has(Event::kLost) && Names(request, change.pool)) return true;
  // So is what is within reach.
  if (has(Event::kLabels) && !request.among.empty()) return true;
  s.RefreshCounts(*request.shape);
  if (MayOpenOthers(*request.shape, helpful)) return true;
  const size_t pool = ToSize(change.pool);
  if (helpful == ToEvents(Event::kLost) || !s.pools.IsLive(pool)) return false;
  if (s.pools.spec(pool).kind != request.shape->requirements.kind) {
    // From where a volume that has its place can be used is a matter of labels.
    if (has(Event::kLabels) && Names(request, change.pool)) return true;
    if ((waking & ToEvents(Event::kVolumes)) == 0) return false;
    return std::ranges::any_of(request.joint,
                               [&](const Request& volume) { return Admits(volume, change.pool); });
  }
  const auto rule = s.FirstFailure(s.Inquire(request), pool, RoomCheck::kAsked);
  if (rule) waking |= HelpOf(*rule);
  return !rule;
}

}  // namespace berth::scheduler
