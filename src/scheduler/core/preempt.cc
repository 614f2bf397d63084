// SPDX-License-Identifier: Apache-2.0
// Whom to stop so that something more important fits.
#include <algorithm>
#include <array>
#include <tuple>

#include "base/check.h"
#include "scheduler/core/internal/state.h"

namespace berth::scheduler {
namespace {

using Amounts = std::array<int64_t, kDimensionsMax>;

// Harm of a plan, compared in this order. The pool breaks ties.
struct Harm {
  int32_t highest_priority = 0;
  size_t victims = 0;
  int64_t priorities = 0;
  size_t pool = 0;
  auto operator<=>(const Harm&) const = default;
};

// The search on one pool.
class Chooser {
 public:
  Chooser(const BoardState& state, const Request& request, size_t pool) : state_(state) {
    for (size_t d = 0; d < state.pools.dimensions(); ++d) free_[d] = state.pools.free(pool, d);
    state.pools.ForEachDemand(
        *request.shape, pool, [&](size_t d, int64_t amount) { needed_[d] = amount; });
    for (const uint32_t number : state.objects.on_pool(pool)) {
      const Placed& object = state.objects.at(number);
      if (object.is_confirmed && object.is_preemptible && !object.has_local_state &&
          object.is_charged && !object.has_consumer && object.priority < request.priority)
        possible_.push_back(&object);
    }
    // Lowest priority first; the order among equals must not depend on who came and went.
    std::ranges::sort(possible_, [](const Placed* a, const Placed* b) {
      return std::tie(a->priority, a->key) < std::tie(b->priority, b->key);
    });
  }

  // Stops as many as needed from the bottom, then spares those, from the top, without whom it still
  // fits. Empty: it cannot be made to fit.
  std::vector<const Placed*> Choose(const std::map<uint64_t, int64_t>& budgets) {
    std::map<uint64_t, int64_t> left = budgets;
    std::vector<const Placed*> victims;
    for (const Placed* object : possible_) {
      if (Fits()) break;
      const auto budget = left.find(object->set);
      if (budget != left.end() && object->set != 0 && budget->second-- <= 0) continue;
      Free(*object, 1);
      victims.push_back(object);
    }
    if (!Fits()) return {};
    for (size_t i = victims.size(); i-- > 0;) {
      Free(*victims[i], -1);
      if (Fits()) {
        victims.erase(victims.begin() + static_cast<ptrdiff_t>(i));
      } else {
        Free(*victims[i], 1);
      }
    }
    return victims;
  }

 private:
  bool Fits() const {
    for (size_t d = 0; d < kDimensionsMax; ++d)
      if (needed_[d] > 0 && free_[d] < needed_[d]) return false;
    return true;
  }
  void Free(const Placed& object, int64_t sign) {
    state_.pools.ForEachDemand(
        *object.shape, object.pool, [&](size_t d, int64_t amount) { free_[d] += sign * amount; });
  }

  const BoardState& state_;
  Amounts free_{};
  Amounts needed_{};
  std::vector<const Placed*> possible_;
};

}  // namespace

std::optional<Preemption> Board::Preempt(const Request& request,
                                         const std::map<uint64_t, int64_t>& budgets) {
  BoardState& s = *state_;
  if (!request.reservation.empty()) return std::nullopt;  // its room is there already
  const Inquiry inquiry = s.Inquire(request);
  std::optional<Harm> least;
  Preemption plan;
  s.pools.of_kind(inquiry.shape.requirements.kind).ForEach([&](size_t pool) {
    if (!inquiry.shape.unknown.empty() && !s.pools.is_counted(pool)) return;
    if (s.FirstFailure(inquiry, pool, RoomCheck::kSkipped)) return;
    const auto victims = Chooser(s, request, pool).Choose(budgets);
    if (victims.empty()) return;
    Harm harm{.victims = victims.size(), .pool = pool};
    harm.highest_priority = victims.back()->priority;
    for (const Placed* victim : victims) harm.priorities += victim->priority;
    if (least && *least <= harm) return;
    least = harm;
    plan.pool = PoolIndex{static_cast<uint32_t>(pool)};
    plan.victims.clear();
    for (const Placed* victim : victims) plan.victims.push_back(victim->key);
  });
  if (!least) return std::nullopt;
  return plan;
}

}  // namespace berth::scheduler
