// SPDX-License-Identifier: Apache-2.0
// Which pools, in which order.
#include <algorithm>

#include "base/check.h"
#include "scheduler/core/internal/state.h"

namespace berth::scheduler {
namespace {

// Keeps the best `limit` candidates. They come in the order that breaks ties, so a later one goes
// behind its equals.
class Ranker {
 public:
  Ranker(BoardState& state, const Inquiry& inquiry, size_t limit)
      : state_(state), inquiry_(inquiry), ranked_(state.ranked), limit_(limit) {
    ranked_.clear();
  }

  bool is_full() const { return ranked_.size() == limit_; }

  void Visit(size_t pool, uint8_t level, int32_t points) {
    const Request& request = inquiry_.request;
    if (!request.refused.empty() && state_.IsRefused(request, pool)) return;
    const Ranked found = {.pool = static_cast<uint32_t>(pool), .points = points, .level = level};
    size_t place = ranked_.size();
    while (place > 0 && IsBetter(found, ranked_[place - 1])) --place;
    if (place == limit_) return;
    if (!inquiry_.joint.empty() && !state_.AssignJoint(inquiry_, pool, nullptr)) return;
    if (is_full()) ranked_.pop_back();
    ranked_.insert(ranked_.begin() + static_cast<ptrdiff_t>(place), found);
  }

 private:
  static bool IsBetter(const Ranked& a, const Ranked& b) {
    return a.points != b.points ? a.points > b.points : a.level > b.level;
  }

