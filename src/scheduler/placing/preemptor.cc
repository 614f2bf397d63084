// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/preemptor.h"

#include <algorithm>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/placement.h"
#include "base/log.h"
#include "client/release/release.h"
#include "rt/chaos.h"

namespace berth::scheduler {
namespace {

constexpr int kNominateAttempts = 5;
// Victims that an event names.
constexpr size_t kVictimsShown = 8;

// Takes the room of an object that is not there yet. No UID gives this key: the version of a UUID
// would be another one.
ObjectKey StandInFor(const ObjectKey& key) { return {.high = ~key.high, .low = key.low}; }

std::string NameOf(const client::ObjectKey& key) { return key.namespace_ + '/' + key.name; }

}  // namespace

std::string PreemptingText(const std::string& pool) {
  return "waits for room on pool " + pool + ", where less important machines are stopped for it";
}

Preemptor::Preemptor(Deps deps)
    : loop_(deps.loop),
      scope_(deps.scope),
      board_(deps.board),
      pools_(deps.pools),
      objects_(deps.objects),
      client_(deps.client),
      events_(deps.events),
      try_again_(std::move(deps.try_again)),
      plans_(deps.metrics.GetCounter("berth_scheduler_preemptions_total",
                                     "Objects for which others were stopped.")),
      victims_(deps.metrics.GetCounter("berth_scheduler_preempted_total",
                                       "Machines that were stopped for others.")) {}

void Preemptor::Keep(const std::string& uid, const Request& request, PoolIndex pool, Time until) {
  Nomination& nomination = nominations_[uid];
  nomination.stand_in = {};
  nomination.stand_in.key = StandInFor(request.key);
  nomination.stand_in.shape = request.shape;
  nomination.stand_in.priority = request.priority;
  nomination.pool = pool;
  nomination.until = until;
  board_.Keep(nomination.stand_in, pool);
}

void Preemptor::Lift(const ObjectRecord& record, const Request& request) {
  const auto known = nominations_.find(record.uid);
  if (known != nominations_.end()) {
    const bool is_there = board_.PoolOf(known->second.stand_in.key) == known->second.pool;
    if (!is_there || known->second.until <= loop_.Now()) return Expire(record.uid, request);
    board_.Forget(known->second.stand_in.key);
    return;
  }
  const apis::core::Nomination* said = objects_.NominationOf(record.uid);
  if (said == nullptr || nominations_.size() >= kNominationsMax) return;
  const int64_t left = said->until.micros() - loop_.WallNow().micros();
  const PoolEntry* pool = pools_.FindByUid(said->pool_uid);
  if (left <= 0 || pool == nullptr) return;
  // Somebody else's plan, an earlier leader's: the victims that it did not come to ask are asked
  // now.
  REACHED("preempt.taken_over");
  const Duration kept = std::min(Duration::Micros(left), kKeptFor);
  Keep(record.uid, request, pool->index, loop_.Now() + kept);
  const PoolRoom room = board_.RoomOf(pool->index);
  const bool needs_more =
      std::ranges::any_of(room.free, [](const auto& entry) { return entry.second < 0; });
  const PoolIndex index = pool->index;
  board_.Forget(StandInFor(request.key));
  if (needs_more) Plan(record, request, index);
  board_.Forget(StandInFor(request.key));
}

void Preemptor::Restore(const std::string& uid) {
  const auto found = nominations_.find(uid);
  if (found == nominations_.end()) return;
  if (pools_.Find(found->second.pool) == nullptr) return End(uid);
  board_.Keep(found->second.stand_in, found->second.pool);
}

void Preemptor::Lend(const std::string& uid) {
  const auto found = nominations_.find(uid);
  if (found != nominations_.end()) board_.Forget(found->second.stand_in.key);
}

void Preemptor::Asks(const std::string& uid, PoolIndex pool) {
  const auto found = nominations_.find(uid);
  if (found != nominations_.end() && found->second.pool != pool) Restore(uid);
}

void Preemptor::End(const std::string& uid) {
  const auto found = nominations_.find(uid);
  if (found == nominations_.end()) return;
  board_.Forget(found->second.stand_in.key);
  nominations_.erase(found);
}

void Preemptor::Expire(const std::string& uid, Request request) {
  REACHED("preempt.expired");
  const PoolIndex pool = nominations_.at(uid).pool;
  End(uid);
  if (pools_.Find(pool) == nullptr) return;
  request.pinned = pool;
  request.refused.clear();
  const Explanation why = board_.Explain(request, 1);
  const bool had_room = why.passed > 0 || why.failed[static_cast<size_t>(Rule::kHostRoom)] > 0;
  if (!had_room) return;  // its victims are still there, or something else speaks against the pool
  REACHED("preempt.vain");
  std::erase_if(vain_, [this](const auto& entry) { return entry.second <= loop_.Now(); });
  if (vain_.size() < kVainMax) vain_[{uid, pool}] = loop_.Now() + kVainFor;
}

void Preemptor::LeaveOutVain(const std::string& uid, Request& request) {
  for (auto at = vain_.lower_bound({uid, PoolIndex{}}); at != vain_.end() && at->first.first == uid;
       ++at) {
    if (at->second > loop_.Now()) request.refused.push_back(at->first.second);
  }
}

void Preemptor::EndAll() {
  while (!nominations_.empty()) {
    const std::string uid = nominations_.begin()->first;
    End(uid);
  }
}

bool Preemptor::WaitsForRoom(Request request, PoolIndex pool) {
  request.pinned = pool;
  request.refused.clear();
  const Explanation why = board_.Explain(request, 1);
  return why.passed > 0 || why.failed[static_cast<size_t>(Rule::kRoom)] > 0 ||
         why.failed[static_cast<size_t>(Rule::kHostRoom)] > 0;
}

std::optional<Time> Preemptor::MakeRoom(const ObjectRecord& record, const Request& request) {
  const auto known = nominations_.find(record.uid);
  if (known != nominations_.end()) {
    // Its victims are on their way, or the host has yet to say that there is room.
    if (WaitsForRoom(request, known->second.pool)) {
      const Time until = known->second.until;
      Restore(record.uid);
      return until;
    }
    REACHED("preempt.pool_became_unfit");
    End(record.uid);
  }
  if (!objects_.MayPreempt(record) || nominations_.size() >= kNominationsMax ||
      IsHopeless(request)) {
    return std::nullopt;
  }
  if (!Plan(record, request, std::nullopt)) {
    const bool is_plain = !request.pinned && request.joint.empty() && request.bound_volumes.empty();
    if (is_plain) hopeless_[{request.shape, request.priority}] = loop_.Now() + kHopelessFor;
    return std::nullopt;
  }
  // The store may have answered at once that it is not wanted any more.
  const auto kept = nominations_.find(record.uid);
  if (kept == nominations_.end()) return std::nullopt;
  return kept->second.until;
}

bool Preemptor::IsHopeless(const Request& request) {
  if (hopeless_.size() > kHopelessMax) hopeless_.clear();
  if (request.pinned || !request.joint.empty() || !request.bound_volumes.empty()) return false;
  const auto found = hopeless_.find({request.shape, request.priority});
  return found != hopeless_.end() && loop_.Now() < found->second;
}

// Plans on any pool, or on that one, and carries it out.
bool Preemptor::Plan(const ObjectRecord& record, Request request, std::optional<PoolIndex> pool) {
  if (pool) request.pinned = pool;
  LeaveOutVain(record.uid, request);
  const std::optional<Preemption> plan = board_.Preempt(request, objects_.BudgetsNow());
  if (!plan) return false;
  const PoolEntry* entry = pools_.Find(plan->pool);
  std::vector<Victim> victims;
  for (const ObjectRecord* victim : objects_.FindPlaced(plan->pool, plan->victims)) {
    if (victim == nullptr) return false;  // between two events: the next attempt sees clearer
    if (victim->is_leaving || victim->is_deleting) continue;
    victims.push_back({.key = victim->key, .uid = victim->uid, .placement = victim->epoch});
  }
  Keep(record.uid, request, plan->pool, loop_.Now() + kKeptFor);
  plans_.Add();
  apis::core::Nomination nomination{
      .pool = entry->pool.spec.name,
      .pool_uid = entry->pool.spec.uid,
      .until = WallTime::FromSeconds((loop_.WallNow() + kKeptFor).seconds())};
  scope_.Spawn(
      "scheduler.preempt",
      Carry(record.key, record.uid, std::move(nomination), std::move(victims), record.priority));
  return true;
}

rt::Task<Status> Preemptor::Carry(client::ObjectKey key,
                                  std::string uid,
                                  apis::core::Nomination nomination,
                                  std::vector<Victim> victims,
                                  int32_t priority) {
  const Status nominated = co_await Nominate(key, uid, nomination, victims.size());
  if (!nominated.ok()) {
    if (nominated.Is(Reason::kCancelled)) co_return nominated;
    REACHED("preempt.not_nominated");
    LOG_DEBUG("nominating {}: {}", uid, nominated.ToString());
    End(uid);
    try_again_(uid);
    co_return OkStatus();
  }
  const std::string why = "makes room for machine " + NameOf(key) + " of priority " +
                          std::to_string(priority) + " on pool " + nomination.pool;
  std::string names;
  size_t shown = 0;
  for (const Victim& victim : victims) {
    client::ReleaseRequest request{.kind = &apis::compute::kMachineKind,
                                   .key = victim.key,
                                   .uid = victim.uid,
                                   .placement = victim.placement,
                                   .reason = std::string(apis::core::kReleasePreempted),
                                   .message = why};
    const Result<client::ReleaseOutcome> asked =
        co_await client::AskToLeave(loop_, client_, std::move(request));
    if (asked.status().Is(Reason::kCancelled)) co_return asked.status();
    if (!asked.ok()) {
      // The nomination ends by itself, and the next plan asks again.
      LOG_WARNING("preempting {}: {}", NameOf(victim.key), asked.status().ToString());
      continue;
    }
    if (*asked != client::ReleaseOutcome::kAsked) continue;
    victims_.Add();
    events_.Record({.kind = &apis::compute::kMachineKind, .key = victim.key, .uid = victim.uid},
                   client::EventType::kWarning,
                   "Preempted",
                   "Preempting",
                   why);
    if (shown++ < kVictimsShown) names += (names.empty() ? "" : ", ") + NameOf(victim.key);
  }
  if (shown > kVictimsShown) names += " and " + std::to_string(shown - kVictimsShown) + " more";
  if (shown > 0) {
    events_.Record({.kind = &apis::compute::kMachineKind, .key = key, .uid = uid},
                   client::EventType::kNormal,
                   "Preempting",
                   "Preempting",
                   "stops less important machines on pool " + nomination.pool + ": " + names);
  }
  co_return OkStatus();
}

rt::Task<Status> Preemptor::Nominate(client::ObjectKey key,
                                     std::string uid,
                                     apis::core::Nomination nomination,
                                     size_t victims) {
  Status last;
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  for (int i = 0; i < kNominateAttempts; ++i) {
    Result<meta::Object> object = co_await client_.Get(apis::compute::kMachineKind, key);
    CO_TRY_STATUS(object);
    const bool is_meant = object->metadata().uid == uid && !apis::IsBound(*object) &&
                          !object->metadata().deletion_timestamp;
    if (!is_meant) co_return Conflict("it needs no place any more");
    auto& placement = apis::PlacementOf(*object);
    if (!placement) placement.emplace();
    if (victims == 0 && placement->nominated) co_return OkStatus();
    placement->nominated = nomination;
    apis::SetScheduled(
        *object, "False", "Preempting", PreemptingText(nomination.pool), loop_.WallNow());
    const Result<meta::Object> written = co_await client_.Update(*std::move(object), options);
    if (written.ok()) co_return OkStatus();
    last = written.status();
    if (!last.Is(Reason::kConflict)) break;
  }
  co_return last;
}

std::vector<std::string> Preemptor::Ready(const std::vector<Change>& changes) const {
  std::vector<std::string> ready;
  if (nominations_.empty()) return ready;
  for (const auto& [uid, nomination] : nominations_) {
    const auto is_its_pool = [&nomination](const Change& change) {
      return change.pool == nomination.pool;
    };
    if (std::ranges::none_of(changes, is_its_pool)) continue;
    if (pools_.Find(nomination.pool) == nullptr) {
      ready.push_back(uid);
      continue;
    }
    // With its stand-in counted nothing is overfull: there is room for it.
    const PoolRoom room = board_.RoomOf(nomination.pool);
    if (std::ranges::all_of(room.free, [](const auto& entry) { return entry.second >= 0; })) {
      ready.push_back(uid);
    }
  }
  return ready;
}

bool Preemptor::KeepsOneOf(const std::string& uid, std::span<const PoolIndex> pools) const {
  const auto found = nominations_.find(uid);
  return found != nominations_.end() && std::ranges::find(pools, found->second.pool) != pools.end();
}

std::string Preemptor::PoolFor(const std::string& uid) const {
  const auto found = nominations_.find(uid);
  const PoolEntry* pool = found == nominations_.end() ? nullptr : pools_.Find(found->second.pool);
  return pool == nullptr ? std::string() : pool->pool.spec.name;
}

}  // namespace berth::scheduler
