// SPDX-License-Identifier: Apache-2.0
// The Placer brings objects to pools: it takes them from the queue, lets the board decide, asks the
// hosts, and binds. Many are under way at once; what one turn of the loop makes ready is bound
// together. Rules S1 to S6 of the protocol are kept here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "base/text_map.h"
#include "base/time.h"
#include "client/binder.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "fleet/fleet.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"
#include "scheduler/core/board.h"
#include "scheduler/placing/attempt.h"
#include "scheduler/placing/gang.h"
#include "scheduler/placing/given_back.h"
#include "scheduler/placing/group_directory.h"
#include "scheduler/placing/object_directory.h"
#include "scheduler/placing/pending_reports.h"
#include "scheduler/placing/pool_directory.h"
#include "scheduler/placing/preemptor.h"
#include "scheduler/placing/refusal_book.h"
#include "scheduler/queue/scheduling_queue.h"

namespace berth::scheduler {

struct PlacerOptions {
  Duration answer_limit = Duration::Millis(300);
  Duration hold_ttl = Duration::Seconds(10);  // used within half of it, S5
  Duration bind_limit = Duration::Seconds(2);
  // Pools that are asked one after another before the object goes back to the queue.
  int rounds_max = 8;
  // If others are left, it goes on with them after the first of these, and after so much more for
  // each object that was refused: 10,000 of them begin 1,000 attempts (8,000 offers) a second.
  Duration go_on_first = Duration::Millis(100);
  Duration go_on_each = Duration::Millis(1);
  Duration go_on_max = Duration::Seconds(10);
  size_t attempts_max = 4096;
  size_t bind_batch_max = 256;
  size_t binds_max = 8;  // batches under way
  // A pool that gave no answer, or refused what it had accepted, comes last for this long.
  Duration avoid_silent = Duration::Seconds(2);
  Duration avoid_failing = Duration::Seconds(30);
  // A parked object is looked at again after this, even if nothing happened that could help it.
  Duration recheck = Duration::Minutes(5);
};

// Who leads.
struct Leadership {
  std::string holder;
  int64_t term = 0;
};

class Placer {
 public:
  struct Deps {
    rt::Loop& loop;
    rt::TaskScope& scope;  // of binds under way
    Board& board;
    PoolDirectory& pools;
    const ObjectDirectory& objects;
    fleet::Fleet& fleet;
    client::Client& client;
    client::Binder& binder;
    client::EventRecorder& events;
    PendingReports& reports;
    metrics::Registry& metrics;
    GroupDirectory& groups;
    std::function<void(const client::ObjectKey&)> on_group;  // its figures or reasons changed
  };
  Placer(Deps deps, PlacerOptions options);
  Placer(const Placer&) = delete;
  Placer& operator=(const Placer&) = delete;
  ~Placer();

  // Nothing is asked or bound without it (S1).
  void SetLeadership(std::optional<Leadership> leadership);
  // What a change in the store means for the queue.
  void Apply(const ObjectDirectory::Effects& effects);
  // Groups or their members changed, as the directory of groups says.
  void OnGroups();
  // Why a group waits that has its members; nullopt if it does not.
  std::optional<GangWait> GangWaitOf(const client::ObjectKey& key) const;
  // The board changed: wakes those whom that could help.
  void OnBoardChanged();

  // Why the object waits; nullopt if it does not.
  std::optional<Pending> Explain(const std::string& uid);
  // What the object, which needs a place, waits for besides a pool that takes it: its group, a
  // binding under way or one that keeps failing, room that is being made. nullopt: nothing of that.
  // Cheap: the board is not asked.
  std::optional<Pending> ExplainHold(const ObjectRecord& record, const Ask& ask) const;

  // Hosts that said no to an object that waits, since all of them were asked the last time.
  std::vector<Refusal> RefusalsOf(std::string_view uid) const;
  // The first volume of an attempt that an attempt of its own is binding; null if there is none.
  const ObjectRecord* BeingBoundOf(const Ask& ask) const;
  // The pool that its binding is being written for; "" if none is.
  std::string BindingPoolOf(const std::string& uid) const;

  // Nothing is under way and nothing could be.
  bool idle() const { return attempts_.empty() && (queue_.active() == 0 || !leadership_); }
  const SchedulingQueue& queue() const { return queue_; }
  const Preemptor& preemptor() const { return preemptor_; }
  size_t attempts() const { return attempts_.size(); }

 private:
  struct WaitingFor {
    Request sample;
    Events waking = 0;
  };
  // Binds of one object that something else was faster than, one after the other.
  struct Conflicts {
    int count = 0;
    std::string why;  // the last one
  };

