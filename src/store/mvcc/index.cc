// SPDX-License-Identifier: Apache-2.0
#include "store/mvcc/index.h"

#include <algorithm>

#include "base/check.h"
#include "store/key_range.h"

namespace berth::store {
namespace {

// The version that a read at this revision sees; null if the key did not exist yet.
const Index::Version* VersionAt(const Index::Entry& entry, Revision at) {
  if (entry.newest.revision <= at) return &entry.newest;
  if (entry.older == nullptr) return nullptr;
  const auto behind = std::ranges::upper_bound(*entry.older, at, {}, &Index::Version::revision);
  return behind == entry.older->begin() ? nullptr : &*std::prev(behind);
}

KeyValue Describe(const std::string& key, const Index::Entry& entry, bool keys_only) {
  return {.key = key,
          .value = keys_only ? Bytes() : entry.value,
          .create_revision = entry.create_revision,
          .mod_revision = entry.newest.revision,
          .version = entry.version,
          .lease = entry.lease};
}

// Takes what no read at or after `compacted` sees off the front of the older versions, as long as
// there are not more than `max` erased.
void TrimOlder(Index::Entry& entry, Revision compacted, size_t max, std::vector<Position>& erased) {
  if (entry.older == nullptr) return;
  auto& older = *entry.older;
  auto keep = older.end();  // the newest is visible at `compacted`: nothing older is
  if (entry.newest.revision > compacted) {
    keep = std::ranges::upper_bound(older, compacted, {}, &Index::Version::revision);
    if (keep != older.begin() && !std::prev(keep)->deleted) --keep;
  }
  auto it = older.begin();
  for (; it != keep && erased.size() < max; ++it) erased.push_back(it->at());
  older.erase(older.begin(), it);
  if (older.empty()) {
    entry.older.reset();
  } else if (older.capacity() > 2 * older.size()) {
    older.shrink_to_fit();
  }
}

}  // namespace

size_t Index::LeafOf(std::string_view key) const {
  const auto behind = std::ranges::upper_bound(leaves_, key, {}, &Place::low);
  return behind == leaves_.begin() ? 0 : static_cast<size_t>(behind - leaves_.begin()) - 1;
}

const Index::Entry* Index::Find(std::string_view key) const {
  if (leaves_.empty()) return nullptr;
  const Items& items = leaves_[LeafOf(key)].leaf->items;
  const size_t at = items.LowerBound(key);
  if (!items.HasAt(at, key) || items[at].entry.newest.deleted) return nullptr;
  return &items[at].entry;
}

Index::Leaf* Index::Split(size_t number, std::string_view key) {
  Leaf& low = *leaves_[number].leaf;
  // Ascending insertion (names with a counter) leaves full leaves behind, not half-full ones.
  const bool at_end = key > low.items.back().key;
  auto high = std::make_unique<Leaf>();
  high->items = low.items.TakeFrom(at_end ? Items::kKeysMax - 1 : Items::kKeysMax / 2);
  high->changed = low.changed;
  for (size_t i = 0; i < high->items.size(); ++i) {
    high->live += high->items[i].entry.newest.deleted ? 0 : 1;
  }
  low.live -= high->live;
  const std::string& first = high->items.front().key;
  Leaf* target = key < first ? &low : high.get();
  leaves_.insert(leaves_.begin() + static_cast<ptrdiff_t>(number) + 1,
                 {.low = first, .leaf = std::move(high)});
  return target;
}

Index::Item& Index::Insert(std::string_view key, Leaf*& leaf) {
  const size_t number = leaves_.empty() ? 0 : LeafOf(key);
  if (leaves_.empty()) leaves_.push_back({.low = "", .leaf = std::make_unique<Leaf>()});
  leaf = leaves_[number].leaf.get();
  size_t at = leaf->items.LowerBound(key);
  if (leaf->items.HasAt(at, key)) return leaf->items[at];
  if (leaf->items.is_full()) {
    leaf = Split(number, key);
    at = leaf->items.LowerBound(key);
  }
  Item item{.key = std::string(key), .entry = {}};
  item.entry.newest.deleted = true;
  return leaf->items.Insert(at, std::move(item));
}

void Index::Supersede(Entry& entry, const Record& record) {
  if (entry.newest.revision.value != 0) {
    CHECK(record.at.revision > entry.newest.revision) << record.at.revision.value;
    if (entry.older == nullptr) entry.older = std::make_unique<std::vector<Version>>();
    entry.older->push_back(entry.newest);
  }
  entry.value = record.value;
  entry.create_revision = record.create_revision;
  entry.version = record.version;
  entry.lease = record.lease;
  entry.newest = {.revision = record.at.revision,
                  .sub = record.at.sub,
                  .deleted = record.type == Op::Type::kDelete};
}

void Index::Apply(const Record& record) {
  Leaf* leaf = nullptr;
  Entry& entry = Insert(record.key, leaf).entry;
  const bool was_live = !entry.newest.deleted;
  const bool is_live = record.type == Op::Type::kPut;
  leaf->changed = std::max(leaf->changed, record.at.revision);
  Supersede(entry, record);
  leaf->live += is_live ? 1 : 0;
  leaf->live -= was_live ? 1 : 0;
  live_ += is_live ? 1 : 0;
  live_ -= was_live ? 1 : 0;
}

Index::Page Index::Range(const RangeRequest& request, Revision at) const {
  Page page;
  if (leaves_.empty()) return page;
  const auto is_full = [&] { return request.limit != 0 && page.items.size() >= request.limit; };
  for (size_t number = LeafOf(request.start); number < leaves_.size(); ++number) {
    const Leaf& leaf = *leaves_[number].leaf;
    if (is_full() && leaf.changed <= at && leaf.items.front().key >= request.start &&
        !IsPastEnd(leaf.items.back().key, request.start, request.end)) {
      page.count += leaf.live;
      continue;
    }
    for (size_t i = leaf.items.LowerBound(request.start); i < leaf.items.size(); ++i) {
      const auto& [key, entry] = leaf.items[i];
      if (IsPastEnd(key, request.start, request.end)) {
        number = leaves_.size() - 1;
        break;
      }
      const Version* version = VersionAt(entry, at);
      if (version == nullptr || version->deleted) continue;
      ++page.count;
      if (is_full()) continue;
      if (version == &entry.newest) {
        page.items.push_back(Describe(key, entry, request.keys_only));
      } else {
        page.in_log.emplace_back(page.items.size(), version->at());
        page.items.emplace_back().key = key;
      }
    }
  }
  page.more = page.count > page.items.size();
  return page;
}

void Index::SweepLeaf(Leaf& leaf, Revision compacted, std::vector<Position>& erased) {
  for (size_t i = 0; i < leaf.items.size(); ++i) {
    TrimOlder(leaf.items[i].entry, compacted, kSweepErased, erased);
  }
  leaf.items.EraseIf([&](const Item& item) {
    const Version& newest = item.entry.newest;
    if (!newest.deleted || newest.revision > compacted || item.entry.older != nullptr) return false;
    erased.push_back(newest.at());
    return true;
  });
}

Index::Swept Index::Sweep(std::string_view from, Revision compacted, size_t keys) {
  Swept swept;
  if (leaves_.empty()) return swept;
  size_t seen = 0;
  size_t number = LeafOf(from);
  for (; number < leaves_.size() && seen < keys; ++number) {
    Leaf& leaf = *leaves_[number].leaf;
    seen += leaf.items.size();
    SweepLeaf(leaf, compacted, swept.erased);
    // A leaf with more history than that is visited again.
    if (swept.erased.size() >= kSweepErased && !leaf.items.empty()) break;
  }
  if (number < leaves_.size()) swept.next = leaves_[number].leaf->items.front().key;
  std::erase_if(leaves_, [](const Place& place) { return place.leaf->items.empty(); });
  return swept;
}

}  // namespace berth::store
