// SPDX-License-Identifier: Apache-2.0
#include "apiserver/cache/kind_cache.h"

#include <algorithm>
#include <utility>

#include "apiserver/cache/keys.h"
#include "base/check.h"
#include "base/log.h"
#include "base/strings.h"
#include "meta/at_rest.h"
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

// Who follows an object files it under the name that it says, and writes to that name: one that
// says another than its key would be taken for two, or for one of a shape that no name has.
Status CheckReadable(const meta::KindInfo& kind,
                     std::string_view suffix,
                     const StoredObject& object) {
  TRY(const meta::AtRestView view, meta::AtRestView::Parse(object.at_rest.view()));
  const size_t slash = suffix.find('/');
  const bool has_namespace = slash != std::string_view::npos;
  const std::string_view name = has_namespace ? suffix.substr(slash + 1) : suffix;
  const bool is_key =
      has_namespace == (kind.scope == meta::Scope::kNamespaced) && !name.contains('/');
  if (is_key && view.IsNamed(has_namespace ? suffix.substr(0, slash) : "", name)) {
    return OkStatus();
  }
  return Internal("its metadata does not have the name of its key");
}

namespace {

// 8 * 16 bytes per kind. When there are more, what is between the oldest two is taken for missed.
constexpr size_t kGapsMax = 8;

constexpr size_t kNoTrigger = static_cast<size_t>(-1);

// Only references to pools: they are what many watchers, one per pool, select by.
size_t FindTrigger(const meta::KindInfo& kind) {
  for (size_t i = 0; i < kind.field_selectors.size(); ++i) {
    if (kind.field_selectors[i].ends_with("PoolRef.name")) return i;
  }
  return kNoTrigger;
}

size_t FindSource(const meta::KindInfo& kind) {
  for (size_t i = 0; i < kind.field_selectors.size(); ++i) {
    if (kind.field_selectors[i].starts_with("spec.dataSource.")) return i;
  }
  return kNoTrigger;
}

}  // namespace

KindCache::KindCache(const meta::KindInfo& kind, RingLimits limits)
    : kind_(kind),
      prefix_(KeyPrefix(kind)),
      limits_(limits),
      trigger_(FindTrigger(kind)),
      source_(FindSource(kind)) {}

KindCache::~KindCache() {
  CHECK(readers_ == 0) << readers_ << " watchers of " << kind_.plural << " outlive their cache";
}

const StoredObject* KindCache::Find(std::string_view suffix) const {
  const auto found = objects_.find(suffix);
  return found == objects_.end() ? nullptr : &found->second;
}

const StoredObject* KindCache::FindAside(std::string_view suffix) const {
  const auto found = aside_.find(suffix);
  return found == aside_.end() ? nullptr : &found->second.now;
}

const std::set<std::string>& KindCache::CopiesOf(std::string_view suffix) const {
  static const std::set<std::string> none;
  const auto found = copies_.find(suffix);
  return found == copies_.end() ? none : found->second;
}

std::string KindCache::SourceOf(std::string_view suffix, const StoredObject& object) const {
  if (source_ == kNoTrigger) return {};
  const Result<meta::AtRestView> view = meta::AtRestView::Parse(object.at_rest.view());
  if (!view.ok()) return {};
  const std::string_view name = view->FieldValue(source_);
  if (name.empty()) return {};
  // One of the same namespace.
  return std::string(suffix.substr(0, suffix.rfind('/') + 1)).append(name);
}

void KindCache::NoteSource(std::string_view suffix,
                           const std::string& before,
                           const std::string& now) {
  if (before == now) return;
  if (const auto found = copies_.find(before); found != copies_.end()) {
    found->second.erase(std::string(suffix));
    if (found->second.empty()) copies_.erase(found);
  }
  if (!now.empty()) copies_[now].emplace(suffix);
}

bool KindCache::SetAside(std::string_view suffix, const StoredObject& now, StoredObject* seen) {
  const Status readable = CheckReadable(kind_, suffix, now);
  if (readable.ok()) return false;
  REACHED("cache.set_aside");
  LOG_ERROR("{} {}, written at revision {}, is passed over: {}",
            kind_.plural,
            Quote(suffix),
            now.revision.value,
            readable.message());
  aside_.insert_or_assign(std::string(suffix), Aside{.now = now, .last = std::move(*seen)});
  return true;
}

