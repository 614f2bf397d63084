// SPDX-License-Identifier: Apache-2.0
#include "poollet/reconcile/runtime_watch.h"

#include <algorithm>
#include <memory>

#include "base/log.h"
#include "iri/labels.h"
#include "rt/backoff.h"
#include "rt/deadline.h"
#include "rt/sleep.h"

namespace berth::poollet {
namespace {

std::optional<fleet::ObjectKind> KindOf(iri::ObjectKind kind) {
  switch (kind) {
    case iri::ObjectKind::kMachine: return fleet::ObjectKind::kMachine;
    case iri::ObjectKind::kVolume: return fleet::ObjectKind::kVolume;
    case iri::ObjectKind::kBucket: return fleet::ObjectKind::kBucket;
    case iri::ObjectKind::kVolumeSnapshot: return fleet::ObjectKind::kVolumeSnapshot;
    case iri::ObjectKind::kUnknown: break;
  }
  return std::nullopt;
}

// Waits for the event, but no longer than `limit`. Cancelled only if the caller is.
rt::Task<Status> WaitAtMost(rt::Event* event, Duration limit) {
  const Status waited = co_await rt::WithDeadline(event->Wait(), limit);
  co_return waited.Is(Reason::kTimeout) ? OkStatus() : waited;
}

}  // namespace

void RuntimeWatch::Start(const Watched& watched) {
  const bool has_watch = watched.host != nullptr;
  const Duration interval = has_watch ? options_.scan_interval : options_.poll_interval;
  scope_.Spawn("poollet.scan", ScanLoop(watched.driver, interval, watched.cluster_id));
  // Not later than now: a clock may have been set back.
  const auto now = WallTime::FromSeconds(loop_.WallNow().seconds());
  const WallTime from = std::min(watched.heard_until.value_or(now), now);
  scope_.Spawn("poollet.events", EventLoop(watched.driver, from));
  if (has_watch && watched_.insert(watched.host).second) {
    scope_.Spawn("poollet.watch", WatchLoop(watched.host));
  }
}

void RuntimeWatch::ScanNow() {
  for (rt::Event* wake : wakes_) wake->Set();
}

rt::Task<Status> RuntimeWatch::ScanLoop(Driver* driver, Duration interval, std::string cluster_id) {
  rt::Event wake;
  wakes_.push_back(&wake);
  rt::Backoff backoff;
  std::map<std::string, uint64_t> prints;  // by id, of the last scan
  Status ended;
  while (ended.ok()) {
    wake.Reset();
    auto scan = co_await rt::WithDeadline(driver->Scan(cluster_id), options_.call_limit);
    Duration pause = interval;
    if (scan.ok()) {
      backoff.Reset();
      std::map<std::string, uint64_t> now;
      std::set<std::string> changed;
      for (const Seen& seen : *scan) {
        const auto before = prints.find(seen.id);
        if (before == prints.end() || before->second != seen.fingerprint) changed.insert(seen.uid);
        now[seen.id] = seen.fingerprint;
      }
      prints = std::move(now);
      listener_.Scanned(driver->kind(), *std::move(scan));
      for (const auto& uid : changed) listener_.Changed(driver->kind(), uid);
    } else {
      pause = backoff.Next(loop_.random());
    }
    ended = co_await WaitAtMost(&wake, pause);
  }
  std::erase(wakes_, &wake);
  co_return ended;
}

rt::Task<Status> RuntimeWatch::WatchLoop(iri::HostRuntime* host) {
  rt::Backoff backoff({.max = options_.watch_retry_max});
  std::string cursor;
  while (true) {
    auto opened = co_await rt::WithDeadline(host->Watch(cursor), options_.call_limit);
    if (opened.ok()) {
      backoff.Reset();
      std::unique_ptr<iri::ChangeStream> changes = *std::move(opened);
      const Status ended = co_await ReadChanges(changes.get(), &cursor);
      const Status closed = co_await changes->Close();
      if (ended.Is(Reason::kCancelled) || closed.Is(Reason::kCancelled)) co_return Cancelled();
      LOG_DEBUG("watch of the runtime ended: {}", ended.message());
    } else if (opened.status().Is(Reason::kMethodNotSupported)) {
      co_return OkStatus();  // scans have to do
    }
    CO_TRY_STATUS(co_await rt::Sleep(backoff.Next(loop_.random())));
  }
}

rt::Task<Status> RuntimeWatch::ReadChanges(iri::ChangeStream* changes, std::string* cursor) {
  while (true) {
    CO_TRY(const iri::Change change, co_await changes->Next());
    *cursor = change.cursor;
    const auto kind = KindOf(change.kind);
    if (change.type == iri::ChangeType::kResync) {
      // What changed is not known, nor what was said of it.
      ScanNow();
      AskEvents();
    } else if (kind.has_value() && !change.uid.empty()) {
      listener_.Changed(*kind, change.uid);
      AskEvents();  // what it says of this was said before
    }
  }
}

void RuntimeWatch::AskEvents() {
  for (rt::Event* wake : event_wakes_) wake->Set();
}

rt::Task<Status> RuntimeWatch::EventLoop(Driver* driver, WallTime from) {
  rt::Event wake;
  event_wakes_.push_back(&wake);
  EventPlace place{.from = from, .told = {}};
  rt::Backoff backoff({.initial = options_.event_retry, .max = options_.event_interval});
  Status ended;
  while (ended.ok()) {
    wake.Reset();
    const int64_t now = loop_.WallNow().seconds();
    iri::EventFilter filter;
    filter.from = place.from;
    auto events = co_await rt::WithDeadline(driver->Events(std::move(filter)), options_.call_limit);
    Duration pause = options_.event_interval;
    if (events.ok()) {
      backoff.Reset();
      Tell(*driver, *std::move(events), place);
      const bool is_over = now > place.from.seconds();  // nothing more happens in that second
      listener_.HeardUntil(driver->kind(), place.from + Duration::Seconds(is_over ? 1 : 0));
    } else {
      pause = backoff.Next(loop_.random());
    }
    ended = co_await rt::Sleep(options_.event_pause);
    if (ended.ok()) ended = co_await WaitAtMost(&wake, pause);
  }
  std::erase(event_wakes_, &wake);
  co_return ended;
}

void RuntimeWatch::Tell(const Driver& driver, std::vector<iri::Event> events, EventPlace& place) {
  WallTime newest = place.from;
  for (const auto& event : events) newest = std::max(newest, event.time);
  std::set<EventKey> last;
  for (auto& event : events) {
    EventKey key(event.involved.id, event.reason, event.message);
    const bool is_new = event.time > place.from || !place.told.contains(key);
    if (event.time == newest) last.insert(std::move(key));
    if (!is_new) continue;
    const std::string uid(iri::LabelOf(event.involved, UidLabel(driver.kind())));
    if (!uid.empty()) listener_.Happened(driver.kind(), uid, std::move(event));
  }
  if (newest == place.from) last.merge(place.told);
  place.told = std::move(last);
  place.from = newest;
}

rt::Task<Status> RuntimeWatch::Close() { co_return co_await scope_.Close(); }

}  // namespace berth::poollet
