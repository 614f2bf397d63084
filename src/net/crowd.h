// SPDX-License-Identifier: Apache-2.0
// A Crowd is whoever takes up room without having shown who he is, by address and in the order of
// arrival. When room is needed the oldest of the address that has most is the one to go, so that
// whoever takes many places takes them from himself.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace berth::net {

template <class T>
class Crowd {
 private:
  struct Member {
    T* who = nullptr;
    std::map<std::string, size_t>::iterator address;
  };

 public:
  // One of the crowd until it is destroyed.
  class Place {
   public:
    Place(Crowd& crowd, typename std::list<Member>::iterator member)
        : crowd_(crowd), member_(member) {}
    ~Place() {
      if (--member_->address->second == 0) crowd_.counts_.erase(member_->address);
      crowd_.members_.erase(member_);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    Crowd& crowd_;
    typename std::list<Member>::iterator member_;
  };

  // `who` outlives the place.
  std::unique_ptr<Place> Add(std::string address, T& who) {
    const auto counted = counts_.try_emplace(std::move(address), 0).first;
    ++counted->second;
    const auto member = members_.insert(members_.end(), {.who = &who, .address = counted});
    return std::make_unique<Place>(*this, member);
  }

  size_t size() const { return members_.size(); }
  size_t CountOf(const std::string& address) const {
    const auto found = counts_.find(address);
    return found == counts_.end() ? 0 : found->second;
  }

  // Of those that may go; null: none may. Looks at everybody.
  template <class F>
  T* OldestOfMost(F may_go) const {
    const Member* oldest = nullptr;
    for (const Member& member : members_) {
      if (oldest != nullptr && member.address->second <= oldest->address->second) continue;
      if (may_go(*member.who)) oldest = &member;
    }
    return oldest == nullptr ? nullptr : oldest->who;
  }
  template <class F>
  T* OldestOf(const std::string& address, F may_go) const {
    for (const Member& member : members_) {
      if (member.address->first == address && may_go(*member.who)) return member.who;
    }
    return nullptr;
  }

 private:
  std::map<std::string, size_t> counts_;
  std::list<Member> members_;  // oldest first
};

}  // namespace berth::net
