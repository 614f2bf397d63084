// SPDX-License-Identifier: Apache-2.0
// FollowState is how well a kind is followed: whether it was ever read whole, and for how long it
// cannot be followed. Whoever lists and watches tells it what happens.
#pragma once

#include <optional>

#include "base/time.h"
#include "rt/loop.h"

namespace berth::client {

class FollowState {
 public:
  // The loop outlives this.
  explicit FollowState(rt::Loop& loop) : loop_(&loop) {}

  // All that there is was told.
  void OnListed() { synced_ = true; }
  void OnWatchBegin() { watching_since_ = loop_->Now(); }
  // Something came that shows that it can be followed.
  void OnNews() { failing_since_.reset(); }
  // The watch is over. Not a failure: a list is needed again, as after a long pause.
  void OnWatchEnd() { watching_since_.reset(); }
  // A list or a watch failed.
  void OnFailure() {
    if (!failing_since_ || IsSteady()) failing_since_ = loop_->Now();
    OnWatchEnd();
  }

  // The first list is complete.
  bool synced() const { return synced_; }
  // For how long nothing but failures has come; zero while it is followed.
  Duration failing() const {
    return !failing_since_ || IsSteady() ? Duration() : loop_->Now() - *failing_since_;
  }

 private:
  // A watch that is silent for this long is a good one: bookmarks may come once a minute only.
  static constexpr Duration kSteady = Duration::Seconds(10);
  bool IsSteady() const { return watching_since_ && loop_->Now() - *watching_since_ >= kSteady; }

  rt::Loop* loop_;
  bool synced_ = false;
  std::optional<Time> failing_since_;   // the first failure after the last news
  std::optional<Time> watching_since_;  // of the watch that is open
};

}  // namespace berth::client
