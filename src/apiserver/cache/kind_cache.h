// SPDX-License-Identifier: Apache-2.0
// A KindCache holds the present objects of one kind, sorted by key, and its most recent events. The
// events are one ring that all watchers of the kind read; a watcher owns a position in it and no
// queue of its own, so an event costs a watcher nothing until it is read.
//
//   idle watcher     has read everything; an event that concerns it makes it ready
//   ready watcher    has a position; it becomes idle when it has read to the end of the ring
//
// An idle watcher cannot fall behind: events that do not concern it pass by. A ready one that does
// not read before its position leaves the ring is cut off.
//
// What cannot be read, because somebody else wrote it or it was damaged, and what is named
// otherwise than its key, is set aside: it is in no list, and its watchers keep the last state that
// could be read, so that one object does not keep everybody from all others (ADR 0038).
//
// Readers that select by the pool that an object is bound to (spec.machinePoolRef.name=p) idle in a
// list of their own per pool: with one watch per pool, an event looks at the watches of two pools
// and not of all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/cache/matcher.h"
#include "apiserver/registry.h"
#include "base/time.h"
#include "store/store.h"

namespace berth::apiserver {

// One change of one object.
struct CacheEvent {
  std::string suffix;
  StoredObject now;       // at_rest is empty: deleted
  StoredObject previous;  // at_rest is empty: new
  store::Revision revision;
  std::shared_ptr<EventFrames> frames;  // null once they are dropped
};

// What an event is for a reader with this selection; false if it does not concern the reader.
bool Translate(const CacheEvent& event, const Matcher& matcher, RegistryEvent& out);

// Whether its header can be read and its metadata names the key: `suffix` is what follows the
// kind's prefix. A body that cannot be decoded is found by whoever decodes it.
Status CheckReadable(const meta::KindInfo& kind,
                     std::string_view suffix,
                     const StoredObject& object);

struct RingLimits {
  // 8,192 events * 130 bytes = 1 MiB per busy kind.
  size_t events = 8'192;
  // States that only the ring still holds: some 5,000 changes of machines. Who is further behind
  // comes again and goes on from the store's history.
  size_t bytes = 4 * 1024 * 1024;
  // The newest events keep their encoded frames and the object itself: readers that keep up share
  // them. 256 frames * 2 KiB = 512 KiB per form.
  size_t framed_events = 256;
  // The same while some reader still has to read: a burst is decoded once, and not by each of them.
  // 4,096 * 4 KiB = 16 MiB for as long as the burst lasts.
  size_t framed_burst = 4'096;
};

class KindCache {
  struct IdleList;

 public:
  using Objects = std::map<std::string, StoredObject, std::less<>>;
  // An object that cannot be read.
  struct Aside {
    StoredObject now;
    StoredObject last;  // what watchers were shown last; at_rest is empty: nothing
  };
  using Asides = std::map<std::string, Aside, std::less<>>;

  // A place where a watcher waits for events. Registered while it lives.
  class Reader {
   public:
    // REQUIRES: the cache has every event after `after`.
    Reader(KindCache& cache, const Matcher& matcher, store::Revision after);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    bool is_ready() const { return ready_; }
    // Up to `limit` events for the reader, or none; commits come whole. Expired if it fell behind.
    Status Read(size_t limit, std::vector<RegistryEvent>& out);
    // Called at the end of a batch that made the reader ready. May not touch the cache.
    void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }
    // Called when the reader is idle and had no bookmark for that long.
    void set_bookmark(Time now, std::function<void()> bookmark) {
      seen_at_ = now;
      bookmark_ = std::move(bookmark);
    }
    void OfferBookmark(Time now, Duration interval);

   private:
    friend class KindCache;
    void LinkIdle();
    void UnlinkIdle();

    KindCache& cache_;
    const Matcher& matcher_;
    store::Revision after_;  // events up to here are not for this reader
    uint64_t position_ = 0;  // of the next event to read, while ready
    bool ready_ = false;
    bool is_cut_off_ = false;  // by a gap
    std::function<void()> wake_;
    std::function<void()> bookmark_;
    Time seen_at_;    // when the last event or bookmark was due
    IdleList& list_;  // where it idles
    Reader* idle_previous_ = nullptr;
    Reader* idle_next_ = nullptr;
    bool idle_ = false;
  };

  KindCache(const meta::KindInfo& kind, RingLimits limits);
  ~KindCache();
  KindCache(const KindCache&) = delete;
  KindCache& operator=(const KindCache&) = delete;

