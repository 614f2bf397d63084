// SPDX-License-Identifier: Apache-2.0
#include "apiserver/cache/watch_cache.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "apiserver/cache/cache_watch.h"
#include "apiserver/cache/keys.h"
#include "base/check.h"
#include "base/log.h"
#include "base/strings.h"
#include "meta/at_rest.h"
#include "rt/backoff.h"
#include "rt/chaos.h"
#include "rt/deadline.h"
#include "rt/sleep.h"

namespace berth::apiserver {

namespace {

// Objects per page of the initial read: 10,000 * 2 KiB = 20 MiB in flight from a remote store.
constexpr size_t kLoadPage = 10'000;

// How often the cache looks for watchers that are due a bookmark.
constexpr Duration kBookmarkTick = Duration::Seconds(10);

std::string_view UidOf(const StoredObject& object) {
  const Result<meta::AtRestView> view = meta::AtRestView::Parse(object.at_rest.view());
  return view.ok() ? view->uid() : std::string_view();
}

}  // namespace

Result<store::Revision> ParseResourceVersion(std::string_view text) {
  if (text.empty()) return store::Revision{};
  const std::optional<int64_t> value = ParseInt(text);
  if (!value || *value < 0) {
    return BadRequest("invalid resource version " + Quote(text) + ": must be a decimal number");
  }
  return store::Revision{*value};
}

std::string FormatResourceVersion(store::Revision revision) {
  return std::to_string(revision.value);
}

WatchCache::WatchCache(rt::Loop& loop,
                       store::Store& store,
                       const std::vector<const meta::KindInfo*>& kinds,
                       WatchCacheOptions options)
    : loop_(loop), store_(store), options_(options), scope_(loop) {
  for (const meta::KindInfo* kind : kinds) {
    if (kind->storage != meta::Storage::kStored) continue;
    std::unique_ptr<KindCache>& cache = kinds_[KeyPrefix(*kind)];
    if (cache == nullptr) cache = std::make_unique<KindCache>(StoredKind(*kind), options.ring);
    by_kind_[kind] = cache.get();
  }
}

WatchCache::~WatchCache() { CHECK(waiters_.empty()); }

rt::Task<Result<std::unique_ptr<WatchCache>>> WatchCache::Start(
    rt::Loop& loop,
    store::Store& store,
    std::vector<const meta::KindInfo*> kinds,
    WatchCacheOptions options) {
  std::unique_ptr<WatchCache> cache(new WatchCache(loop, store, kinds, options));
  CO_TRY_STATUS((co_await cache->Load()).Wrap("load the watch cache"));
  cache->scope_.Spawn("cache.follow", cache->Follow());
  cache->scope_.Spawn("cache.bookmarks", cache->SendBookmarks());
  co_return std::move(cache);
}

rt::Task<Status> WatchCache::Close() {
  closed_ = true;
  for (const auto& [prefix, kind] : kinds_) kind->WakeAll();
  for (const auto& [revision, waiter] : std::exchange(waiters_, {})) {
    waiter->queued = false;
    waiter->leaf.Complete(Unavailable("the server is shutting down"));
  }
  co_return co_await scope_.Close();
}

KindCache& WatchCache::MutableOf(const meta::KindInfo& kind) const {
  const auto found = by_kind_.find(&kind);
  CHECK(found != by_kind_.end()) << kind.kind << " is not stored";
  return *found->second;
}

KindCache* WatchCache::Route(std::string_view key) {
  // Keys come sorted or in bursts of one kind.
  if (last_routed_ != nullptr && key.starts_with(last_routed_->prefix())) return last_routed_;
  auto found = kinds_.upper_bound(key);
  if (found == kinds_.begin()) return nullptr;
  --found;
  if (!key.starts_with(found->first)) return nullptr;
  last_routed_ = found->second.get();
  return last_routed_;
}

rt::Task<Status> WatchCache::Load() {
  store::RangeRequest request{.start = std::string(kRegistryPrefix),
                              .end = store::PrefixEnd(kRegistryPrefix),
                              .revision = {},
                              .limit = kLoadPage};
  for (bool more = true; more;) {
    CO_TRY(store::RangeResult page, co_await store_.Range(request));
    for (store::KeyValue& item : page.items) {
      if (KindCache* kind = Route(item.key)) {
        kind->Load(item.key.substr(kind->prefix().size()),
                   {.at_rest = std::move(item.value), .revision = item.mod_revision});
      }
    }
    request.revision = page.revision;
    more = page.more;
    if (more) request.start = page.items.back().key + '\0';
  }
  revision_ = request.revision;
  for (const auto& [prefix, kind] : kinds_) kind->Loaded(revision_);
  CountAside();
  co_return OkStatus();
}

void WatchCache::CountAside() {
  if (options_.unreadable == nullptr) return;
  size_t count = 0;
  for (const auto& [prefix, kind] : kinds_) count += kind->aside().size();
  if (count == counted_aside_) return;
  counted_aside_ = count;
  options_.unreadable->Set(static_cast<double>(count));
}

rt::Task<Status> WatchCache::Follow() {
  rt::Backoff backoff;
  int failures = 0;
  for (;;) {
    const store::Revision before = revision_;
    Status status = co_await FollowOnce();
    if (status.Is(Reason::kExpired)) {
      REACHED("cache.rebuild");
      status = co_await Rebuild();
      if (status.ok()) continue;
    }
    if (status.Is(Reason::kCancelled)) co_return status;
    if (revision_ > before) {
      backoff.Reset();
      failures = 0;
    }
    // One loss is repaired before anybody notices; several in a row are worth a line.
    if (++failures > 1) LOG_WARNING("watch cache: {}; trying again", status.ToString());
    const Duration pause = backoff.Next(loop_.random());
    CO_TRY_STATUS(co_await rt::Sleep(pause));
  }
}

rt::Task<Status> WatchCache::FollowOnce() {
  // All keys, not only ours: then every revision of the store arrives, and waiting for one ends.
  store::WatchRequest request{
      .start = std::string(1, '\0'), .end = std::string(store::kNoEnd), .from = revision_.Next()};
  CO_TRY(std::unique_ptr<store::Watch> watch, co_await store_.StartWatch(std::move(request)));
  for (;;) {
    CO_TRY(store::WatchBatch batch, co_await watch->Next());
    if (CHAOS("cache.lose_watch")) co_return Expired("simulated loss of the store's watch");
    ApplyBatch(batch);
  }
}

void WatchCache::ApplyBatch(const store::WatchBatch& batch) {
  for (const store::Event& event : batch.events) {
    KindCache* kind = Route(event.kv.key);
    if (kind == nullptr) continue;
    const std::string_view suffix = std::string_view(event.kv.key).substr(kind->prefix().size());
    if (event.type == store::Event::Type::kDelete) {
      kind->Apply(suffix, Bytes(), event.kv.mod_revision);
      continue;
    }
    meta::SharedObject taken = fresh_writes_.Take(
        event.kv.key, event.kv.value, FormatResourceVersion(event.kv.mod_revision));
    kind->Apply(suffix, event.kv.value, event.kv.mod_revision, std::move(taken));
  }
  EndBatch(batch.revision);
}

void WatchCache::EndBatch(store::Revision revision) {
  revision_ = std::max(revision_, revision);
  for (const auto& [prefix, kind] : kinds_) kind->EndBatch();
  CountAside();
  while (!waiters_.empty() && waiters_.begin()->first <= revision_) {
    Waiter* waiter = waiters_.begin()->second;
    waiters_.erase(waiters_.begin());
    waiter->queued = false;
    waiter->leaf.Complete(OkStatus());
  }
}

// Deletions come first and at the first lost revision, as nobody knows theirs: whoever began before
// learns of every one. A watcher that resumes at a revision that it was shown here goes on from the
// store's history: it learns of a deletion twice at worst.
rt::Task<Status> WatchCache::Rebuild() {
  WatchCache fresh(loop_, store_, {}, options_);
  for (const auto& [prefix, kind] : kinds_) {
    fresh.kinds_.emplace(prefix, std::make_unique<KindCache>(kind->kind(), options_.ring));
  }
  CO_TRY_STATUS((co_await fresh.Load()).Wrap("reload the watch cache"));
  const store::Revision lost = revision_.Next();
  struct Change {
    store::Revision revision;
    KindCache* kind;
    const std::string* suffix;
    Bytes at_rest;
  };
  std::vector<Change> changes;
  std::vector<std::pair<KindCache*, std::string>> gone;
  for (const auto& [prefix, kind] : kinds_) {
    const KindCache& now = *fresh.kinds_.at(prefix);
    for (const auto& [suffix, object] : kind->objects()) {
      const StoredObject* after = now.Find(suffix);
      if (now.FindAside(suffix) != nullptr) continue;
      // An object of the same name may be another one.
      if (after == nullptr || UidOf(*after) != UidOf(object)) gone.emplace_back(kind.get(), suffix);
    }
    for (const auto& [suffix, object] : now.objects()) {
      const StoredObject* before = kind->Find(suffix);
      if (before != nullptr && before->revision == object.revision) continue;
      changes.push_back({object.revision, kind.get(), &suffix, object.at_rest});
    }
    for (const auto& [suffix, aside] : kind->aside()) {
      const bool is_there = now.Find(suffix) != nullptr || now.FindAside(suffix) != nullptr;
      if (!is_there) gone.emplace_back(kind.get(), suffix);
    }
    for (const auto& [suffix, aside] : now.aside()) {
      changes.push_back({aside.now.revision, kind.get(), &suffix, aside.now.at_rest});
    }
  }
  std::ranges::sort(changes, [](const Change& a, const Change& b) {
    return std::tie(a.revision, a.kind->prefix(), *a.suffix) <
           std::tie(b.revision, b.kind->prefix(), *b.suffix);
  });
  for (const auto& [prefix, kind] : kinds_) kind->NoteGap(lost, fresh.revision_);
  for (const auto& [kind, suffix] : gone) kind->Apply(suffix, Bytes(), lost);
  for (Change& change : changes) {
    change.kind->Apply(*change.suffix, std::move(change.at_rest), change.revision);
  }
  EndBatch(fresh.revision_);
  co_return OkStatus();
}

rt::Task<Status> WatchCache::WaitFor(store::Revision revision) {
  if (revision_ >= revision) co_return OkStatus();
  if (closed_) co_return Unavailable("the server is shutting down");
  Waiter waiter;
  const auto place = waiters_.emplace(revision, &waiter);
  Status status = co_await waiter.leaf;
  if (waiter.queued) waiters_.erase(place);
  co_return status;
}

rt::Task<Status> WatchCache::WaitForAtMost(store::Revision revision) {
  if (revision_ >= revision) co_return OkStatus();
  const Status status = co_await rt::WithDeadline(WaitFor(revision), options_.fresh_wait);
  if (!status.Is(Reason::kTimeout)) co_return status;
  co_return Timeout("Too large resource version: " + FormatResourceVersion(revision) +
                    ", current: " + FormatResourceVersion(revision_))
      .WithRetryAfter(Duration::Seconds(1));
}

rt::Task<Status> WatchCache::CatchUp() {
  CO_TRY(const store::Revision now, co_await store_.CurrentRevision());
  co_return co_await WaitFor(now);
}

rt::Task<Status> WatchCache::SendBookmarks() {
  for (;;) {
    CO_TRY_STATUS(co_await rt::Sleep(kBookmarkTick));
    const Time now = loop_.Now();
    const Duration interval = options_.bookmark_interval;
    for (const auto& [prefix, kind] : kinds_) {
      kind->ForEachIdle(
          [now, interval](KindCache::Reader& reader) { reader.OfferBookmark(now, interval); });
      kind->Trim();
    }
  }
}

rt::Task<Result<std::unique_ptr<RegistryWatch>>> WatchCache::Watch(const meta::KindInfo& kind,
                                                                   WatchStart start) {
  CO_TRY(const store::Revision from, ParseResourceVersion(start.resource_version));
  KindCache& cache = MutableOf(kind);
  const InitialState initial = start.initial;
  auto watch = std::make_unique<CacheWatch>(*this, cache, kind, std::move(start));
  if (from.value != 0) {
    CO_TRY_STATUS(co_await WaitForAtMost(from));
  } else if (watch->wants_newest()) {
    CO_TRY_STATUS(co_await CatchUp());
  }
  if (from.value != 0 && initial != InitialState::kTold) {
    CO_TRY_STATUS(co_await watch->BeginAfter(from));
  } else if (initial == InitialState::kNotTold) {
    watch->BeginNow();
  } else {
    watch->BeginWithState();
  }
  co_return std::unique_ptr<RegistryWatch>(std::move(watch));
}

}  // namespace berth::apiserver
