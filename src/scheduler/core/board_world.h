// SPDX-License-Identifier: Apache-2.0
// Random events for the property tests: told to a board and to the reference, and compared.
#pragma once

#include <algorithm>

#include "scheduler/core/board.h"
#include "scheduler/core/board_draws.h"
#include "scheduler/core/reference_board.h"

namespace berth::scheduler {

// Draws random events, tells both boards, compares.
class BoardWorld : protected BoardDraws {
 public:
  using BoardDraws::Scale;

  BoardWorld(uint64_t seed, Scale scale)
      : BoardDraws(seed, scale), board_({.seed = seed}), reference_(seed) {}

  virtual ~BoardWorld() = default;
  BoardWorld(const BoardWorld&) = delete;
  BoardWorld& operator=(const BoardWorld&) = delete;

  void Run() {
    for (int i = 0; i < scale_.pools; ++i) SetPool();
    for (int i = 0; i < scale_.steps && !testing::Test::HasFatalFailure(); ++i) Step();
  }
  // What happened, in numbers: equal for equal seeds.
  const std::vector<uint64_t>& trace() const { return trace_; }
  // Machines that were placed with more than one volume.
  int together() const { return together_; }

 protected:
  // Something more that a kind of world asks now and then.
  virtual void Ask() {}

  void Step() {
    Ask();
    switch (random_.Below(16)) {
      case 0: return SetPool();
      case 1: return SetState();
      case 2: return random_.Chance(0.2) ? RemovePool() : SetPool();
      case 3:
      case 4: return Report();
      case 5: return Avoid();
      case 6:
      case 7:
      case 8: return Forget();
      case 9: return Acknowledge();
      case 10: return random_.Chance(0.8) ? Settle() : Keep();
      default: return Place();
    }
  }

  void SetPool() {
    const PoolSpec spec = DrawPool();
    const size_t pool = ToSize(board_.SetPool(spec));
    ReferencePool& entry = reference_.pools[pool];
    const bool has_other_room =
        entry.spec.capacity != spec.capacity || entry.spec.class_counts != spec.class_counts;
    // A share was of other counts.
    if (has_other_room && entry.report) entry.report->erase(std::string(kShareResource));
    entry.spec = spec;
    reference_.slots = std::max(reference_.slots, pool + 1);
    for (const auto& [name, amount] : spec.capacity) reference_.resources.insert(name);
  }
  std::optional<size_t> DrawPoolIndex() {
    if (reference_.pools.empty()) return std::nullopt;
    auto entry = reference_.pools.begin();
    std::advance(entry, static_cast<ptrdiff_t>(random_.Below(reference_.pools.size())));
    return entry->first;
  }
  static PoolIndex Index(size_t pool) { return PoolIndex{static_cast<uint32_t>(pool)}; }

  void SetState() {
    const auto pool = DrawPoolIndex();
    if (!pool) return;
    const PoolState state = DrawState();
    board_.SetPoolState(Index(*pool), state);
    reference_.pools[*pool].spec.state = state;
  }
  void RemovePool() {
    const auto pool = DrawPoolIndex();
    if (!pool) return;
    board_.RemovePool(Index(*pool));
    std::vector<ObjectKey> gone;
    for (const auto& [key, object] : reference_.objects)
      if (object.pool == *pool) gone.push_back(key);
    for (const ObjectKey& key : gone) ForgetInReference(key);
    reference_.pools.erase(*pool);
  }
  void Report() {
    const auto pool = DrawPoolIndex();
    if (!pool) return;
    ReferencePool& entry = reference_.pools[*pool];
    if (random_.Chance(0.1)) {
      board_.ClearReport(Index(*pool));
      entry.report.reset();
      entry.version = {};
      return;
    }
    const LedgerVersion version = {.boot = random_.Below(2), .counter = random_.Below(40)};
    Resources free = {{"cpu", random_.Between(-2, 16)}};
    if (random_.Chance(0.7)) free["memory"] = random_.Between(0, 64);
    if (random_.Chance(0.7)) {
      free[std::string(kShareResource)] = random_.Between(-2, 12) * (kReportedWhole / 12);
    }
    board_.Report(Index(*pool), version, free);
    if (entry.report && version.boot == entry.version.boot &&
        version.counter < entry.version.counter)
      return;
    entry.report = free;
    entry.version = version;
    for (auto& [key, object] : reference_.objects)
      if (object.pool == *pool && object.held &&
          (object.held->boot != version.boot || object.held->counter <= version.counter))
        object.is_counted_by_host = true;
  }
  void Avoid() {
    const auto pool = DrawPoolIndex();
    if (!pool) return;
    if (random_.Chance(0.5)) {
      const Time until = reference_.now + Duration::Seconds(random_.Between(1, 20));
      board_.Avoid(Index(*pool), until);
      Time& known = reference_.pools[*pool].avoid_until;
      known = std::max(known, until);
    } else {
      reference_.now = reference_.now + Duration::Seconds(random_.Between(1, 10));
      board_.AdvanceTo(reference_.now);
    }
  }

