// SPDX-License-Identifier: Apache-2.0
// A Gate limits how many tasks of one loop do something at once. Entering gives a Permit; its
// destruction lets the next one in, in the order of arrival.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "rt/task.h"
#include "rt/waiters.h"

namespace berth::rt {

class Gate {
 public:
  class Permit {
   public:
    Permit(Permit&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Permit& operator=(Permit&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Permit() {
      if (gate_ != nullptr) gate_->Leave();
    }

   private:
    friend class Gate;
    explicit Permit(Gate& gate) : gate_(&gate) {}
    Gate* gate_;
  };

  // REQUIRES: limit > 0. The gate outlives its permits.
  explicit Gate(size_t limit) : limit_(limit) { CHECK(limit > 0); }
  ~Gate() { CHECK(inside_ == 0) << "a gate is destroyed with " << inside_ << " inside"; }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Waits for a place; Cancelled.
  Task<Result<Permit>> Enter() {
    if (std::optional<Permit> permit = TryEnter()) co_return *std::move(permit);
    co_return co_await waiters_.Wait();
  }
  std::optional<Permit> TryEnter() {
    if (inside_ >= limit_) return std::nullopt;
    ++inside_;
    return Permit(*this);
  }

  size_t inside() const { return inside_; }
  size_t limit() const { return limit_; }

 private:
  void Leave() {
    --inside_;
    if (waiters_.empty()) return;
    ++inside_;  // handed over directly: nobody overtakes the one who waits
    Result<Permit> permit = Permit(*this);
    if (waiters_.CompleteFirst(std::move(permit))) return;
    --inside_;  // all who waited were cancelled
    permit->gate_ = nullptr;
  }

  const size_t limit_;
  size_t inside_ = 0;
  Waiters<Result<Permit>> waiters_;
};

}  // namespace berth::rt
