// SPDX-License-Identifier: Apache-2.0
// A Channel<T> is a bounded queue between tasks of one loop, first in first out.
//
// Invariants: 1. At most `capacity` values are queued. 2. A value that a receiver was given is not
// lost, even if the receiver is cancelled in the same turn. 3. Senders and receivers are served in
// the order in which they came.
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "rt/leaf.h"
#include "rt/task.h"
#include "rt/waiters.h"

namespace berth::rt {

template <class T>
class Channel {
 public:
  // REQUIRES: capacity > 0.
  explicit Channel(size_t capacity) : capacity_(capacity) { CHECK(capacity > 0); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() { CHECK(senders_.empty()) << "senders still wait on a channel that is destroyed"; }

  // Waits while the channel is full. Unavailable once it is closed; Cancelled. The value is dropped
  // in both cases.
  Task<Status> Send(T value) {
    if (TrySendKeeping(value)) co_return OkStatus();
    if (closed_) co_return Unavailable("channel is closed");
    Sender sender{.value = std::move(value)};
    sender.place = senders_.insert(senders_.end(), &sender);
    Status status = co_await sender.leaf;
    if (sender.queued) senders_.erase(sender.place);
    co_return status;
  }

  // False if the channel is full or closed; the value is dropped then.
  [[nodiscard]] bool TrySend(T value) { return TrySendKeeping(value); }

  // Waits for a value. Unavailable once the channel is closed and drained; Cancelled.
  Task<Result<T>> Receive() {
    if (std::optional<T> value = TryReceive()) co_return *std::move(value);
    if (closed_) co_return Unavailable("channel is closed");
    co_return co_await receivers_.Wait();
  }
  std::optional<T> TryReceive() {
    if (queue_.empty()) return std::nullopt;
    std::optional<T> value(std::move(queue_.front()));
    queue_.pop_front();
    AdmitSender();
    return value;
  }

  // No more values: what is queued can still be received, waiting senders fail. Idempotent.
  void Close() {
    closed_ = true;
    while (Sender* sender = PopSender()) {
      sender->leaf.Complete(Unavailable("channel is closed"));
    }
    // A receiver waits only while the queue is empty.
    while (receivers_.CompleteFirst(Unavailable("channel is closed"))) {
    }
  }

  size_t size() const { return queue_.size(); }
  size_t capacity() const { return capacity_; }
  bool closed() const { return closed_; }

 private:
  struct Sender {
    T value;
    Leaf<Status> leaf{};
    bool queued = true;
    typename std::list<Sender*>::iterator place{};
  };

  bool TrySendKeeping(T& value) {
    if (closed_ || queue_.size() >= capacity_) return false;
    if (!receivers_.empty()) {
      Result<T> result(std::move(value));
      if (receivers_.CompleteFirst(std::move(result))) return true;
      queue_.push_back(*std::move(result));  // all who waited were cancelled
      return true;
    }
    queue_.push_back(std::move(value));
    return true;
  }
  Sender* PopSender() {
    while (!senders_.empty()) {
      Sender* sender = senders_.front();
      senders_.pop_front();
      sender->queued = false;
      if (!sender->leaf.completed()) return sender;
    }
    return nullptr;
  }
  void AdmitSender() {
    Sender* sender = PopSender();
    if (sender == nullptr) return;
    queue_.push_back(std::move(sender->value));
    sender->leaf.Complete(OkStatus());
  }

  const size_t capacity_;
  bool closed_ = false;
  std::deque<T> queue_;
  std::list<Sender*> senders_;
  Waiters<Result<T>> receivers_;
};

}  // namespace berth::rt