void KindCache::Load(std::string suffix, StoredObject object) {
  changed_at_ = std::max(changed_at_, object.revision);
  StoredObject nothing;
  if (SetAside(suffix, object, &nothing)) return;
  NoteSource(suffix, "", SourceOf(suffix, object));
  objects_.emplace_hint(objects_.end(), std::move(suffix), std::move(object));
}

void KindCache::Loaded(store::Revision revision) {
  // Deletions before the load are not known, so nothing before it is.
  complete_after_ = revision;
  changed_at_ = revision;
}

void KindCache::Apply(std::string_view suffix,
                      Bytes at_rest,
                      store::Revision revision,
                      meta::SharedObject decoded) {
  CacheEvent event{.suffix = std::string(suffix),
                   .now = {.at_rest = std::move(at_rest), .revision = revision},
                   .previous = {},
                   .revision = revision,
                   .frames = std::make_shared<EventFrames>()};
  const auto at = objects_.lower_bound(suffix);
  const bool exists = at != objects_.end() && at->first == suffix;
  const std::string source = exists ? SourceOf(suffix, at->second) : std::string();
  if (exists) event.previous = std::move(at->second);
  bool was_there = exists;
  if (!aside_.empty()) {
    if (const auto aside = aside_.find(suffix); aside != aside_.end()) {
      event.previous = std::move(aside->second.last);
      aside_.erase(aside);
      was_there = true;
    }
  }
  // What was encoded here can be read.
  const bool is_gone = event.now.at_rest.empty();
  const bool is_aside = !is_gone && decoded.empty() && SetAside(suffix, event.now, &event.previous);
  if (is_gone || is_aside) {
    if (exists) objects_.erase(at);
  } else if (exists) {
    at->second = event.now;
  } else {
    objects_.emplace_hint(at, event.suffix, event.now);
  }
  NoteSource(suffix, source, is_gone || is_aside ? "" : SourceOf(suffix, event.now));
  // What a rebuild tells again was written before.
  if (was_there || !is_gone) changed_at_ = std::max(changed_at_, revision);
  // Of what nobody was shown nobody is told that it is gone.
  if (is_aside || (is_gone && event.previous.at_rest.empty())) return;
  if (!decoded.empty()) event.frames->KeepDecoded(std::move(decoded));
  Push(std::move(event));
}

void KindCache::NoteGap(store::Revision lost, store::Revision found) {
  const Gap gap{.lost = lost, .found = found};
  if (found <= lost) return;
  std::erase_if(gaps_, [this](const Gap& old) { return old.found <= complete_after_; });
  if (gaps_.size() == kGapsMax) {
    gaps_[1].lost = gaps_[0].lost;
    gaps_.erase(gaps_.begin());
  }
  gaps_.push_back(gap);
  // The store's history had brought them further than the cache was. They have read everything that
  // is in the ring, so they are idle.
  std::vector<Reader*> ahead;
  ForEachIdle([&gap, &ahead](Reader& reader) {
    if (gap.Has(reader.after_)) ahead.push_back(&reader);
  });
  for (Reader* reader : ahead) {
    REACHED("cache.gap_before_a_reader");
    reader->UnlinkIdle();
    reader->is_cut_off_ = true;
    reader->ready_ = true;
    ++ready_readers_;
    woken_.push_back(reader);
  }
}

void KindCache::Push(CacheEvent event) {
  Trim();
  ring_bytes_ += event.previous.at_rest.size();
  ring_.push_back(std::move(event));
  Offer(general_, ring_.back());
  if (!by_trigger_.empty()) OfferTriggered(ring_.back());
  DropFrames(std::max(limits_.framed_events, limits_.framed_burst));
  Evict();
}

void KindCache::Trim() {
  if (ready_readers_ == 0) DropFrames(limits_.framed_events);
}

void KindCache::DropFrames(size_t kept) {
  for (framed_ = std::max(framed_, first_); end() - framed_ > kept; ++framed_) {
    std::shared_ptr<EventFrames>& frames = ring_[framed_ - first_].frames;
    frames->Drop();  // for those too who hold the event and do not read on
    frames.reset();
  }
}

void KindCache::Offer(IdleList& list, const CacheEvent& event) {
  RegistryEvent ignored;
  for (Reader* reader = list.first; reader != nullptr;) {
    Reader* next = reader->idle_next_;
    const Matcher& matcher = reader->matcher_;
    const bool concerns =
        event.revision > reader->after_ &&
        (matcher.takes_all() ? matcher.InScope(event.suffix) : Translate(event, matcher, ignored));
    if (concerns) {
      reader->UnlinkIdle();
      reader->position_ = end() - 1;
      reader->ready_ = true;
      ++ready_readers_;
      woken_.push_back(reader);
    }
    reader = next;
  }
}

