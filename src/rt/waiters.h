// SPDX-License-Identifier: Apache-2.0
// Waiters is the queue behind channels, gates and events: tasks that wait, first come first served.
#pragma once

#include <list>
#include <utility>

#include "base/check.h"
#include "rt/leaf.h"
#include "rt/task.h"

namespace berth::rt {

template <class T>
class Waiters {
 public:
  Waiters() = default;
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;
  ~Waiters() { CHECK(queue_.empty()) << "tasks still wait on an object that is destroyed"; }

  // Waits until CompleteFirst or CompleteAll reaches this task, or Cancelled.
  Task<T> Wait() {
    Waiter waiter;
    waiter.place = queue_.insert(queue_.end(), &waiter);
    T value = co_await waiter.leaf;
    // Completed waiters are out of the queue already, and the queue itself may be gone by now.
    if (waiter.queued) queue_.erase(waiter.place);
    co_return value;
  }

  // Gives `value` to the first waiter that was not cancelled. False, and `value` is untouched, if
  // nobody waits.
  bool CompleteFirst(T&& value) {
    while (!queue_.empty()) {
      Waiter& waiter = *queue_.front();
      waiter.queued = false;
      queue_.pop_front();
      if (waiter.leaf.completed()) continue;  // cancelled, not yet resumed
      waiter.leaf.Complete(std::move(value));
      return true;
    }
    return false;
  }
  void CompleteAll(const T& value) {
    while (!queue_.empty()) CompleteFirst(T(value));
  }
  bool empty() const { return queue_.empty(); }

 private:
  struct Waiter {
    Leaf<T> leaf;
    bool queued = true;
    typename std::list<Waiter*>::iterator place;
  };
  std::list<Waiter*> queue_;
};

}  // namespace berth::rt
