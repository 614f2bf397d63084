// SPDX-License-Identifier: Apache-2.0
// Finds members of an object by key; with many members through a hash, so that merging two objects
// of 100,000 members each is not quadratic.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/strings.h"
#include "meta/value.h"

namespace berth::meta::internal {

class MemberIndex {
 public:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  // REQUIRES: an object. Members are only added through Append while the index is used.
  explicit MemberIndex(Value& object) : members_(object.members()) {
    constexpr size_t kLinear = 16;
    if (members_.size() <= kLinear) return;
    for (size_t i = 0; i < members_.size(); ++i) index_.emplace(members_[i].key, i);
  }

  size_t Find(std::string_view key) const {
    if (!index_.empty()) {
      const auto found = index_.find(key);
      return found == index_.end() ? kNone : found->second;
    }
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].key == key) return i;
    }
    return kNone;
  }
  Value& at(size_t index) { return members_[index].value; }
  void Append(std::string_view key, Value value) {
    if (!index_.empty()) index_.emplace(key, members_.size());
    members_.push_back({std::string(key), std::move(value)});
  }
  // Sets or appends.
  void Put(std::string_view key, Value value) {
    const size_t at_index = Find(key);
    if (at_index == kNone) {
      Append(key, std::move(value));
    } else {
      members_[at_index].value = std::move(value);
    }
  }
  // Marks a member; Finish takes the marked ones out.
  void Remove(size_t index) { removed_.push_back(index); }
  void Finish() {
    if (removed_.empty()) return;
    std::vector<bool> gone(members_.size(), false);
    for (const size_t index : removed_) gone[index] = true;
    size_t kept = 0;
    for (size_t i = 0; i < members_.size(); ++i) {
      if (gone[i]) continue;
      if (kept != i) members_[kept] = std::move(members_[i]);
      ++kept;
    }
    members_.resize(kept);
  }

 private:
  std::vector<Value::Member>& members_;
  std::unordered_map<std::string, size_t, StringHash, std::equal_to<>> index_;
  std::vector<size_t> removed_;
};

}  // namespace berth::meta::internal