void KindCache::OfferTriggered(const CacheEvent& event) {
  const std::string_view now = TriggerOf(event.now);
  const auto entering = by_trigger_.find(now);
  if (entering != by_trigger_.end()) Offer(entering->second, event);
  const std::string_view before = TriggerOf(event.previous);
  if (before == now) return;
  const auto leaving = by_trigger_.find(before);
  if (leaving != by_trigger_.end()) Offer(leaving->second, event);
}

std::string_view KindCache::TriggerOf(const StoredObject& object) const {
  if (object.at_rest.empty()) return {};
  const Result<meta::AtRestView> view = meta::AtRestView::Parse(object.at_rest.view());
  return view.ok() ? view->FieldValue(trigger_) : std::string_view();
}

KindCache::IdleList& KindCache::ListFor(const Matcher& matcher) {
  IdleList* list = &general_;
  if (trigger_ != kNoTrigger) {
    const std::optional<std::string_view> value =
        matcher.selection().fields.RequiredValue(kind_.field_selectors[trigger_]);
    // An unbound object and one that is not there have the same empty trigger.
    if (value && !value->empty()) {
      list = &by_trigger_[std::string(*value)];
      list->trigger = *value;
    }
  }
  ++list->readers;
  return *list;
}

void KindCache::LeaveList(IdleList& list) {
  if (--list.readers == 0 && !list.trigger.empty()) by_trigger_.erase(std::string(list.trigger));
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
  for (Reader* reader = general_.first; reader != nullptr; reader = reader->idle_next_) {
    visit(*reader);
  }
  for (const auto& [trigger, list] : by_trigger_) {
    for (Reader* reader = list.first; reader != nullptr; reader = reader->idle_next_) {
      visit(*reader);
    }
  }
}

KindCache::Reader::Reader(KindCache& cache, const Matcher& matcher, store::Revision after)
    : cache_(cache), matcher_(matcher), after_(after), list_(cache.ListFor(matcher)) {
  CHECK(cache.HasAllAfter(after));
  ++cache_.readers_;
  const auto start = std::ranges::upper_bound(
      cache_.ring_, after, {}, [](const CacheEvent& e) { return e.revision; });
  if (start == cache_.ring_.end()) {
    LinkIdle();
  } else {
    ready_ = true;
    ++cache_.ready_readers_;
    position_ = cache_.first_ + static_cast<uint64_t>(start - cache_.ring_.begin());
  }
}

KindCache::Reader::~Reader() {
  --cache_.readers_;
  if (ready_) --cache_.ready_readers_;
  if (idle_) UnlinkIdle();
  std::erase(cache_.woken_, this);
  cache_.LeaveList(list_);
}

Status KindCache::Reader::Read(size_t limit, std::vector<RegistryEvent>& out) {
  if (!ready_) return OkStatus();
  if (is_cut_off_) {
    return Expired("changes of " + std::string(cache_.kind_.plural) +
                   " behind this watch were missed; list again");
  }
  if (position_ < cache_.first_) {
    REACHED("cache.slow_watcher");
    return Expired("the watch fell behind by more than " + std::to_string(cache_.limits_.events) +
                   " events of " + std::string(cache_.kind_.plural) + "; list again");
  }
  RegistryEvent event;
  for (; position_ < cache_.end(); ++position_) {
    const CacheEvent& cached = cache_.ring_[position_ - cache_.first_];
    // What was committed together is read together: a revision is a place to go on from.
    if (out.size() >= limit && cached.revision > out.back().object.revision) break;
    if (cached.revision <= after_) continue;
    if (Translate(cached, matcher_, event)) out.push_back(std::move(event));
  }
  if (position_ == cache_.end()) {
    ready_ = false;
    LinkIdle();
    --cache_.ready_readers_;  // what it has just got may still be shared: Trim comes later
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
  idle_next_ = list_.first;
  if (idle_next_ != nullptr) idle_next_->idle_previous_ = this;
  list_.first = this;
}

void KindCache::Reader::UnlinkIdle() {
  idle_ = false;
  (idle_previous_ == nullptr ? list_.first : idle_previous_->idle_next_) = idle_next_;
  if (idle_next_ != nullptr) idle_next_->idle_previous_ = idle_previous_;
  idle_previous_ = idle_next_ = nullptr;
}

}  // namespace berth::apiserver