  // Indexes are brought up to date together, four at a time: that shows only if shapes come again.
  Requirements NextRequirements() {
    if (scale_.shapes == 0) return DrawRequirements();
    while (drawn_.size() < scale_.shapes) drawn_.push_back(DrawRequirements());
    return Pick(drawn_);
  }
  // Volumes that are to be placed with the machine, and the pools of some that have a place.
  void AddVolumes(Request& request) {
    for (uint64_t i = random_.Below(kVolumesMax + 1); i > 0; --i) {
      Requirements volume = {.kind = PoolKind::kVolume,
                             .class_name = random_.Chance(0.8) ? "small" : ""};
      volume.resources = {{"cpu", random_.Between(0, 8)}, {"memory", random_.Between(0, 24)}};
      volume.policy = static_cast<Policy>(random_.Below(3));
      request.joint.push_back(
          {.key = {.high = 8, .low = ++last_key_}, .shape = board_.Intern(volume)});
    }
    const auto pool = DrawPoolIndex();
    const bool is_of_volumes = pool && reference_.pools[*pool].spec.kind == PoolKind::kVolume;
    if (is_of_volumes) request.bound_volumes.push_back(Index(*pool));
  }
  void DrawTraits(Request& request) {
    request.priority = static_cast<int32_t>(random_.Below(4));
    request.is_preemptible = random_.Chance(0.8);
    request.has_local_state = random_.Chance(0.1);
    request.set = random_.Below(3);
  }
  Request DrawRequest(const Requirements& requirements) {
    Request request{.key = {.high = 7, .low = ++last_key_}, .shape = board_.Intern(requirements)};
    DrawTraits(request);
    if (random_.Chance(0.05))
      if (const auto pool = DrawPoolIndex()) request.pinned = Index(*pool);
    if (random_.Chance(0.05))
      for (int i = 0; i < 3; ++i)
        if (const auto pool = DrawPoolIndex()) request.among.push_back(Index(*pool));
    while (random_.Chance(0.2))
      if (const auto pool = DrawPoolIndex()) request.refused.push_back(Index(*pool));
    if (random_.Chance(0.1))
      for (const auto& [key, object] : reference_.objects)
        if (random_.Chance(0.2)) request.reservation.push_back(key);
    if (scale_.volumes && requirements.kind == PoolKind::kMachine) AddVolumes(request);
    return request;
  }

  void CompareExplanation(const Request& request, const Requirements& r) {
    const Explanation explanation = board_.Explain(request, 3);
    std::array<int64_t, kRules> failed{};
    int64_t pools = 0, passed = 0;
    for (const auto& [pool, entry] : reference_.pools) {
      if (entry.spec.kind != r.kind) continue;
      ++pools;
      const auto rule = reference_.FirstFailure(request, r, pool);
      rule ? ++failed[static_cast<size_t>(*rule)] : ++passed;
      ASSERT_EQ(board_.Admits(request, Index(pool)), !rule) << "pool " << pool;
    }
    for (size_t rule = 0; rule < kRules; ++rule)
      ASSERT_EQ(explanation.failed[rule], failed[rule]) << RuleName(static_cast<Rule>(rule));
    ASSERT_EQ(explanation.pools, pools);
    ASSERT_EQ(explanation.passed, passed);
    int64_t sum = explanation.passed;
    for (const int64_t count : explanation.failed) sum += count;
    ASSERT_EQ(sum, static_cast<int64_t>(board_.pool_count(r.kind)));
    ASSERT_EQ(explanation.nearest.has_value(), passed < pools);
  }

