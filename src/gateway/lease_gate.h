// SPDX-License-Identifier: Apache-2.0
// A LeaseGate lets hosts in when many come at once: those first whose lease ends first (3.5).
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/time.h"
#include "rt/leaf.h"
#include "rt/task.h"

namespace berth::gateway {

class LeaseGate {
 public:
  explicit LeaseGate(size_t limit) : limit_(limit) {}
  ~LeaseGate() { CHECK(inside_ == 0 && waiting_.empty()); }
  LeaseGate(const LeaseGate&) = delete;
  LeaseGate& operator=(const LeaseGate&) = delete;

  // Lets go of a place when it is destroyed.
  class Place {
   public:
    explicit Place(LeaseGate& gate) : gate_(&gate) {}
    Place(Place&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (gate_ != nullptr) gate_->Leave();
    }

   private:
    LeaseGate* gate_;
  };

  // Waits for a place; Cancelled.
  rt::Task<Result<Place>> Enter(Duration lease_left) {
    if (inside_ < limit_) {
      ++inside_;
      co_return Place(*this);
    }
    rt::Leaf<Status> leaf;
    const auto at = waiting_.emplace(lease_left, &leaf);
    const Status status = co_await leaf;
    if (status.ok()) co_return Place(*this);  // the one who left has made room and taken us out
    waiting_.erase(at);
    co_return status;
  }

 private:
  void Leave() {
    for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
      if (at->second->completed()) continue;  // cancelled, and about to take itself out
      at->second->Complete(OkStatus());
      waiting_.erase(at);
      return;
    }
    --inside_;
  }

  const size_t limit_;
  size_t inside_ = 0;
  std::multimap<Duration, rt::Leaf<Status>*> waiting_;
};

}  // namespace berth::gateway
