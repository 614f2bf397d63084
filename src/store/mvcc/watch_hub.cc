// SPDX-License-Identifier: Apache-2.0
#include "store/mvcc/watch_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/key_range.h"

namespace berth::store {
namespace {

size_t BytesOf(const Event& event) {
  return event.kv.value.size() + (event.previous ? event.previous->value.size() : 0);
}

}  // namespace

Status CompactedAway(std::string_view what, Revision revision, Revision compacted) {
  return Expired(
      fmt::format("{} revision {} is not possible: history up to revision {} was compacted",
                  what,
                  revision.value,
                  compacted.value));
}

void Watcher::End(Status why) {
  if (phase == Phase::kEnded) return;
  phase = Phase::kEnded;
  why_ended = std::move(why);
  buffer.clear();
  buffer_bytes = 0;
  Wake();
}

Result<WatchBatch> Watcher::Take() {
  CHECK(has_news());
  if (phase == Phase::kEnded) return why_ended;
  WatchBatch batch;
  batch.events = std::exchange(buffer, {});
  batch.revision = through;
  reported = through;
  buffer_bytes = 0;
  tell_progress = false;
  return batch;
}

WatchHub::~WatchHub() { EndAll(Unavailable("the store is closed")); }

void WatchHub::Add(const std::shared_ptr<Watcher>& watcher, Revision durable) {
  const bool is_live = watcher->next > durable;
  watcher->phase = is_live ? Watcher::Phase::kLive : Watcher::Phase::kCatchingUp;
  watcher->through = is_live ? durable : Revision{watcher->next.value - 1};
  watcher->reported = watcher->through;
  watchers_.push_back(watcher);
}

void WatchHub::Remove(const std::shared_ptr<Watcher>& watcher) {
  std::erase(watchers_, watcher);
  watcher->End(Cancelled("the watch was ended by its owner"));
}

void WatchHub::OnPage(const std::shared_ptr<Watcher>& watcher, HistoryPage page, Revision durable) {
  watcher->is_reading = false;
  if (watcher->phase != Watcher::Phase::kCatchingUp) return;
  for (Event& event : page.events) {
    watcher->buffer_bytes += BytesOf(event);
    watcher->buffer.push_back(std::move(event));
  }
  watcher->next = page.through.Next();
  watcher->through = page.through;
  if (watcher->next > durable) {
    watcher->phase = Watcher::Phase::kLive;
    // A reader that saw nothing of interest in the history learns where it stands.
    watcher->tell_progress = true;
  }
  watcher->Wake();
}

void WatchHub::Feed(Watcher& watcher, const std::vector<Event>& events, Revision revision) {
  for (const Event& event : events) {
    if (event.kv.mod_revision < watcher.next) continue;
    if (!InRange(event.kv.key, watcher.start, watcher.end)) continue;
    watcher.buffer_bytes += BytesOf(event);
    watcher.buffer.push_back(event);
  }
  watcher.next = std::max(watcher.next, revision.Next());
  watcher.through = revision;
  if (watcher.buffer.size() > kWatchBufferEvents || watcher.buffer_bytes > kWatchBufferBytes) {
    watcher.End(Expired(
        fmt::format("the watcher fell behind: {} events ({} bytes) were not read in time, at most "
                    "{} ({} bytes) are kept",
                    watcher.buffer.size(),
                    watcher.buffer_bytes,
                    kWatchBufferEvents,
                    kWatchBufferBytes)));
  }
}

void WatchHub::Publish(const std::vector<Event>& events, Revision revision) {
  bool someone_waits = false;
  for (const auto& watcher : watchers_) {
    if (watcher->phase != Watcher::Phase::kLive) continue;
    Feed(*watcher, events, revision);
    if (!watcher->buffer.empty()) {
      watcher->Wake();
    } else {
      someone_waits = true;
    }
  }
  if (someone_waits) TellProgressSoon();
}

void WatchHub::TellProgressSoon() {
  if (progress_timer_.value != 0) return;
  progress_timer_ =
      loop_.After("store.watch.progress", kWatchProgressInterval, [this] { TellProgress(); });
}

void WatchHub::TellProgress() {
  progress_timer_ = {};
  for (const auto& watcher : watchers_) {
    if (watcher->phase != Watcher::Phase::kLive) continue;
    if (watcher->reported >= watcher->through) continue;
    watcher->tell_progress = true;
    watcher->Wake();
  }
}

void WatchHub::OnCompacted(Revision compacted) {
  for (const auto& watcher : watchers_) {
    // What is in the buffer was read before; only what comes next is lost.
    if (watcher->phase != Watcher::Phase::kCatchingUp || watcher->next > compacted) continue;
    watcher->End(CompactedAway("a watch from", watcher->next, compacted));
  }
}

void WatchHub::EndAll(const Status& why) {
  if (progress_timer_.value != 0) loop_.CancelTimer(std::exchange(progress_timer_, {}));
  for (const auto& watcher : std::exchange(watchers_, {})) watcher->End(why);
}

}  // namespace berth::store