  void Place() {
    const Requirements r = NextRequirements();
    const Request request = DrawRequest(r);
    const auto expected = reference_.Decide(request, r);
    const size_t count = 1 + random_.Below(5);
    const Decision decision = board_.Decide(request, count);
    ASSERT_EQ(decision.ranked.size(), std::min(count, expected.size()));
    for (size_t i = 0; i < decision.ranked.size(); ++i) {
      ASSERT_EQ(decision.ranked[i].pool, expected[i].pool) << "rank " << i << " of " << count;
      ASSERT_EQ(decision.ranked[i].level, expected[i].level);
      ASSERT_EQ(decision.ranked[i].points, expected[i].points);
      ASSERT_EQ(decision.ranked[i].tier, expected[i].tier);
      ASSERT_EQ(decision.ranked[i].reservation, expected[i].reservation);
      ASSERT_EQ(decision.ranked[i].joint, expected[i].joint) << "rank " << i;
      trace_.push_back(ToSize(decision.ranked[i].pool) * 256 + decision.ranked[i].level);
    }
    if (random_.Chance(0.3)) CompareExplanation(request, r);
    if (testing::Test::HasFatalFailure() || decision.ranked.empty()) return;
    const Candidate& chosen = Pick(decision.ranked);
    ASSERT_EQ(board_.Assume(request, chosen), AssumeVerdict::kAssumed);
    ASSERT_EQ(board_.Assume(request, chosen), AssumeVerdict::kAlreadyPlaced);
    const ReferenceObject& object = reference_.Assume(request, r, chosen);
    CompareRoom(object.pool);
    for (const PoolIndex pool : chosen.joint) CompareRoom(ToSize(pool));
    together_ += chosen.joint.size() > 1 ? 1 : 0;
    if (request.reservation.empty())
      for (const auto& [name, free] : board_.RoomOf(chosen.pool).free) {
        const auto demand = ReferenceBoard::Demand(r, reference_.pools[object.pool].spec);
        if (demand.contains(name)) ASSERT_GE(free, 0) << name << ": promised too much";
      }
  }
  void CompareRoom(size_t pool) {
    const Resources free = reference_.Free(pool);
    const PoolRoom room = board_.RoomOf(Index(pool));
    for (const auto& [name, amount] : room.capacity) {
      if (amount == 0 || name == "berth.dev/share") continue;
      ASSERT_EQ(room.free.at(name), free.at(name)) << name << " on " << pool;
    }
  }

  void ForgetInReference(const ObjectKey& key) {
    // Who lives in it pays for itself from now on.
    for (auto& [other, object] : reference_.objects)
      if (object.inside == key) object.inside.reset();
    reference_.objects.erase(key);
  }
  std::optional<ObjectKey> DrawObject() {
    if (reference_.objects.empty()) return std::nullopt;
    auto entry = reference_.objects.begin();
    std::advance(entry, static_cast<ptrdiff_t>(random_.Below(reference_.objects.size())));
    return entry->first;
  }
  void Forget() {
    const auto key = DrawObject();
    if (!key) return;
    const size_t pool = reference_.objects[*key].pool;
    ASSERT_TRUE(board_.Forget(*key));
    ASSERT_FALSE(board_.Forget(*key));
    ForgetInReference(*key);
    CompareRoom(pool);
  }
  // The host's answer, or the commit.
  void Acknowledge() {
    const auto key = DrawObject();
    if (!key) return;
    ReferenceObject& object = reference_.objects[*key];
    const ReferencePool& pool = reference_.pools[object.pool];
    if (random_.Chance(0.5)) {
      const LedgerVersion version = {.boot = random_.Below(2), .counter = random_.Below(40)};
      board_.Held(*key, version);
      if (!object.is_counted_by_host) {
        object.held = version;
        if (pool.report && version.boot == pool.version.boot &&
            version.counter <= pool.version.counter)
          object.is_counted_by_host = true;
      }
    } else {
      Confirm(*key);
    }
    CompareRoom(object.pool);
  }
  void Confirm(const ObjectKey& key) {
    board_.Confirm(key);
    ReferenceObject& object = reference_.objects[key];
    if (object.is_confirmed) return;
    object.is_confirmed = true;
    if (!object.held || !reference_.pools[object.pool].report) object.is_counted_by_host = true;
    if (const auto reservation = object.inside) {
      object.inside.reset();
      ForgetInReference(*reservation);
    }
  }
  void Settle() {
    const auto pool = DrawPoolIndex();
    if (!pool) return;
    const Requirements r = NextRequirements();
    if (r.kind != reference_.pools[*pool].spec.kind) return;
    Request request{.key = {.high = 7, .low = ++last_key_}, .shape = board_.Intern(r)};
    DrawTraits(request);
    board_.Settle(request, Index(*pool));
    reference_.objects[request.key] = {.requirements = r,
                                       .request = request,
                                       .pool = *pool,
                                       .is_confirmed = true,
                                       .is_counted_by_host = true};
    CompareRoom(*pool);
  }

  // Room for somebody who is to come, whoever is there.
  void Keep() {
    const auto pool = DrawPoolIndex();
    if (!pool) return;
    const Requirements r = NextRequirements();
    if (r.kind != reference_.pools[*pool].spec.kind) return;
    Request request{.key = {.high = 7, .low = ++last_key_}, .shape = board_.Intern(r)};
    DrawTraits(request);
    board_.Keep(request, Index(*pool));
    board_.Keep(request, Index(*pool));
    reference_.objects[request.key] = {.requirements = r, .request = request, .pool = *pool};
    CompareRoom(*pool);
  }

  Board board_;
  ReferenceBoard reference_;
  std::vector<Requirements> drawn_;
  uint64_t last_key_ = 0;
  std::vector<uint64_t> trace_;
  int together_ = 0;
};

}  // namespace berth::scheduler
