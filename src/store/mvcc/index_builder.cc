// SPDX-License-Identifier: Apache-2.0
#include "store/mvcc/index_builder.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace berth::store {
namespace {

// The next eight bytes of a key, as a number that sorts like them.
struct Keyed {
  uint64_t digest = 0;
  std::string_view key;
  uint32_t item = 0;
};

constexpr size_t kDigestBytes = 8;
constexpr size_t kFewKeys = 8;

uint64_t DigestAt(std::string_view key, size_t depth) {
  uint64_t digest = 0;
  for (size_t i = depth; i < depth + kDigestBytes; ++i) {
    digest = digest << 8 | (i < key.size() ? static_cast<uint8_t>(key[i]) : 0);
  }
  return digest;
}

// The length of what all keys have in common.
size_t CommonPrefix(std::span<const Keyed> keys, size_t depth) {
  const std::string_view first = keys.front().key;
  size_t common = first.size();
  for (const Keyed& keyed : keys) {
    const std::string_view key = keyed.key;
    size_t same = depth;
    const size_t limit = std::min(common, key.size());
    while (same < limit && key[same] == first[same]) ++same;
    common = same;
  }
  return common;
}

// Keys share long prefixes ("/registry/machines/default/..."), so comparing whole keys reads much
// memory to no avail: sort by eight bytes behind the common prefix, then each run of equals.
void SortKeys(std::span<Keyed> keys, size_t depth) {
  const bool some_end_here =
      std::ranges::any_of(keys, [depth](const Keyed& keyed) { return keyed.key.size() <= depth; });
  if (keys.size() <= kFewKeys || some_end_here) {
    std::ranges::sort(keys, {}, &Keyed::key);
    return;
  }
  const size_t common = CommonPrefix(keys, depth);
  for (Keyed& keyed : keys) keyed.digest = DigestAt(keyed.key, common);
  std::ranges::sort(keys, {}, &Keyed::digest);
  for (size_t begin = 0; begin < keys.size();) {
    size_t end = begin + 1;
    while (end < keys.size() && keys[end].digest == keys[begin].digest) ++end;
    if (end - begin > 1) SortKeys(keys.subspan(begin, end - begin), common + kDigestBytes);
    begin = end;
  }
}

}  // namespace

void IndexBuilder::Grow() {
  slots_.assign(std::max<size_t>(1'024, slots_.size() * 2), 0);
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < items_.size(); ++i) {
    size_t slot = std::hash<std::string_view>{}(items_[i].key) & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

Index::Item& IndexBuilder::Find(std::string_view key) {
  if (items_.size() * 2 >= slots_.size()) Grow();
  const size_t mask = slots_.size() - 1;
  size_t slot = std::hash<std::string_view>{}(key)&mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    Index::Item& item = items_[slots_[slot] - 1];
    if (item.key == key) return item;
  }
  slots_[slot] = static_cast<uint32_t>(items_.size() + 1);
  Index::Item& item = items_.emplace_back();
  item.key = key;
  return item;
}

void IndexBuilder::Add(const Record& record) {
  Index::Entry& entry = Find(record.key).entry;
  Index::Supersede(entry, record);
}

Index IndexBuilder::Take() {
  slots_ = {};
  std::vector<Keyed> order(items_.size());
  for (size_t i = 0; i < items_.size(); ++i) {
    order[i] = {.digest = 0, .key = items_[i].key, .item = static_cast<uint32_t>(i)};
  }
  SortKeys(order, 0);
  Index index;
  for (const Keyed& keyed : order) {
    Index::Item& item = items_[keyed.item];
    // Three quarters full: there is room for the keys of tomorrow.
    if (index.leaves_.empty() ||
        index.leaves_.back().leaf->items.size() >= Index::Items::kKeysMax * 3 / 4) {
      index.leaves_.push_back({.low = item.key, .leaf = std::make_unique<Index::Leaf>()});
    }
    Index::Leaf& leaf = *index.leaves_.back().leaf;
    leaf.changed = std::max(leaf.changed, item.entry.newest.revision);
    leaf.live += item.entry.newest.deleted ? 0 : 1;
    index.live_ += item.entry.newest.deleted ? 0 : 1;
    leaf.items.Insert(leaf.items.size(), std::move(item));
  }
  items_.clear();
  items_.shrink_to_fit();
  return index;
}

}  // namespace berth::store