  BoardState& state_;
  const Inquiry& inquiry_;
  std::vector<Ranked>& ranked_;
  size_t limit_;
};

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

// Equal pools are taken from the front when packing, so that the last ones stay empty; otherwise
// from anywhere, so that requests that are decided together do not meet.
size_t BoardState::StartOf(const Request& request) const {
  if (request.shape->requirements.policy == Policy::kBinpack || pools.slots() == 0) return 0;
  return Mix(options.seed ^ Mix(request.key.high ^ request.key.low)) % pools.slots();
}

// Points count before levels, so that every pool must be looked at.
TaintScope BoardState::ScopeOf(const Inquiry& inquiry) const {
  const bool tolerates_none = inquiry.taints->hards == pools.tainted_count();
  return tolerates_none && !inquiry.shape.has_preferences ? TaintScope::kUntainted
                                                          : TaintScope::kAll;
}

// Everything that FirstFailure asks, except what the index knows (state, class, room) and what is
// asked pool by pool (joint volumes, refusals).
Clauses BoardState::ClausesOf(const Inquiry& inquiry) {
  const CompiledShape& shape = inquiry.shape;
  Clauses clauses;
  bool has_scratch = false;
  const auto use_scratch = [&] {
    if (has_scratch) return;
    has_scratch = true;
    scratch.Resize(pools.words());
    scratch.Fill(~uint64_t{0});
    clauses.All(scratch);
  };
  const auto all = [&](const Bitmap& set) {
    if (clauses.has_space()) return clauses.All(set);
    use_scratch();
    for (size_t w = 0; w < scratch.words(); ++w) scratch.word(w) &= set.word(w);
  };
  const auto none = [&](const Bitmap& set) {
    if (clauses.has_space()) return clauses.None(set);
    use_scratch();
    for (size_t w = 0; w < scratch.words(); ++w) scratch.word(w) &= ~set.word(w);
  };
  // Whoever tolerates none of the taints does not look at tainted pools to begin with.
  if (inquiry.taints->hards > 0 && ScopeOf(inquiry) == TaintScope::kAll)
    clauses.None(inquiry.taints->hard);
  if (inquiry.matching != nullptr) clauses.All(*inquiry.matching);
  if (shape.requirements.needs_fence) clauses.All(pools.fence_ready());
  for (const auto& term : shape.affinity) {
    const bool is_first = term->total_matches == 0 && term->Counts(shape.requirements);
    all(is_first ? term->topology->present : term->occupied);
  }
  for (const auto& term : shape.anti_affinity)
    if (term->total_matches > 0) none(term->occupied);
  for (const auto* term : shape.counted_by)
    if (term->total_refusers > 0) none(term->refused);
  for (const auto& [term, limit] : inquiry.spread) {
    all(term->topology->present);
    if (limit >= term->total_matches) continue;  // no domain can have more
    use_scratch();
    for (size_t w = 0; w < scratch.words(); ++w) {
      for (uint64_t bits = scratch.word(w) & term->occupied.word(w); bits != 0; bits &= bits - 1) {
        const size_t pool = w * kWordBits + static_cast<size_t>(std::countr_zero(bits));
        if (term->MatchesAt(pool) > limit) scratch.Reset(pool);
      }
    }
  }
  if (!inquiry.request.bound_volumes.empty()) {
    use_scratch();
    for (const PoolIndex volume_pool : inquiry.request.bound_volumes) {
      const bool is_live = pools.IsLive(ToSize(volume_pool));
      if (is_live && pools.spec(ToSize(volume_pool)).reach == Reach::kAny) continue;
      pools.usable(shape.requirements.kind).ForEach([&](size_t pool) {
        if (!is_live || !Reaches(ToSize(volume_pool), pool)) scratch.Reset(pool);
      });
    }
  }
  return clauses;
}

void BoardState::Decide(const Request& request, size_t count, Decision& decision) {
  decision.ranked.clear();
  if (count == 0) return;
  objects.Expect(request.key);  // by Assume
  const Inquiry inquiry = Inquire(request);
  if (request.pinned || !request.among.empty() || !request.reservation.empty())
    return DecideAmongFew(inquiry, count, decision);
  FitIndex& index = indexes.Get(inquiry.shape);
  const Clauses clauses = ClausesOf(inquiry);
  const bool has_soft = inquiry.taints->softs > 0;
  const bool has_avoided = !avoidances.empty();
  for (const Tier tier : {Tier::kWilling, Tier::kPreferNot, Tier::kAvoided}) {
    if (tier == Tier::kPreferNot && !has_soft) continue;
    if (tier == Tier::kAvoided && !has_avoided) continue;
    Clauses asked = clauses;
    if (has_avoided) tier == Tier::kAvoided ? asked.All(avoided) : asked.None(avoided);
    if (has_soft && tier == Tier::kWilling) asked.None(inquiry.taints->soft);
    if (has_soft && tier == Tier::kPreferNot) asked.All(inquiry.taints->soft);
    Search(inquiry, index, asked, count - decision.ranked.size());
    for (const Ranked& found : ranked) {
      Candidate& candidate = decision.ranked.emplace_back();
      candidate.pool = PoolIndex{found.pool};
      objects.ExpectAt(found.pool);
      pools.Expect(found.pool);
      indexes.Expect(found.pool);
      candidate.tier = tier;
      candidate.level = found.level;
      candidate.points = found.points;
      if (!inquiry.joint.empty()) AssignJoint(inquiry, found.pool, &candidate.joint);
    }
    if (decision.ranked.size() == count) return;
  }
}

// Leaves the best `count` in `ranked`.
void BoardState::Search(const Inquiry& inquiry,
                        FitIndex& index,
                        const Clauses& clauses,
                        size_t count) {
  const size_t start = StartOf(inquiry.request);
  Ranker ranker(*this, inquiry, count);
  if (inquiry.shape.has_preferences) {
    // Points count before levels: any pool may be the best.
    index.ForEach(start, clauses, [&](size_t pool, uint8_t level) {
      ranker.Visit(pool, level, PointsOf(inquiry, pool));
    });
    return;
  }
  index.Descend(start, ScopeOf(inquiry), clauses, [&](size_t pool, uint8_t level) {
    ranker.Visit(pool, level, 0);
    return !ranker.is_full();
  });
}

// A request for certain pools, or one that consumes a reservation: the few pools in question are
// asked one by one.
void BoardState::DecideAmongFew(const Inquiry& inquiry, size_t count, Decision& decision) {
  const Request& request = inquiry.request;
  std::vector<size_t> asked;
  if (request.pinned) asked.push_back(ToSize(*request.pinned));
  for (const PoolIndex pool : request.among) asked.push_back(ToSize(pool));
  for (const ObjectKey& key : request.reservation)
    if (const Placed* copy = objects.Find(key); copy != nullptr) asked.push_back(copy->pool);
  std::ranges::sort(asked);
  asked.erase(std::ranges::unique(asked).begin(), asked.end());
  const PoolKind kind = inquiry.shape.requirements.kind;
  for (const size_t pool : asked) {
    if (!pools.IsLive(pool) || pools.spec(pool).kind != kind) continue;
    if (FirstFailure(inquiry, pool, RoomCheck::kAsked)) continue;
    Candidate candidate{
        .pool = PoolIndex{static_cast<uint32_t>(pool)},
        .tier = TierOf(inquiry, pool),
        .level = LevelOf(pools, pool, inquiry.shape.requirements.policy, inquiry.shape),
        .points = PointsOf(inquiry, pool)};
    if (!request.reservation.empty()) candidate.reservation = ReservedAt(inquiry, pool)->key;
    if (!request.joint.empty()) AssignJoint(inquiry, pool, &candidate.joint);
    decision.ranked.push_back(std::move(candidate));
  }
  std::ranges::sort(decision.ranked, [](const Candidate& a, const Candidate& b) {
    if (a.tier != b.tier) return a.tier < b.tier;
    if (a.points != b.points) return a.points > b.points;
    if (a.level != b.level) return a.level > b.level;
    return a.pool < b.pool;
  });
  if (decision.ranked.size() > count) decision.ranked.resize(count);
}

AssumeVerdict BoardState::Assume(const Request& request, const Candidate& candidate) {
  const size_t pool = ToSize(candidate.pool);
  CHECK(request.shape != nullptr);
  CHECK(candidate.joint.size() == request.joint.size()) << "a pool for every joint volume";
  if (objects.Find(request.key) != nullptr) return AssumeVerdict::kAlreadyPlaced;
  Compile(*request.shape);
  if (!pools.IsLive(pool)) return AssumeVerdict::kNoRoom;
  if (candidate.reservation != ObjectKey{}) {
    Inquiry inquiry{.request = request, .shape = *request.shape};
    const Placed* copy = ReservedAt(inquiry, pool);
    if (copy == nullptr) return AssumeVerdict::kNoRoom;
    AddObject(request, pool, copy->key, false);
  } else {
    if (!pools.HasRoom(*request.shape, pool)) return AssumeVerdict::kNoRoom;
    AddObject(request, pool, {}, false);
  }
  for (size_t i = 0; i < request.joint.size(); ++i) {
    Request volume = request.joint[i];
    volume.joint.clear();
    const AssumeVerdict verdict = Assume(volume, {.pool = candidate.joint[i]});
    if (verdict == AssumeVerdict::kAssumed) continue;
    for (size_t j = 0; j < i; ++j) RemoveObject(*objects.Find(request.joint[j].key));
    RemoveObject(*objects.Find(request.key));
    return verdict;
  }
  return AssumeVerdict::kAssumed;
}

void Board::Decide(const Request& request, size_t count, Decision& decision) {
  state_->Decide(request, count, decision);
}

Decision Board::Decide(const Request& request, size_t count) {
  Decision decision;
  state_->Decide(request, count, decision);
  return decision;
}

bool Board::Admits(const Request& request, PoolIndex pool) {
  CHECK(request.shape != nullptr);
  if (!state_->pools.IsLive(ToSize(pool))) return false;
  if (state_->pools.spec(ToSize(pool)).kind != request.shape->requirements.kind) return false;
  const Inquiry inquiry = state_->Inquire(request);
  return !state_->FirstFailure(inquiry, ToSize(pool), RoomCheck::kAsked);
}

AssumeVerdict Board::Assume(const Request& request, const Candidate& candidate) {
  return state_->Assume(request, candidate);
}

}  // namespace berth::scheduler
