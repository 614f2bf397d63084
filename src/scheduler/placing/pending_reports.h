// SPDX-License-Identifier: Apache-2.0
// PendingReports tells people why an object has no place: a condition on the object and an event.
// Not for every attempt: an object that waits shortly gets none, and a report is written again only
// when the set of reasons changed, at most every ten seconds (PROTOCOL 7.3).
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
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
  std::string reason;   // one word: "Unschedulable"
  std::string reasons;  // the set of reasons, without figures: "Room,Taint"
  std::string message;  // a sentence with figures
};

class PendingReports {
 public:
  static constexpr size_t kWaitingMax = 100'000;
  static constexpr Duration kFirstAfter = Duration::Millis(500);
  static constexpr Duration kAgainAfter = Duration::Seconds(10);
  static constexpr Duration kFailedAgainAfter = Duration::Seconds(1);

  PendingReports(rt::Loop& loop, client::Client& client, client::EventRecorder& events)
      : loop_(loop), client_(client), events_(events) {}

  // The object waits. `explain` is asked only if a report is due: explaining costs more than
  // deciding. It may be called later, and returns nullopt if the object waits no longer.
  void Waits(const meta::KindInfo& kind,
             const client::ObjectKey& key,
             const std::string& uid,
             std::function<std::optional<Pending>()> explain);
  // The object has a place or is gone.
  void Forget(std::string_view uid);

  // Writes until it is cancelled.
  rt::Task<Status> Run();
  size_t waiting() const { return entries_.size(); }

 private:
  struct Entry {
    const meta::KindInfo* kind = nullptr;
    client::ObjectKey key;
    std::function<std::optional<Pending>()> explain;
    std::string reported;  // the set of reasons of the last report
    Time due;
    bool is_queued = false;
  };

  rt::Task<Status> Report(std::string uid);
  void Again(const std::string& uid);

  rt::Loop& loop_;
  client::Client& client_;
  client::EventRecorder& events_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::multimap<Time, std::string> due_;
  rt::Event work_;
};

// Sets the condition Scheduled=False of a Machine, Volume or Bucket. False if it says so already.
bool SetNotScheduled(meta::Object& object, const Pending& pending, WallTime now);

}  // namespace berth::scheduler