  // The pool broke a promise: it comes last for a while, and the object waits before it goes there
  // once more.
  void OnGivenBack(const ObjectDirectory::GivenBack& given);
  void Schedule();
  void Turn();
  void Begin(const std::string& uid);
  void DecideNext(Attempt& attempt);
  void AskHosts(Attempt& attempt);
  void OnAnswer(const std::string& uid, const fleet::Answer& answer);
  void Refused(Attempt& attempt, const HostAsked& host, const fleet::Answer& answer);
  void MakeReady(Attempt& attempt);
  void StartBinds();
  rt::Task<Status> Bind(std::vector<std::string> uids);
  void Bound(Attempt& attempt);
  void Lost(const Attempt& attempt, std::string reason, std::string message);
  void NotBound(Attempt& attempt, const Status& why);
  rt::Task<Status> ReadBack(std::string uid);
  // Its candidate said no: without it, from the start.
  void TryNext(Attempt& attempt, RefusalBook::Told refusal);
  // Nobody is left to ask.
  void ParkUnschedulable(Attempt& attempt);
  // Others are left, and come soon.
  void GoOnLater(Attempt& attempt);
  void TryLater(const std::string& uid);
  // It waited for something of its own, which came. No effect if it does not wait.
  void Unpark(const std::string& uid);
  void GiveHoldsBack(Attempt& attempt);
  // The best pool for the attempt, in decision_.
  void Choose(Attempt& attempt);

  // Groups, see gang.h.
  void ConsiderGroup(const client::ObjectKey& key);
  void WakeGangs();
  std::optional<Time> NextGang() const;
  void StartGang();
  void PlaceGang();
  // `first` is where the first of them comes from.
  std::string DescribeGangMiss(const std::vector<Request>& requests, const Ask& first);
  void GangReady(Attempt& attempt);
  std::string DescribeGangRefusals() const;
  void GangRefused(Attempt& attempt, const RefusalBook::Told& refusal);
  void GangGoesOn();
  void AbortRound();
  void EndGang(std::string reason, std::string message);
  rt::Task<Status> BindGang();
  void GangVerdict(const std::vector<std::string>& members, const Status& verdict);
  rt::Task<Status> CommitPlan(std::map<std::string, std::string> plan);
  void ExplainMember(const client::ObjectKey& key, Pending& pending) const;

  void AvoidFor(PoolIndex pool, Duration time);
  // Ends an attempt; holds are given back and the room is free again.
  void Drop(const std::string& uid);
  // What the attempt has taken on the board is free again: the next turn wakes whom that helps.
  void FreeRoom(const Request& request);
  WaitGroup GroupOf(const Request& request);
  void SetTimer(std::optional<Time> due);

  rt::Loop& loop_;
  rt::TaskScope& scope_;
  Board& board_;
  PoolDirectory& pools_;
  const ObjectDirectory& objects_;
  fleet::Fleet& fleet_;
  client::Client& client_;
  client::Binder& binder_;
  client::EventRecorder& events_;
  PendingReports& reports_;
  GroupDirectory& groups_;
  const std::function<void(const client::ObjectKey&)> on_group_;
  const PlacerOptions options_;
  metrics::Counter& placed_;
  metrics::Counter& refused_;
  metrics::Counter& unschedulable_;
  metrics::Counter& bind_conflicts_;
  metrics::Gauge& pending_;

  std::optional<Leadership> leadership_;
  uint64_t last_offer_ = 0;
  Preemptor preemptor_;
  SchedulingQueue queue_;
  TextMap<std::unique_ptr<Attempt>> attempts_;
  std::vector<std::string> ready_;  // attempts that every host said yes to
  size_t binds_ = 0;
  std::optional<Gang> gang_;                     // that takes holds now
  std::map<client::ObjectKey, GangWait> gangs_;  // groups that are to be placed
  bool is_scheduled_ = false;                    // a turn is posted
  bool is_room_freed_ = false;                   // and nobody was woken for it yet
  rt::TimerId timer_;
  std::optional<Time> timer_due_;

  RefusalBook refusals_;                                     // of those that wait
  std::map<std::string, Conflicts, std::less<>> conflicts_;  // until they are bound
  GivenBackBook given_back_;
  std::map<Shape, WaitGroup> wait_groups_;
  std::map<WaitGroup, WaitingFor> waiting_;
  WaitGroup last_group_ = 0;
  Decision decision_;  // kept for its memory
  // Callbacks of offers may come after the placer: they hold this.
  std::shared_ptr<Placer*> self_ = std::make_shared<Placer*>(this);
};

}  // namespace berth::scheduler
