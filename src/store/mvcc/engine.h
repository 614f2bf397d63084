// SPDX-License-Identifier: Apache-2.0
// An Engine is a store on one loop: it evaluates transactions against the tip, sends them to a
// RecordLog, and once they are durable moves them to the index, feeds the watchers and answers, in
// this order. Readers and watchers see only what is durable.
//
//   Commit ─► Evaluate(tip) ─► pending ──log──► durable: index ─► watchers ─► answer
//                                  └──log──► failed: all pending are refused, the store is
//                                  read-only
//
// Invariants:
//  (1) durable_ <= the revision of every pending write; pending_ is in the order of revisions.
//  (2) The tip is the index plus pending_.
//  (3) An answer that depends on a pending write is given after that write is durable.
//  (4) A revision number is given to one transaction only, also when it failed.
//
// All functions are called on the loop; answers come in a later turn or at once.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_annotations.h"
#include "rt/loop.h"
#include "store/mvcc/index.h"
#include "store/mvcc/lease_table.h"
#include "store/mvcc/record_log.h"
#include "store/mvcc/tip.h"
#include "store/mvcc/watch_hub.h"
#include "store/store.h"

namespace berth::store {

// What may wait for the disk. 4,096 transactions at 2,000 fsyncs/s in groups of 64 are 32 ms;
// 64 MiB is what a slow disk writes in a second.
constexpr size_t kMaxPendingWrites = 4'096;
constexpr size_t kMaxPendingBytes = 64 * 1024 * 1024;
constexpr Duration kPendingRetryAfter = Duration::Seconds(1);
// One step of compaction looks at 2,000 keys: about 0.5 ms, at most 5 ms with much history.
constexpr size_t kSweepKeys = 2'000;

class Engine final : private LogSink {
 public:
  // Loads the log; blocks until it is read.
  static Result<std::shared_ptr<Engine>> Open(rt::Loop& loop, std::unique_ptr<RecordLog> log);
  ~Engine() override;

  void Commit(Txn txn, Done<Result<TxnResult>> done);
  void Range(RangeRequest request, Done<Result<RangeResult>> done);
  void Compact(Revision revision, Done<Status> done);
  // The next revision is this many higher than it would be: for a restore, whose history must not
  // be taken for the one that watchers remember. Lasts once something is written.
  void SkipRevisions(int64_t count);
  void GrantLease(Duration ttl, Done<Result<LeaseId>> done);
  Status RenewLease(LeaseId id);
  void RevokeLease(LeaseId id, Done<Status> done);

  Result<std::shared_ptr<Watcher>> StartWatch(WatchRequest request);
  // Reads the next page of history if the watcher needs one.
  void CatchUp(const std::shared_ptr<Watcher>& watcher);
  void EndWatch(const std::shared_ptr<Watcher>& watcher);

  Result<Revision> revision() const;
  Result<Revision> compacted() const;
  // Ok, or why the store takes no writes.
  Status health() const;
  size_t key_count() const;

  // Leaves the read-only state if the log says that this is safe.
  void Recover(Done<Status> done);
  // Refuses what comes later, waits for what is pending, stops the log.
  void Close(Done<Status> done);

 private:
  struct Pending {
    std::shared_ptr<const LogWrite> write;
    Revision revision;  // the store's once this is durable; zero: as before
    size_t bytes = 0;
    std::vector<Done<const Status&>> done;  // after the write, in order
  };
  class Loader;

  Engine(rt::Loop& loop, std::unique_ptr<RecordLog> log) : loop_(loop), log_(std::move(log)) {}

  void OnWritten(size_t count) override;
  void OnFailed(Status why) override;

  void Begin() REQUIRES(loop_);
  Status CheckWritable() const REQUIRES(loop_);
  Status CheckLeases(const std::vector<Record>& records) const REQUIRES(loop_);
  void Queue(LogWrite write, Done<const Status&> done) REQUIRES(loop_);
  // Runs done after everything that is pending now; at once if nothing is.
  void AfterPending(Done<const Status&> done) REQUIRES(loop_);
  void AttachToLeases(const LogWrite& write) REQUIRES(loop_);
  // What watchers hear of a record that is not in the index yet.
  Event ToEvent(const Record& record) const REQUIRES(loop_);
  void MakeDurable(Pending& pending, std::vector<Event>& events) REQUIRES(loop_);
  void FinishClose() REQUIRES(loop_);

  void FinishRange(RangeResult result,
                   std::vector<std::pair<size_t, Position>> in_log,
                   std::vector<std::optional<Record>> records,
                   const RangeRequest& request,
                   Done<Result<RangeResult>>& done) REQUIRES(loop_);

  void EndLease(LeaseId id, Done<const Status&> done) REQUIRES(loop_);
  void ArmLeaseTimer() REQUIRES(loop_);
  void ExpireLeases() REQUIRES(loop_);
  void StartSweep() REQUIRES(loop_);
  void SweepStep() REQUIRES(loop_);
  void PostSweepStep() REQUIRES(loop_);

  rt::Loop& loop_;
  std::unique_ptr<RecordLog> log_;

  Index index_ GUARDED_BY(loop_);
  Tip tip_ GUARDED_BY(loop_){index_};
  LeaseTable leases_ GUARDED_BY(loop_);
  WatchHub hub_ GUARDED_BY(loop_){loop_};

  Revision durable_ GUARDED_BY(loop_){1};   // the index is the state at this revision
  Revision assigned_ GUARDED_BY(loop_){1};  // the last revision that was given away
  Revision compacted_ GUARDED_BY(loop_);
  std::deque<Pending> pending_ GUARDED_BY(loop_);
  size_t pending_bytes_ GUARDED_BY(loop_) = 0;

  Status failure_ GUARDED_BY(loop_);  // not ok: read-only
  bool is_closing_ GUARDED_BY(loop_) = false;
  bool is_recovering_ GUARDED_BY(loop_) = false;
  Done<Status> close_done_ GUARDED_BY(loop_);

  bool is_sweeping_ GUARDED_BY(loop_) = false;
  bool sweep_again_ GUARDED_BY(loop_) = false;
  std::string sweep_cursor_ GUARDED_BY(loop_);

  rt::TimerId lease_timer_ GUARDED_BY(loop_);
  Time lease_timer_at_ GUARDED_BY(loop_);
  // Shared with functions posted to the loop, which may outlive the engine: then it holds null.
  std::shared_ptr<Engine*> self_ = std::make_shared<Engine*>(this);
};

}  // namespace berth::store
