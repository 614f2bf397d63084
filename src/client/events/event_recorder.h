// SPDX-License-Identifier: Apache-2.0
// An EventRecorder tells people what happened to an object. Telling costs the teller nothing:
// events are queued, written many per commit, and what repeats is counted instead of written again.
// Events are never relied upon, so a full queue drops the newest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "apis/k8s/event.h"
#include "base/time.h"
#include "client/cache/health_report.h"
#include "client/client.h"
#include "meta/object.h"
#include "meta/scheme.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::client {

enum class EventType : uint8_t { kNormal, kWarning };

// What an event is about.
struct EventSubject {
  const meta::KindInfo* kind = nullptr;
  ObjectKey key;
  std::string uid;

  static EventSubject Of(const meta::Object& object);
};

class EventRecorder {
 public:
  static constexpr size_t kQueueMax = 4096;
  static constexpr size_t kBatchMax = 64;
  static constexpr size_t kRememberedMax = 4096;  // of which repetitions are counted
  static constexpr size_t kMessageMax = 1024;     // longer ones are cut, as Kubernetes does
  // What happens on a host comes here within 300 ms (poollet/reconcile/runtime_watch.h) and is to
  // be in the API within a second. What repeats costs two writes a second at most.
  static constexpr Duration kWriteEvery = Duration::Millis(500);
  // After a write of many: of events that say that all is well no more than 256 a second are
  // written, in 4 commits, however many thousands are placed (PROTOCOL 7.3).
  static constexpr Duration kWriteManyEvery = Duration::Seconds(1);

  // `component` is who reports: "berth-scheduler". Everything outlives the recorder.
  EventRecorder(rt::Loop& loop, Client& client, const meta::Scheme& scheme, std::string component)
      : loop_(loop), client_(client), scheme_(scheme), component_(std::move(component)) {}

  // `reason` is one word, `action` what was done ("Binding"), `message` a sentence. Control
  // characters in the message are replaced: hosts may have written it.
  void Record(const EventSubject& subject,
              EventType type,
              std::string_view reason,
              std::string_view action,
              std::string message);

  // Writes until it is cancelled.
  rt::Task<Status> Run();

  // All that were recorded and not written.
  uint64_t dropped() const { return untold_.dropped + untold_.skipped + untold_.refused; }
  void Report(HealthReport& report) const { report.Add(component_, untold_); }
  size_t queued() const { return queue_.size(); }

 private:
  // uid, reason, message
  using Sameness = std::tuple<std::string, std::string, std::string>;
  struct Remembered {
    ObjectKey event;
    int32_t count = 1;
    bool changed = false;  // counted since it was last written
    std::list<Sameness>::iterator age;
  };

  apis::k8s::CoreEvent Make(const EventSubject& subject,
                            EventType type,
                            std::string_view reason,
                            std::string_view action,
                            std::string message);
  void Remember(const Sameness& sameness, const ObjectKey& event);
  rt::Task<Result<size_t>> WriteNew();  // those that wait now; how many
  rt::Task<Status> WriteCounts();

  rt::Loop& loop_;
  Client& client_;
  const meta::Scheme& scheme_;
  const std::string component_;
  std::deque<apis::k8s::CoreEvent> queue_;
  std::map<Sameness, Remembered> remembered_;
  std::list<Sameness> ages_;  // the oldest first
  std::vector<Sameness> counted_;
  rt::Event work_;
  UntoldEvents untold_;
};

}  // namespace berth::client
