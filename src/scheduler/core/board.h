// SPDX-License-Identifier: Apache-2.0
// A Board is the scheduler's picture of all pools and of everything placed on them. It decides
// where a request goes, and says why it goes nowhere.
//
// Pure: no clock, no thread, no I/O; one owner. The same calls in the same order with the same seed
// give the same answers, on every machine.
//
// Room. Effective free capacity of a pool, in every dimension, is the smaller of
//   what the server knows    capacity - sum of all objects assumed or settled there, and
//   what the host reported   ledger's free - objects which that ledger cannot know yet.
//
//   (nothing) --Assume--> assumed --Held--> held by the host --Confirm--> settled --Forget-->
//   (nothing)
//       \_________________________________Settle____________________________/
//   Forget is possible from every state.
//
// Invariants
//   1. Assume never takes the effective free capacity of a pool below zero in any dimension.
//   2. Only Settle (the store says so) and a shrinking pool can: such a pool gets nothing new.
//   3. Explanation: failed and passed sum to the number of pools of that kind.
//   4. Fit, Explain, ExplainAnew, MissOf and Preempt leave no trace; PlaceGroup assumes all or
//   nothing.
//
// Cost: a placement and a release take 1 to 3 us with 1,000 to 10,000 pools, about twice that with
// 100,000, 16 shapes in use (`berth bench scheduler`, README.md); requests with preferences or
// joint volumes look at every pool that fits. Explain and Preempt are linear in pools.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "scheduler/core/answers.h"
#include "scheduler/core/pool.h"
#include "scheduler/core/request.h"
#include "scheduler/core/words.h"

namespace berth::scheduler {

struct BoardOptions {
  uint64_t seed = 1;  // breaks ties
  std::string zone_label = "topology.ironcore.dev/zone";
  std::string region_label = "topology.ironcore.dev/region";
};

class BoardState;

class Board {
 public:
  explicit Board(BoardOptions options);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // ---- Pools

  // Adds the pool, or brings the one of that kind and name up to date. Negative amounts count as 0.
  PoolIndex SetPool(const PoolSpec& spec);
  // The part of SetPool that changes often.
  void SetPoolState(PoolIndex pool, const PoolState& state);
  // Objects on it are forgotten with it. Its index may be given to another pool.
  void RemovePool(PoolIndex pool);
  std::optional<PoolIndex> FindPool(PoolKind kind, std::string_view name) const;
  const PoolSpec& pool(PoolIndex pool) const;
  size_t pool_count(PoolKind kind) const;
  PoolRoom RoomOf(PoolIndex pool) const;
  // The volume pools whose volumes can be used from this machine pool, in order. Linear in pools.
  std::vector<PoolIndex> VolumePoolsFor(PoolIndex machine_pool) const;

  // What the host's ledger says is free, as of `version` (a report older than the one known, of the
  // same boot, is ignored). A dimension that is not named is not reported. Stands until the next
  // one or ClearReport (session ended: nothing is known of the host). Pools by counts ignore
  // reports.
  void Report(PoolIndex pool, LedgerVersion version, const Resources& free);
  void ClearReport(PoolIndex pool);
  // Report without names, for whoever reports often: amounts[i] belongs to dimension i, the rest is
  // not reported.
  void Report(PoolIndex pool, LedgerVersion version, std::span<const int64_t> amounts);
  // The dimension's number, if any pool has that resource. Numbers never change.
  std::optional<size_t> DimensionOf(std::string_view resource) const;

  // The pool comes last until then (see AdvanceTo); the later of two ends counts.
  void Avoid(PoolIndex pool, Time until);
  // Tells the time: what ended before is over. Never goes back.
  void AdvanceTo(Time now);

  // ---- Objects

  Shape Intern(const Requirements& requirements);

  // The best `count` pools for the request, best first. Changes nothing that can be seen.
  // REQUIRES: request.shape (and those of joint) came from this board's Intern.
  void Decide(const Request& request, size_t count, Decision& decision);
  Decision Decide(const Request& request, size_t count);
  // Whether this one pool passes every rule now.
  bool Admits(const Request& request, PoolIndex pool);

  // Takes the room on candidate.pool, for joint volumes on candidate.joint too: all or nothing.
  AssumeVerdict Assume(const Request& request, const Candidate& candidate);
  // The host holds the room since that version of its ledger: from a report as of then on it is
  // counted by the host.
  void Held(ObjectKey key, LedgerVersion version);
  // The binding is durable. A consumed reservation's surplus becomes free.
  void Confirm(ObjectKey key);
  // The store says that the object is on this pool, whether it fits or not. Idempotent; adds, moves
  // or confirms, and takes over the request's shape and traits.
  void Settle(const Request& request, PoolIndex pool);
  // Keeps the room of something that shall come there, whether it fits or not: nobody can have it,
  // whatever the pool's host, which knows nothing of it, reports. Idempotent.
  void Keep(const Request& request, PoolIndex pool);
  // These keys, known or not, will be asked about soon: a batch of events is at hand. Their memory
  // is fetched meanwhile, all at once instead of one after the other. Changes nothing.
  void Expect(std::span<const ObjectKey> keys) const;
  // Gives the room back. False: not known.
  bool Forget(ObjectKey key);
  // Takes back what was assumed for the request and its volumes; what is confirmed stays.
  void ForgetAll(const Request& request);
  std::optional<PoolIndex> PoolOf(ObjectKey key) const;
  bool IsConfirmed(ObjectKey key) const;
  size_t object_count() const;

  // ---- Questions

  Explanation Explain(const Request& request, size_t count);
  // The same as if the request (and its joint volumes) had no place and nobody held room for it.
  Explanation ExplainAnew(const Request& request, size_t count);
  // How far this one pool is from taking the request; absent: it would.
  std::optional<NearMiss> MissOf(const Request& request, PoolIndex pool);
  // How many copies of the request could be placed one after the other from here, up to `limit`.
  // Copies that care about each other (company, joint volumes) are tried one by one, and therefore
  // counted up to kCarefulCopiesMax only.
  Fitting Fit(const Request& request, int64_t limit);
  // Assumes every request or none; candidates in the order of the requests. Larger ones are placed
  // first.
  std::optional<std::vector<Candidate>> PlaceGroup(std::span<const Request> requests);

  // Which objects, of lower priority than the request, must stop so that it fits somewhere. On each
  // pool the least important ones, and nobody whom it would fit without; of the pools the one with
  // the lowest highest priority, then the fewest victims, then the smallest sum of priorities.
  // Victims are confirmed, preemptible and without local state. `budgets` says how many of a set
  // may stop; a set that is not named has no limit.
  std::optional<Preemption> Preempt(const Request& request,
                                    const std::map<uint64_t, int64_t>& budgets);

  // ---- Waking those who wait

  // The events that could make an unschedulable request schedulable: all that are rare, and of the
  // others those that end a rule that it fails now.
  Events WakingEvents(const Request& request);
  // What changed since the last call, each pool once, lowest index first.
  std::vector<Change> TakeChanges();
  // Puts back what was taken: the next call tells it too.
  void TellAgain(std::span<const Change> changes);
  // Whether the change makes a new try worth while for a request that waits for these events. Cheap
  // (one pool is looked at), rarely wrong; when wrong, it says yes. A pool that fails another rule
  // by now adds the events that would end that one. REQUIRES: the request has been told of every
  // change since WakingEvents, up to the first yes.
  bool Wakes(const Request& request, Events& waking, const Change& change);

 private:
  std::unique_ptr<BoardState> state_;
};

}  // namespace berth::scheduler
