// SPDX-License-Identifier: Apache-2.0
// Watches: the feed that all live watchers share, and history for those who begin before it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "rt/backoff.h"
#include "rt/deadline.h"
#include "rt/sleep.h"
#include "store/etcd/etcd_engine.h"
#include "store/key_range.h"

namespace berth::store {
namespace {

constexpr rt::BackoffOptions kRewatch = {.initial = Duration::Millis(20),
                                         .max = Duration::Seconds(2)};

}  // namespace

rt::Task<Status> EtcdEngine::Start() {
  CO_TRY(fed_, co_await ReadRevision());
  CO_TRY(std::unique_ptr<EventStream> first, co_await EventStream::Open(&link_, fed_));
  feed_trouble_ = OkStatus();
  first.reset();  // it shows that watching is allowed
  scope_.Spawn("etcd.feed", Follow());
  co_return OkStatus();
}

rt::Task<Status> EtcdEngine::Close() {
  if (std::exchange(closed_, true)) co_return OkStatus();
  hub_.EndAll(Unavailable("the store is closed"));
  scope_.Cancel();
  const Status closed = co_await link_.Close();
  CO_TRY_STATUS(co_await scope_.Close());
  fed_changed_.CompleteAll(OkStatus());
  if (next_question_ != nullptr) {
    next_question_->waiters.CompleteAll(Unavailable("the store is closed"));
  }
  co_return closed;
}

void EtcdEngine::Publish(EventAssembler::Chunk chunk) {
  fed_ = chunk.through;
  known_ = std::max(known_, fed_);
  hub_.Publish(chunk.events, fed_);
  fed_changed_.CompleteAll(OkStatus());
}

rt::Task<Status> EtcdEngine::FollowOnce() {
  CO_TRY(const std::unique_ptr<EventStream> stream, co_await EventStream::Open(&link_, fed_));
  if (!feed_trouble_.ok()) LOG_INFO("etcd is watched again, from revision {} on", fed_.value + 1);
  feed_trouble_ = OkStatus();
  for (;;) {
    Result<EventAssembler::Chunk> chunk = co_await stream->Read();
    if (chunk.ok()) {
      Publish(*std::move(chunk));
      continue;
    }
    // The same gap twice is not a matter of the connection.
    if (stream->lost() && std::exchange(lost_at_, fed_) == fed_) {
      co_return Expired(std::string(chunk.status().message()));
    }
    co_return chunk.status();
  }
}

rt::Task<Status> EtcdEngine::Resynchronise() {
  CO_TRY(const Revision now, co_await ReadRevision());
  LOG_WARNING("etcd: the watch cannot go on after revision {}; it begins anew at {}",
              fed_.value,
              now.value);
  hub_.EndAll(CompactedAway("a watch from", fed_.Next(), now));  // (2)
  fed_ = now;
  fed_changed_.CompleteAll(OkStatus());
  co_return OkStatus();
}

rt::Task<Status> EtcdEngine::Follow() {
  rt::Backoff backoff(kRewatch);
  for (;;) {
    const Revision before = fed_;
    Status status = co_await FollowOnce();
    if (status.Is(Reason::kExpired)) {
      status = co_await Resynchronise();
      if (status.ok()) continue;
    }
    if (closed_ || status.Is(Reason::kCancelled)) co_return Cancelled();
    if (feed_trouble_.ok()) LOG_WARNING("etcd is not watched: {}", status.message());
    feed_trouble_ = status.Wrap("watch");
    if (fed_ > before) backoff.Reset();
    const Duration pause = backoff.Next(loop_.random());
    CO_TRY_STATUS(co_await rt::Sleep(pause));
  }
}

rt::Task<Status> EtcdEngine::WaitFed(Revision revision) {
  const Time deadline = loop_.Now() + link_.options().call_timeout;
  while (fed_ < revision) {
    CO_TRY_STATUS(CheckOpen());
    const Duration left = deadline - loop_.Now();
    Status waited = Timeout("");
    if (left > Duration()) waited = co_await rt::WithDeadline(fed_changed_.Wait(), left);
    if (waited.Is(Reason::kTimeout)) {
      co_return feed_trouble_.ok()
          ? Unavailable(fmt::format(
                "etcd's watch is at revision {}, etcd at {}", fed_.value, revision.value))
          : feed_trouble_;
    }
    CO_TRY_STATUS(waited);
  }
  co_return OkStatus();
}

rt::Task<Result<std::shared_ptr<EtcdWatcher>>> EtcdEngine::StartWatch(WatchRequest request) {
  CO_TRY_STATUS(CheckOpen());
  CO_TRY_STATUS(ValidateRange(request.start, request.end));
  if (request.from.value < 0) co_return BadRequest("a watch from a negative revision");
  CO_TRY(const Revision now, co_await CurrentRevision());
  const Revision from = request.from.value == 0 ? now.Next() : request.from;
  if (from.value > 1 && from <= now) {
    const Revision before{from.value - 1};
    const Status readable = co_await Probe(before);
    if (readable.Is(Reason::kExpired)) {
      co_return Expired(fmt::format(
          "a watch from revision {} is not possible: history before it was compacted", from.value));
    }
    CO_TRY_STATUS(readable);
  }
  CO_TRY_STATUS(co_await WaitFed(now));
  CO_TRY_STATUS(CheckOpen());
  if (hub_.size() >= kMaxWatchers) {
    co_return Status(
        Reason::kTooManyRequests,
        fmt::format("there are {} watches, at most that many are allowed", hub_.size()))
        .WithRetryAfter(Duration::Seconds(1));
  }
  auto watcher = std::make_shared<EtcdWatcher>();
  watcher->start = std::move(request.start);
  watcher->end = std::move(request.end);
  // At revision 1 nothing happened: there is no history to read, and that is told at once.
  watcher->next = std::max(from, Revision{2});
  hub_.Add(watcher, fed_);
  watcher->tell_progress = from <= fed_ && watcher->phase == Watcher::Phase::kLive;
  co_return std::move(watcher);
}

void EtcdEngine::EndWatch(const std::shared_ptr<EtcdWatcher>& watcher) {
  hub_.Remove(watcher);
  if (watcher->history != nullptr) watcher->history->Abort();
}

rt::Task<Result<WatchBatch>> EtcdEngine::Next(std::shared_ptr<EtcdWatcher> watcher) {
  if (watcher->is_awaited) co_return BadRequest("another Next() of this watch is waiting");
  watcher->is_awaited = true;
  Status status;
  while (status.ok() && !watcher->has_news()) {
    if (watcher->phase == Watcher::Phase::kCatchingUp) {
      status = co_await ReadHistory(watcher);
      continue;
    }
    watcher->history.reset();
    rt::Leaf<Status> wake;
    watcher->waiter = &wake;
    status = co_await wake;
    watcher->waiter = nullptr;
  }
  watcher->is_awaited = false;
  if (!status.ok()) co_return status;
  co_return watcher->Take();
}

// One page more, however often the connection is lost; only Cancelled is an error.
rt::Task<Status> EtcdEngine::ReadHistory(std::shared_ptr<EtcdWatcher> watcher) {
  rt::Backoff backoff(kRewatch);
  for (;;) {
    const Status status = co_await ReadHistoryPage(watcher);
    if (status.ok()) co_return status;
    watcher->history.reset();
    if (watcher->phase != Watcher::Phase::kCatchingUp) co_return OkStatus();  // ended meanwhile
    if (status.Is(Reason::kCancelled)) co_return status;
    if (status.Is(Reason::kExpired)) {
      watcher->End(Expired(fmt::format(
          "a watch from revision {} is not possible: {}", watcher->next.value, status.message())));
      co_return OkStatus();
    }
    const Duration pause = backoff.Next(loop_.random());
    CO_TRY_STATUS(co_await rt::Sleep(pause));
  }
}

rt::Task<Status> EtcdEngine::ReadHistoryPage(std::shared_ptr<EtcdWatcher> watcher) {
  if (watcher->history == nullptr) {
    const Revision after{watcher->next.value - 1};
    CO_TRY(watcher->history, co_await EventStream::Open(&link_, after));
  }
  CO_TRY(EventAssembler::Chunk chunk, co_await watcher->history->Read());
  if (watcher->phase != Watcher::Phase::kCatchingUp) co_return OkStatus();
  HistoryPage page;
  // What is ahead of the feed comes from there.
  page.through = std::min(chunk.through, fed_);
  for (Event& event : chunk.events) {
    if (event.kv.mod_revision > page.through) break;
    if (!InRange(event.kv.key, watcher->start, watcher->end)) continue;
    page.events.push_back(std::move(event));
  }
  hub_.OnPage(watcher, std::move(page), fed_);
  co_return OkStatus();
}

}  // namespace berth::store
