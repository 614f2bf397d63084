// SPDX-License-Identifier: Apache-2.0
#include "apiserver/cache/cache_watch.h"

#include <algorithm>
#include <utility>

#include "apiserver/cache/watch_cache.h"
#include "rt/chaos.h"

namespace berth::apiserver {

// 512 events * 2 KiB = 1 MiB of frames: one read fills a few TLS writes, not the memory.
constexpr size_t kEventsPerRead = 512;

CacheWatch::CacheWatch(WatchCache& cache,
                       KindCache& kind,
                       const meta::KindInfo& asked,
                       WatchStart start)
    : cache_(cache),
      kind_(kind),
      matcher_(asked, std::move(start.selection)),
      bookmarks_(start.bookmarks),
      wants_newest_(start.resource_version.empty()),
      owes_end_(start.bookmarks && start.initial == InitialState::kTold) {}

CacheWatch::~CacheWatch() = default;

void CacheWatch::BeginWithState() {
  const KindCache::Objects& objects = kind_.objects();
  for (auto at = objects.lower_bound(matcher_.scope());
       at != objects.end() && matcher_.InScope(at->first);
       ++at) {
    if (matcher_.Matches(at->first, at->second)) state_.push_back(at->second);
  }
  state_revision_ = cache_.revision();
  JoinRing(state_revision_);
}

void CacheWatch::BeginNow() { JoinRing(cache_.revision()); }

rt::Task<Status> CacheWatch::BeginAfter(store::Revision after) {
  if (kind_.HasAllAfter(after)) {
    JoinRing(after);
    co_return OkStatus();
  }
  REACHED("cache.watch_from_history");
  store::WatchRequest request{
      .start = std::string(1, '\0'), .end = std::string(store::kNoEnd), .from = after.Next()};
  Result<std::unique_ptr<store::Watch>> history =
      co_await cache_.store_.StartWatch(std::move(request));
  if (history.ok()) {
    history_ = *std::move(history);
    co_return OkStatus();
  }
  if (!history.status().Is(Reason::kExpired)) co_return history.status();
  co_return Expired("too old resource version: " + FormatResourceVersion(after) + " (" +
                    FormatResourceVersion(cache_.revision()) + ")");
}

void CacheWatch::JoinRing(store::Revision after) {
  history_.reset();
  reader_ = std::make_unique<KindCache::Reader>(kind_, matcher_, after);
  reader_->set_wake([this] {
    if (waiting_ != nullptr) waiting_->Complete(OkStatus());
  });
  if (!bookmarks_) return;
  reader_->set_bookmark(cache_.loop_.Now(), [this] {
    bookmark_due_ = true;
    if (waiting_ != nullptr) waiting_->Complete(OkStatus());
  });
}

void CacheWatch::ReadState(std::vector<RegistryEvent>& out) {
  const size_t count = std::min(kEventsPerRead, state_.size() - state_next_);
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    out.push_back({.type = RegistryEvent::Type::kAdded,
                   .object = std::move(state_[state_next_++]),
                   .frames = nullptr});
  }
  if (state_next_ == state_.size()) {
    state_ = {};
    state_next_ = 0;
  }
}

rt::Task<Result<std::vector<RegistryEvent>>> CacheWatch::ReadHistory() {
  std::vector<RegistryEvent> out;
  CO_TRY(const store::WatchBatch batch, co_await history_->Next());
  for (const store::Event& event : batch.events) {
    if (event.kv.key.starts_with(kind_.prefix())) CO_TRY_STATUS(TranslateHistory(event, out));
  }
  // The ring may be ahead of the history or behind it: the reader skips what was delivered here.
  if (kind_.HasAllAfter(batch.revision)) JoinRing(batch.revision);
  co_return out;
}

Status CacheWatch::TranslateHistory(const store::Event& event, std::vector<RegistryEvent>& out) {
  const bool is_delete = event.type == store::Event::Type::kDelete;
  if (is_delete && !event.previous) {
    return Expired("the last state of " + event.kv.key + " was compacted; list again");
  }
  CacheEvent cached{.suffix = event.kv.key.substr(kind_.prefix().size()),
                    .now = {},
                    .previous = {},
                    .revision = event.kv.mod_revision,
                    .frames = nullptr};
  if (!is_delete) cached.now = {.at_rest = event.kv.value, .revision = event.kv.mod_revision};
  if (event.previous) {
    cached.previous = {.at_rest = event.previous->value, .revision = event.previous->mod_revision};
  }
  // As in the ring: what cannot be read is not told.
  const auto cannot_be_read = [&](const StoredObject& state) {
    return !state.at_rest.empty() && !CheckReadable(kind_.kind(), cached.suffix, state).ok();
  };
  if (cannot_be_read(cached.now)) return OkStatus();
  if (cannot_be_read(cached.previous)) {
    return Expired("the state of " + event.kv.key + " before this one cannot be read; list again");
  }
  RegistryEvent translated;
  if (Translate(cached, matcher_, translated)) out.push_back(std::move(translated));
  return OkStatus();
}

rt::Task<Result<std::vector<RegistryEvent>>> CacheWatch::Next() {
  std::vector<RegistryEvent> out;
  for (;;) {
    if (!ended_.ok()) co_return ended_;
    if (!state_.empty()) {
      ReadState(out);
      co_return out;
    }
    if (std::exchange(owes_end_, false)) {
      out.push_back({.type = RegistryEvent::Type::kBookmark,
                     .object = {.at_rest = {}, .revision = state_revision_},
                     .frames = nullptr,
                     .ends_state = true});
      co_return out;
    }
    Status status;
    if (history_ != nullptr) {
      Result<std::vector<RegistryEvent>> read = co_await ReadHistory();
      status = read.status();
      if (read.ok()) out = *std::move(read);
    } else {
      status = reader_->Read(kEventsPerRead, out);
    }
    if (!status.ok()) {
      if (!status.Is(Reason::kCancelled)) ended_ = status;
      co_return status;
    }
    if (!out.empty()) co_return out;
    if (history_ != nullptr || reader_->is_ready()) continue;
    if (std::exchange(bookmark_due_, false)) {
      out.push_back({.type = RegistryEvent::Type::kBookmark,
                     .object = {.at_rest = {}, .revision = cache_.revision()},
                     .frames = nullptr});
      co_return out;
    }
    if (cache_.closed_) co_return Unavailable("the server is shutting down");
    rt::Leaf<Status> leaf;
    waiting_ = &leaf;
    status = co_await leaf;
    waiting_ = nullptr;
    CO_TRY_STATUS(status);
  }
}

}  // namespace berth::apiserver
