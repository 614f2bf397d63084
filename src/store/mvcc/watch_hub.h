// SPDX-License-Identifier: Apache-2.0
// A WatchHub hands every durable change to the watchers whose range it falls in.
//
//   catching up ──read the log up to the present──► live ──┐
//        │                                                 ├─ buffer full, store closed
//        └── compacted away ─────────────► ended ◄─────────┘
//
// A watcher that catches up reads a page only when its reader asks, so it buffers one page. A live
// one is fed as changes become durable. The switch happens on the loop, between two groups: no gap,
// no duplicate.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "rt/leaf.h"
#include "rt/loop.h"
#include "store/mvcc/record_log.h"
#include "store/store.h"

namespace berth::store {

// What a live watcher may leave unread: 16,384 events * 350 bytes = 5.6 MB, and up to 32 MB of
// values that only the watcher still holds.
constexpr size_t kWatchBufferEvents = 16'384;
constexpr size_t kWatchBufferBytes = 32 * 1024 * 1024;
// Every durable group looks at every watcher: 4,096 * 50 ns = 0.2 ms. A server has one per kind.
constexpr size_t kMaxWatchers = 4'096;
// How long a watcher without events waits to hear how far the store is.
constexpr Duration kWatchProgressInterval = Duration::Seconds(1);

// The state of one watch, shared by the hub and the reader. On-loop only.
struct Watcher {
  enum class Phase { kCatchingUp, kLive, kEnded };

  std::string start;
  std::string end;
  Phase phase = Phase::kCatchingUp;
  Revision next;      // first revision to deliver that is not in the buffer yet
  Revision through;   // how far the store was when the watcher was last fed
  Revision reported;  // the `through` that the reader was last told
  bool is_reading = false;
  bool tell_progress = false;
  Status why_ended;
  std::vector<Event> buffer;
  size_t buffer_bytes = 0;
  rt::Leaf<Status>* waiter = nullptr;

  // True if Next() need not wait.
  bool has_news() const { return !buffer.empty() || phase == Phase::kEnded || tell_progress; }
  void Wake() {
    if (waiter != nullptr) waiter->Complete(OkStatus());
  }
  void End(Status why);
  // What the reader gets now. REQUIRES: has_news().
  Result<WatchBatch> Take();
};

class WatchHub {
 public:
  explicit WatchHub(rt::Loop& loop) : loop_(loop) {}
  ~WatchHub();

  // Adds a watcher. It is live if `next` is behind `durable`, where the store is now.
  void Add(const std::shared_ptr<Watcher>& watcher, Revision durable);
  void Remove(const std::shared_ptr<Watcher>& watcher);

  // Takes a page for a watcher that catches up. `durable` is where the store is now.
  void OnPage(const std::shared_ptr<Watcher>& watcher, HistoryPage page, Revision durable);
  // The durable changes of one group, ascending, and the revision that the store is at now.
  void Publish(const std::vector<Event>& events, Revision revision);
  // Ends watchers that still need what is now compacted.
  void OnCompacted(Revision compacted);
  void EndAll(const Status& why);

  size_t size() const { return watchers_.size(); }

 private:
  void Feed(Watcher& watcher, const std::vector<Event>& events, Revision revision);
  void TellProgressSoon();
  void TellProgress();

  rt::Loop& loop_;
  std::vector<std::shared_ptr<Watcher>> watchers_;
  rt::TimerId progress_timer_;
};

// Expired, for a watch from a revision that is compacted.
Status CompactedAway(std::string_view what, Revision revision, Revision compacted);

}  // namespace berth::store
