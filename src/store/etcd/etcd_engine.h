// SPDX-License-Identifier: Apache-2.0
// An EtcdEngine is what the handles of one EtcdStore share: calls to etcd, and one watch of all
// keys (the feed) whose events a WatchHub hands to every watcher.
//
//   etcd ──feed: all keys, every revision──► fed_ ──hub──► live watchers
//     └────history: a stream of its own────► a watcher that begins before fed_, while it is read
//
// Invariants:
//  (1) Every revision up to fed_ was published, in order; the next to publish is fed_ + 1.
//  (2) When the feed cannot go on where it was (compaction), all watchers end with Expired before
//      fed_ jumps.
//  (3) An answer of etcd that is older than one that was seen before the question is not believed.
//
// On-loop only.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "etcd/v3/rpc.pb.h"
#include "net/rpc.h"
#include "rt/leaf.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"
#include "rt/waiters.h"
#include "store/etcd/etcd_link.h"
#include "store/etcd/event_stream.h"
#include "store/mvcc/watch_hub.h"
#include "store/store.h"

namespace berth::store {

// What may wait for etcd: as in the embedded store.
constexpr size_t kEtcdCommitsMax = 4'096;
constexpr size_t kEtcdCommitBytesMax = 64 * 1024 * 1024;
// Keys per page of a range: 1,000 * 2 KiB = 2 MiB. Fewer where objects are large, so that a page
// has about so many bytes.
constexpr size_t kEtcdRangePage = 1'000;
constexpr size_t kEtcdRangePageBytes = 4 * 1024 * 1024;

// A watcher of the hub and the stream that it reads history from.
struct EtcdWatcher : Watcher {
  std::unique_ptr<EventStream> history;
  bool is_awaited = false;  // by a Next()
};

class EtcdEngine {
 public:
  EtcdEngine(rt::Loop& loop, std::unique_ptr<net::RpcDialer> dialer, EtcdOptions options);
  ~EtcdEngine();
  EtcdEngine(const EtcdEngine&) = delete;
  EtcdEngine& operator=(const EtcdEngine&) = delete;

  // Once, before anything else: connects and begins to follow.
  rt::Task<Status> Start();
  rt::Task<Status> Close();
  Status health() const;

  rt::Task<Result<TxnResult>> Commit(Txn txn);
  rt::Task<Result<RangeResult>> Range(RangeRequest request);
  rt::Task<Status> Compact(Revision revision);
  rt::Task<Result<Revision>> CurrentRevision();
  rt::Task<Result<Revision>> CompactedRevision();
  rt::Task<Result<LeaseId>> GrantLease(Duration ttl);
  rt::Task<Status> RenewLease(LeaseId lease);
  rt::Task<Status> RevokeLease(LeaseId lease);

  rt::Task<Result<std::shared_ptr<EtcdWatcher>>> StartWatch(WatchRequest request);
  rt::Task<Result<WatchBatch>> Next(std::shared_ptr<EtcdWatcher> watcher);
  void EndWatch(const std::shared_ptr<EtcdWatcher>& watcher);

 private:
  template <class Response, class Request>
  rt::Task<Result<Response>> Ask(std::string method, Request request, EtcdLink::Repeat repeat);
  // (3)
  Status CheckHeader(const ::berth::etcd::v3::Header& header, Revision known);
  Status CheckOpen() const;

  rt::Task<Result<RangeResult>> RangeOnce(RangeRequest request);
  rt::Task<Result<Revision>> ReadRevision();
  // Ok if a read at this revision is possible, Expired if it was compacted.
  rt::Task<Status> Probe(Revision revision);

  rt::Task<Status> Follow();
  rt::Task<Status> FollowOnce();
  rt::Task<Status> Resynchronise();
  void Publish(EventAssembler::Chunk chunk);
  rt::Task<Status> WaitFed(Revision revision);
  rt::Task<Status> ReadHistory(std::shared_ptr<EtcdWatcher> watcher);
  rt::Task<Status> ReadHistoryPage(std::shared_ptr<EtcdWatcher> watcher);

  rt::Loop& loop_;
  const std::unique_ptr<net::RpcDialer> dialer_;
  EtcdLink link_;
  WatchHub hub_;

  bool closed_ = false;
  Revision known_{1};   // the highest revision that any answer had
  Revision fed_{1};     // (1)
  Revision compacted_;  // at least this much is compacted
  Revision lost_at_;    // where the feed last had a gap
  rt::Waiters<Status> fed_changed_;

  size_t range_page_ = kEtcdRangePage;  // keys that the next page has
  size_t commits_ = 0;                  // waiting for an answer
  size_t commit_bytes_ = 0;

  // Readers of the current revision share questions: `asking_` is on its way, whoever comes later
  // waits for `next_`.
  struct Question {
    rt::Waiters<Result<Revision>> waiters;
  };
  std::shared_ptr<Question> next_question_;
  bool asking_ = false;
  rt::Task<Status> AskRevisions();

  Status feed_trouble_{Reason::kUnavailable, "etcd is not watched yet"};
  Status space_trouble_;
  rt::TaskScope scope_;
};

}  // namespace berth::store
