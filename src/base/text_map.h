// SPDX-License-Identifier: Apache-2.0
// TextMap finds values by text with one look into memory, where a tree of strings takes a dozen. It
// is used like std::map; it is iterated in the order in which keys came, so nothing can come to
// depend on the order of hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace berth {

// Entries stay where they are until they are erased; so do iterators. Moved-from maps are empty.
template <class Value>
class TextMap {
 public:
  using value_type = std::pair<const std::string, Value>;

 private:
  struct Entry {
    template <class... Args>
    Entry(size_t hash, std::string_view key, Args&&... args)
        : item(std::piecewise_construct,
               std::forward_as_tuple(key),
               std::forward_as_tuple(std::forward<Args>(args)...)),
          hash(hash) {}
    value_type item;
    const size_t hash;
    Entry* before = nullptr;
    Entry* after = nullptr;
  };

  template <class Item>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = TextMap::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = Item*;
    using reference = Item&;

    Iterator() = default;
    // From an iterator that may write to one that may not.
    template <class Other>
      requires std::is_same_v<const Other, Item>
    Iterator(const Iterator<Other>& other) : entry_(other.entry_) {}

    Item& operator*() const { return entry_->item; }
    Item* operator->() const { return &entry_->item; }
    Iterator& operator++() {
      entry_ = entry_->after;
      return *this;
    }
    Iterator operator++(int) {
      Iterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const Iterator&) const = default;

   private:
    friend class TextMap;
    template <class>
    friend class Iterator;
    explicit Iterator(Entry* entry) : entry_(entry) {}
    Entry* entry_ = nullptr;
  };

 public:
  using iterator = Iterator<value_type>;
  using const_iterator = Iterator<const value_type>;

  TextMap() = default;
  TextMap(TextMap&& other) noexcept { Swap(other); }
  TextMap& operator=(TextMap&& other) noexcept {
    TextMap taken(std::move(other));
    Swap(taken);
    return *this;
  }
  ~TextMap() { clear(); }

  iterator begin() { return iterator(first_); }
  iterator end() { return iterator(); }
  const_iterator begin() const { return const_iterator(first_); }
  const_iterator end() const { return const_iterator(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  iterator find(std::string_view key) { return iterator(Look(HashOf(key), key)); }
  const_iterator find(std::string_view key) const { return const_iterator(Look(HashOf(key), key)); }
  bool contains(std::string_view key) const { return Look(HashOf(key), key) != nullptr; }
  // REQUIRES: it is there.
  Value& at(std::string_view key) {
    Entry* entry = Look(HashOf(key), key);
    CHECK(entry != nullptr) << key;
    return entry->item.second;
  }
  const Value& at(std::string_view key) const { return const_cast<TextMap&>(*this).at(key); }
  Value& operator[](std::string_view key) { return try_emplace(key).first->second; }

  template <class... Args>
  std::pair<iterator, bool> try_emplace(std::string_view key, Args&&... args) {
    const size_t hash = HashOf(key);
    if (Entry* entry = Look(hash, key)) return {iterator(entry), false};
    return {iterator(Add(new Entry(hash, key, std::forward<Args>(args)...))), true};
  }
  template <class Other>
  std::pair<iterator, bool> emplace(std::string_view key, Other&& value) {
    return try_emplace(key, std::forward<Other>(value));
  }
  template <class Other>
  std::pair<iterator, bool> insert_or_assign(std::string_view key, Other&& value) {
    const size_t hash = HashOf(key);
    if (Entry* entry = Look(hash, key)) {
      entry->item.second = std::forward<Other>(value);
      return {iterator(entry), false};
    }
    return {iterator(Add(new Entry(hash, key, std::forward<Other>(value)))), true};
  }

  // The iterator behind it.
  iterator erase(const_iterator at) {
    Entry* entry = at.entry_;
    Entry* const after = entry->after;
    // Destroyed last: what it holds may look here when it goes.
    const std::unique_ptr<Entry> dropped(Remove(entry));
    return iterator(after);
  }
  iterator erase(iterator at) { return erase(const_iterator(at)); }
  size_t erase(std::string_view key) {
    Entry* entry = Look(HashOf(key), key);
    if (entry == nullptr) return 0;
    const std::unique_ptr<Entry> dropped(Remove(entry));
    return 1;
  }
  void clear() {
    while (first_ != nullptr) erase(begin());
    slots_.clear();
  }

  // As of the standard's containers.
  template <class Predicate>
  friend size_t erase_if(TextMap& map, Predicate predicate) {
    const size_t size = map.size();
    for (iterator at = map.begin(); at != map.end();) {
      at = predicate(*at) ? map.erase(at) : std::next(at);
    }
    return size - map.size();
  }

 private:
  static size_t HashOf(std::string_view key) { return std::hash<std::string_view>()(key); }

  Entry* Look(size_t hash, std::string_view key) const {
    if (slots_.empty()) return nullptr;
    const size_t mask = slots_.size() - 1;
    for (size_t slot = hash & mask; slots_[slot] != nullptr; slot = (slot + 1) & mask) {
      Entry* entry = slots_[slot];
      if (entry->hash == hash && entry->item.first == key) return entry;
    }
    return nullptr;
  }

  Entry* Add(Entry* entry) {
    if ((size_ + 1) * 4 > slots_.size() * 3) Grow();
    Put(entry);
    ++size_;
    entry->before = last_;
    (last_ != nullptr ? last_->after : first_) = entry;
    last_ = entry;
    return entry;
  }

  Entry* Remove(Entry* entry) {
    const size_t mask = slots_.size() - 1;
    size_t hole = entry->hash & mask;
    while (slots_[hole] != entry) hole = (hole + 1) & mask;
    // Whoever would be found sooner in the hole moves there, which makes the next hole.
    for (size_t next = (hole + 1) & mask; slots_[next] != nullptr; next = (next + 1) & mask) {
      const size_t home = slots_[next]->hash & mask;
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      slots_[hole] = slots_[next];
      hole = next;
    }
    slots_[hole] = nullptr;
    --size_;
    (entry->before != nullptr ? entry->before->after : first_) = entry->after;
    (entry->after != nullptr ? entry->after->before : last_) = entry->before;
    return entry;
  }

  void Put(Entry* entry) {
    const size_t mask = slots_.size() - 1;
    size_t slot = entry->hash & mask;
    while (slots_[slot] != nullptr) slot = (slot + 1) & mask;
    slots_[slot] = entry;
  }

  void Grow() {
    slots_.assign(slots_.empty() ? 8 : slots_.size() * 2, nullptr);
    for (Entry* entry = first_; entry != nullptr; entry = entry->after) Put(entry);
  }

  void Swap(TextMap& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(size_, other.size_);
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
  }

  std::vector<Entry*> slots_;  // size is a power of two, at most three quarters used
  size_t size_ = 0;
  Entry* first_ = nullptr;
  Entry* last_ = nullptr;
};

}  // namespace berth