  const meta::KindInfo& kind() const { return kind_; }
  const std::string& prefix() const { return prefix_; }
  const Objects& objects() const { return objects_; }
  // Null if there is none that can be read. Valid until the next Apply.
  const StoredObject* Find(std::string_view suffix) const;
  const Asides& aside() const { return aside_; }
  // Null if there is none, or it can be read. Valid until the next Apply.
  const StoredObject* FindAside(std::string_view suffix) const;
  // Keys of the objects that begin with a copy of that one (spec.dataSource), in order. Valid until
  // the next Apply.
  const std::set<std::string>& CopiesOf(std::string_view suffix) const;
  // Whether the ring has every event with a greater revision.
  bool HasAllAfter(store::Revision revision) const {
    return revision >= complete_after_ && !IsInGap(revision);
  }
  // Whether the present objects are those of that revision too. REQUIRES: the cache has it.
  bool IsUnchangedSince(store::Revision revision) const {
    return revision >= changed_at_ && !IsInGap(revision);
  }

  // The initial state, in key order, then where it ends.
  void Load(std::string suffix, StoredObject object);
  void Loaded(store::Revision revision);
  // A change. An empty at_rest deletes. `decoded` is the same object, if somebody has it.
  void Apply(std::string_view suffix,
             Bytes at_rest,
             store::Revision revision,
             meta::SharedObject decoded = {});
  // The events from `lost` on and up to `found` were missed: what differs at `found` is applied
  // next, from `lost` on. That is right for readers that begin before, but nobody can begin in
  // between, and readers that are there already are cut off.
  void NoteGap(store::Revision lost, store::Revision found);
  // Wakes the readers that Apply has made ready.
  void EndBatch();
  // Wakes the idle readers too, to see that the cache is closed.
  void WakeAll();
  // Lets go of what only a burst needs, if every reader has read it.
  void Trim();
  // Calls visit for every idle reader.
  void ForEachIdle(const std::function<void(Reader&)>& visit);

 private:
  struct Gap {
    store::Revision lost;
    store::Revision found;
    bool Has(store::Revision revision) const { return lost <= revision && revision < found; }
  };
  bool IsInGap(store::Revision revision) const {
    return std::ranges::any_of(gaps_, [revision](const Gap& gap) { return gap.Has(revision); });
  }
  // Readers that wait for the same events.
  struct IdleList {
    Reader* first = nullptr;
    size_t readers = 0;   // idle or not
    std::string trigger;  // the key in by_trigger_; "" for the general list
  };
  IdleList& ListFor(const Matcher& matcher);
  void LeaveList(IdleList& list);
  void Offer(IdleList& list, const CacheEvent& event);
  void OfferTriggered(const CacheEvent& event);
  std::string_view TriggerOf(const StoredObject& object) const;
  // The key of what the object is a copy of; "" if of nothing.
  std::string SourceOf(std::string_view suffix, const StoredObject& object) const;
  void NoteSource(std::string_view suffix, const std::string& before, const std::string& now);
  // Whether it cannot be read and was set aside; `seen` is what watchers know of it.
  bool SetAside(std::string_view suffix, const StoredObject& now, StoredObject* seen);
  void Push(CacheEvent event);
  void Evict();
  void DropFrames(size_t kept);
  uint64_t end() const { return first_ + ring_.size(); }

  const meta::KindInfo& kind_;
  const std::string prefix_;
  const RingLimits limits_;
  Objects objects_;
  Asides aside_;
  std::map<std::string, std::set<std::string>, std::less<>> copies_;  // by key of their source
  std::deque<CacheEvent> ring_;
  uint64_t first_ = 0;   // position of ring_.front()
  uint64_t framed_ = 0;  // position of the oldest event that has its frames
  size_t ring_bytes_ = 0;
  store::Revision complete_after_;
  store::Revision changed_at_;
  std::vector<Gap> gaps_;  // as far as the ring and changed_at_ do not tell, oldest first
  const size_t trigger_;   // index of the field selector that idle readers are sorted by
  const size_t source_;    // of the one that names what an object is a copy of
  IdleList general_;
  std::map<std::string, IdleList, std::less<>> by_trigger_;
  std::vector<Reader*> woken_;
  size_t readers_ = 0;
  size_t ready_readers_ = 0;
};

}  // namespace berth::apiserver
