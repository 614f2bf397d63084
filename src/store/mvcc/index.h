// SPDX-License-Identifier: Apache-2.0
// An Index is the durable state of a store in memory: every key with its newest value, and the
// positions of its older versions since the last compaction (their values lie in the log). Pure: no
// clock, no threads, no I/O.
//
// Keys are kept sorted in leaves. A leaf knows how many of its keys are alive and when it last
// changed, so counting a range costs one step per leaf.
//
// Memory per key: 105 bytes, the key if longer than 15 bytes, the value once; 16 bytes per older
// version.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/mvcc/key_leaf.h"
#include "store/mvcc/record.h"
#include "store/store.h"

namespace berth::store {

class Index {
 public:
  struct Version {
    Revision revision;
    uint8_t sub = 0;
    bool deleted = false;
    Position at() const { return {.revision = revision, .sub = sub}; }
  };
  // The newest version of a key, perhaps its deletion.
  struct Entry {
    Bytes value;
    Revision create_revision;
    int64_t version = 0;
    LeaseId lease;
    Version newest;
    std::unique_ptr<std::vector<Version>> older;  // ascending; null: none
  };

  // The newest state of the key; null if it is absent. Valid until the next change.
  const Entry* Find(std::string_view key) const;

  // Takes over a durable record. REQUIRES: positions only grow.
  void Apply(const Record& record);

  struct Page {
    std::vector<KeyValue> items;
    // Items whose version is not the newest: only their key is set, the rest lies in the log.
    std::vector<std::pair<size_t, Position>> in_log;
    bool more = false;
    size_t count = 0;
  };
  // The state at a revision. REQUIRES: `at` is not compacted.
  Page Range(const RangeRequest& request, Revision at) const;

  struct Swept {
    std::vector<Position> erased;     // the log need not keep these
    std::optional<std::string> next;  // where to go on; nullopt: the end was reached
  };
  // One step of compaction: forgets what no read at or after `compacted` can see, in about `keys`
  // keys from `from` on, or fewer if there is much to forget.
  Swept Sweep(std::string_view from, Revision compacted, size_t keys);

  // Every key that is alive, in order.
  template <class Fn>
  void ForEach(Fn fn) const {
    for (const Place& place : leaves_) {
      const Items& items = place.leaf->items;
      for (size_t i = 0; i < items.size(); ++i) {
        if (!items[i].entry.newest.deleted) fn(items[i].key, items[i].entry);
      }
    }
  }
  size_t size() const { return live_; }

 private:
  friend class IndexBuilder;
  // 10,000 deletions are 250 KB for the log and about 2 ms.
  static constexpr size_t kSweepErased = 10'000;

  using Items = KeyLeaf<Entry>;
  using Item = Items::Item;
  struct Leaf {
    Items items;  // never empty
    size_t live = 0;
    Revision changed;  // no item is newer than this
  };
  struct Place {
    // Keys from here to the next place's belong to the leaf; those before all of them to the first.
    std::string low;
    std::unique_ptr<Leaf> leaf;
  };

  // Makes `record` the newest version of its key.
  static void Supersede(Entry& entry, const Record& record);
  size_t LeafOf(std::string_view key) const;
  Item& Insert(std::string_view key, Leaf*& leaf);
  Leaf* Split(size_t number, std::string_view key);
  void SweepLeaf(Leaf& leaf, Revision compacted, std::vector<Position>& erased);

  std::vector<Place> leaves_;  // in the order of keys
  size_t live_ = 0;
};

}  // namespace berth::store
