// SPDX-License-Identifier: Apache-2.0
// An Outbox holds what a host has to say and has not said yet. Statuses are kept by object, so a
// slow or missing session costs no more than the newest one of each. Events are said no faster than
// the server takes them; the rest waits here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "fleet/fleet.h"
#include "poollet/host/event_pace.h"
#include "poollet/ledger/amounts.h"
#include "poollet/reconcile/driver.h"
#include "poollet/reconcile/report.h"
#include "poollet/session/session.h"

namespace berth::agent::v1 {
class HostBatch;
class Orphan;
}  // namespace berth::agent::v1

namespace berth::poollet {

// What the server takes; zero: no limit was given.
struct OutboxLimits {
  size_t message_bytes = size_t{1024} * 1024;
  size_t text_bytes = 1024;
  size_t statuses_per_batch = 512;
  size_t events_per_second = kEventsPerSecondDefault;
};

struct SpokenEvent {
  std::string uid;  // "" for the pool itself
  std::string pool_uid;
  iri::EventType type = iri::EventType::kNormal;
  std::string reason;
  std::string message;
};

struct SpokenFacts {
  std::string pool_uid;
  fleet::LedgerVersion ledger;
  Amounts capacity;
  Amounts allocated;
  Amounts held;
  bool fence_ready = false;
  std::string fence_problem;
  std::optional<std::vector<OfferedClass>> classes;  // if they changed
  std::optional<iri::StringMap> runtime_facts;       // the same
  std::string problem;
};

struct SpokenOrphan {
  Seen seen;
  std::string pool;
};

// What is to become of an event of an object.
enum class EventFate : uint8_t {
  kSay,
  kKeep,  // the server may come to know the object
  kDrop,  // it knows nothing of it, and takes such words for a lie
};

// 1,024 events * 1 KiB = 1 MiB while the server is away, and 102 s at 10 a second; the oldest go
// first.
inline constexpr size_t kEventsMax = 1024;

class Outbox {
 public:
  // `fate` is asked when an event could be said.
  Outbox(std::function<void(Urgency)> wake, std::function<EventFate(const std::string& uid)> fate)
      : wake_(std::move(wake)), fate_(std::move(fate)) {}

  // A session begins, with a server that takes this.
  void Begin(OutboxLimits limits, Time now);

  void Answer(fleet::Answer answer);
  void Ack(const std::string& uid, Placement placement, std::string hash);
  void Refuse(const std::string& uid,
              Placement placement,
              std::string reason,
              std::string message,
              Amounts missing);
  void Report(ObjectReport report);
  void Gone(const std::string& uid, Placement placement);
  void Event(SpokenEvent event);
  void Statistics(std::vector<fleet::Statistics> statistics);
  void Facts(std::vector<SpokenFacts> facts);
  void Orphans(std::vector<SpokenOrphan> orphans);
  // It is gone: nothing more about its state.
  void Drop(const std::string& uid);

  // What only the session that ended could hear is dropped.
  void SessionEnded();
  // Whether some wait, or it is still to be said that some were lost.
  bool has_events() const { return !events_.empty() || !lost_of_.empty(); }
  // How long until one of them may be said.
  Duration EventsWait(Time now) const { return pace_.Left(now); }
  // The next serialized HostMessage within the limits; nullopt if there is nothing to say now.
  std::optional<std::string> Take(Time now);

 private:
  struct Refusal {
    std::string uid;
    Placement placement;
    std::string reason;
    std::string message;
    Amounts missing;
  };
  std::string Short(const std::string& text) const;
  void TakeWords(agent::v1::HostBatch& batch, size_t& bytes);
  void TakeStatuses(agent::v1::HostBatch& batch, size_t& bytes);
  void TakeEvents(agent::v1::HostBatch& batch, size_t& bytes, Time now);
  void Say(const SpokenEvent& event, agent::v1::HostBatch& batch, size_t& bytes) const;
  // How many were lost since it was said last.
  SpokenEvent Lost();
  void TakeFigures(agent::v1::HostBatch& batch);

  const std::function<void(Urgency)> wake_;
  const std::function<EventFate(const std::string&)> fate_;
  OutboxLimits limits_;
  std::deque<fleet::Answer> answers_;
  std::map<std::string, std::pair<Placement, std::string>> acks_;
  std::map<std::string, Refusal> refusals_;
  std::map<std::string, Placement> gone_;
  std::map<std::string, ObjectReport> reports_;
  std::deque<SpokenEvent> events_;
  EventPace pace_;
  uint64_t events_lost_ = 0;  // and not said yet
  std::string lost_of_;       // the pool that the last one was of
  std::vector<fleet::Statistics> statistics_;
  std::vector<SpokenFacts> facts_;
  std::optional<std::vector<SpokenOrphan>> orphans_;
};

namespace internal {
void FillOrphan(const SpokenOrphan& orphan, agent::v1::Orphan& out);
}  // namespace internal

}  // namespace berth::poollet
