// SPDX-License-Identifier: Apache-2.0
// PendingReports tells people why an object has no place: a condition on the object and an event.
// Not for every attempt: an object that waits shortly gets none, and a report is written again only
// when the set of reasons changed, at most every ten seconds (PROTOCOL 7.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/text_map.h"
#include "base/time.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "meta/kind.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::scheduler {

// Why an object waits.
struct Pending {
  std::string reason;                    // one word: "Unschedulable"
  std::string reasons;                   // the set of reasons, without figures: "Room,Taint"
  std::string message;                   // a sentence with figures
  const meta::KindInfo* kind = nullptr;  // of the object
  client::ObjectKey key;
};

class PendingReports {
 public:
  static constexpr size_t kWaitingMax = 100'000;
  static constexpr Duration kFirstAfter = Duration::Millis(500);
  static constexpr Duration kAgainAfter = Duration::Seconds(10);
  static constexpr Duration kFailedAgainAfter = Duration::Seconds(1);
  // Telling why many wait must not slow down what they wait for: reports are written so many at a
  // time, with pauses this much longer than the writing took.
  static constexpr size_t kAtOnce = 16;
  static constexpr int kRestPerWork = 9;

  // Says why the object of that UID waits; nullopt if it waits no longer. Asked only when a report
  // is due: explaining costs more than deciding.
  using Explain = std::function<std::optional<Pending>(const std::string& uid)>;

  PendingReports(rt::Loop& loop,
                 client::Client& client,
                 client::EventRecorder& events,
                 Explain explain)
      : loop_(loop), client_(client), events_(events), explain_(std::move(explain)) {}

  // The object waits.
  void Waits(const std::string& uid);
  // The same, and a place was looked for in vain: its next report counts that.
  void FoundNone(const std::string& uid);
  // The object has a place or is gone.
  void Forget(std::string_view uid);

  // Writes until it is cancelled.
  rt::Task<Status> Run();
  size_t waiting() const { return entries_.size(); }

 private:
  // One for every object that waits: small.
  struct Entry {
    uint64_t reported = 0;  // a hash of the set of reasons of the last report
    Time due;               // not before
    uint64_t queued = 0;    // its number in due_; 0: it is not there
    uint32_t searches = 0;  // since the last report
  };
  using Item = TextMap<Entry>::value_type;

  // When its time comes, it is reported on. No effect if that is so already.
  void Queue(Item& item);
  // Null: there are too many.
  Item* Find(const std::string& uid);
  // Whether it was to be.
  bool Unqueue(Entry& entry);
  rt::Task<Status> ReportOrAgain(std::string uid);
  rt::Task<Status> Report(std::string uid);
  void Again(const std::string& uid);

  rt::Loop& loop_;
  client::Client& client_;
  client::EventRecorder& events_;
  const Explain explain_;
  TextMap<Entry> entries_;
  // What is to be reported on, by time and in the order of asking.
  std::map<std::pair<Time, uint64_t>, Item*> due_;
  uint64_t last_queued_ = 0;
  rt::Event work_;
};

// Sets the condition Scheduled=False of a Machine, Volume or Bucket. False if it says so already.
// With it goes what the placement says of `searches` that were in vain: they are no reason to
// write.
bool SetNotScheduled(meta::Object& object, const Pending& pending, uint32_t searches, WallTime now);

}  // namespace berth::scheduler
