// SPDX-License-Identifier: Apache-2.0
// A BodyBudget bounds the bytes of all bodies that are being read. Nobody knows yet who sends them,
// and 10,000 connections that never end theirs could hold 30 GB.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <utility>

namespace berth::net {

class BodyBudget {
 public:
  // Not counted of any body, so that small requests do not depend on others:
  // 10,000 connections * 16 KiB = 160 MiB.
  static constexpr size_t kFree = size_t{16} * 1024;

  // One body while it is read.
  class Body {
   public:
    // `give_up` is called at most once, in the Grow() of another one; it ends the reading soon.
    Body(BodyBudget& budget, std::function<void()> give_up)
        : budget_(budget), give_up_(std::move(give_up)) {}
    ~Body() { Leave(); }
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;

    // So many bytes of it are there. If all together are too many, the one that has been coming for
    // longest is given up: who sends as fast as others is done before.
    void Grow(size_t bytes) {
      if (bytes <= kFree || is_given_up_) return;
      if (counted_ == 0) place_ = budget_.bodies_.insert(budget_.bodies_.end(), this);
      budget_.bytes_ += bytes - kFree - counted_;
      counted_ = bytes - kFree;
      while (budget_.bytes_ > budget_.limit_) budget_.bodies_.front()->GiveUp();
    }
    bool is_given_up() const { return is_given_up_; }

   private:
    void Leave() {
      if (counted_ == 0) return;
      budget_.bytes_ -= std::exchange(counted_, 0);
      budget_.bodies_.erase(place_);
    }
    void GiveUp() {
      is_given_up_ = true;
      Leave();
      give_up_();
    }

    BodyBudget& budget_;
    const std::function<void()> give_up_;
    size_t counted_ = 0;  // zero: not in the list
    std::list<Body*>::iterator place_;
    bool is_given_up_ = false;
  };

  explicit BodyBudget(size_t limit) : limit_(limit) {}
  BodyBudget(const BodyBudget&) = delete;
  BodyBudget& operator=(const BodyBudget&) = delete;

  size_t bytes() const { return bytes_; }

 private:
  const size_t limit_;
  size_t bytes_ = 0;
  std::list<Body*> bodies_;  // that count, the oldest first
};

}  // namespace berth::net
