// SPDX-License-Identifier: Apache-2.0
#include "apiserver/cache/kind_cache.h"

#include <algorithm>
#include <utility>

#include "apiserver/cache/keys.h"
#include "base/check.h"
#include "rt/chaos.h"

namespace berth::apiserver {

bool Translate(const CacheEvent& event, const Matcher& matcher, RegistryEvent& out) {
  if (!matcher.InScope(event.suffix)) return false;
  const bool before =
      !event.previous.at_rest.empty() && matcher.Matches(event.suffix, event.previous);
  const bool after = !event.now.at_rest.empty() && matcher.Matches(event.suffix, event.now);
  if (!before && !after) return false;
  if (after) {
    out.type = before ? RegistryEvent::Type::kModified : RegistryEvent::Type::kAdded;
    out.object = event.now;
  } else {
    out.type = RegistryEvent::Type::kDeleted;
    out.object = {.at_rest = event.previous.at_rest, .revision = event.revision};
  }
  out.frames = event.frames;
  return true;
}

KindCache::KindCache(const meta::KindInfo& kind, RingLimits limits)
    : kind_(kind), prefix_(KeyPrefix(kind)), limits_(limits) {}

KindCache::~KindCache() {
  CHECK(readers_ == 0) << readers_ << " watchers of " << kind_.plural << " outlive their cache";
}

const StoredObject* KindCache::Find(std::string_view suffix) const {
  const auto found = objects_.find(suffix);
  return found == objects_.end() ? nullptr : &found->second;
}

void KindCache::Load(std::string suffix, StoredObject object) {
  changed_at_ = std::max(changed_at_, object.revision);
  objects_.emplace_hint(objects_.end(), std::move(suffix), std::move(object));
}

void KindCache::Loaded(store::Revision revision) {
  // Deletions before the load are not known, so nothing before it is.
  complete_after_ = revision;
  changed_at_ = revision;
}

void KindCache::Apply(std::string_view suffix, Bytes at_rest, store::Revision revision) {
  CacheEvent event{.suffix = std::string(suffix),
                   .now = {.at_rest = std::move(at_rest), .revision = revision},
                   .previous = {},
                   .revision = revision,
                   .frames = std::make_shared<EventFrames>()};
  const auto found = objects_.find(suffix);
  if (event.now.at_rest.empty()) {
    if (found == objects_.end()) return;
    event.previous = std::move(found->second);
    objects_.erase(found);
  } else if (found == objects_.end()) {
    objects_.emplace(event.suffix, event.now);
  } else {
    event.previous = std::exchange(found->second, event.now);
  }
  changed_at_ = revision;
  Push(std::move(event));
}

void KindCache::Push(CacheEvent event) {
  ring_bytes_ += event.previous.at_rest.size();
  ring_.push_back(std::move(event));
  const CacheEvent& pushed = ring_.back();
  RegistryEvent ignored;
  for (Reader* reader = idle_; reader != nullptr;) {
    Reader* next = reader->idle_next_;
    const bool concerns =
        pushed.revision > reader->after_ &&
        (reader->matcher_.takes_all() ? reader->matcher_.InScope(pushed.suffix)
                                      : Translate(pushed, reader->matcher_, ignored));
    if (concerns) {
      reader->UnlinkIdle();
      reader->position_ = end() - 1;
      reader->ready_ = true;
      woken_.push_back(reader);
    }
    reader = next;
  }
  if (ring_.size() > limits_.framed_events) {
    ring_[ring_.size() - 1 - limits_.framed_events].frames->Drop();
  }
  Evict();
}

void KindCache::Evict() {
  while (ring_.size() > 1 && (ring_.size() > limits_.events || ring_bytes_ > limits_.bytes)) {
    CacheEvent& oldest = ring_.front();
    ring_bytes_ -= oldest.previous.at_rest.size();
    complete_after_ = oldest.revision;
    ring_.pop_front();
    ++first_;
  }
}

void KindCache::EndBatch() {
  // A wake only posts to the loop, so the list does not change meanwhile.
  for (Reader* reader : woken_) {
    if (reader->wake_) reader->wake_();
  }
  woken_.clear();
}

void KindCache::WakeAll() {
  EndBatch();
  ForEachIdle([](Reader& reader) {
    if (reader.wake_) reader.wake_();
  });
}

void KindCache::ForEachIdle(const std::function<void(Reader&)>& visit) {
  for (Reader* reader = idle_; reader != nullptr; reader = reader->idle_next_) visit(*reader);
}

KindCache::Reader::Reader(KindCache& cache, const Matcher& matcher, store::Revision after)
    : cache_(cache), matcher_(matcher), after_(after) {
  CHECK(after >= cache.complete_after_);
  ++cache_.readers_;
  const auto start = std::ranges::upper_bound(
      cache_.ring_, after, {}, [](const CacheEvent& e) { return e.revision; });
  if (start == cache_.ring_.end()) {
    LinkIdle();
  } else {
    ready_ = true;
    position_ = cache_.first_ + static_cast<uint64_t>(start - cache_.ring_.begin());
  }
}

KindCache::Reader::~Reader() {
  --cache_.readers_;
  if (idle_) UnlinkIdle();
  std::erase(cache_.woken_, this);
}

Status KindCache::Reader::Read(size_t limit, std::vector<RegistryEvent>& out) {
  if (!ready_) return OkStatus();
  if (position_ < cache_.first_) {
    REACHED("cache.slow_watcher");
    return Expired("the watch fell behind by more than " + std::to_string(cache_.limits_.events) +
                   " events of " + std::string(cache_.kind_.plural) + "; list again");
  }
  RegistryEvent event;
  for (; position_ < cache_.end() && out.size() < limit; ++position_) {
    const CacheEvent& cached = cache_.ring_[position_ - cache_.first_];
    if (cached.revision <= after_) continue;
    if (Translate(cached, matcher_, event)) out.push_back(std::move(event));
  }
  if (position_ == cache_.end()) {
    ready_ = false;
    LinkIdle();
  }
  return OkStatus();
}

void KindCache::Reader::OfferBookmark(Time now, Duration interval) {
  if (!bookmark_ || now - seen_at_ < interval) return;
  seen_at_ = now;
  bookmark_();
}

void KindCache::Reader::LinkIdle() {
  idle_ = true;
  idle_previous_ = nullptr;
  idle_next_ = cache_.idle_;
  if (idle_next_ != nullptr) idle_next_->idle_previous_ = this;
  cache_.idle_ = this;
}

void KindCache::Reader::UnlinkIdle() {
  idle_ = false;
  (idle_previous_ == nullptr ? cache_.idle_ : idle_previous_->idle_next_) = idle_next_;
  if (idle_next_ != nullptr) idle_next_->idle_previous_ = idle_previous_;
  idle_previous_ = idle_next_ = nullptr;
}

}  // namespace berth::apiserver
