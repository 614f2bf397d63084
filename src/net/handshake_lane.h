// SPDX-License-Identifier: Apache-2.0
// A HandshakeLane gives handshakes of one loop their turns, one at a time: each step is 1 to 2 ms
// of computing, and between two steps everybody else on the loop gets a turn.
//
// When a thousand hosts come back at once, the first of them is to be there after its own handshake
// and not after everybody's first step. So a handshake that has begun goes before a new one, and
// few are under way. A lane that nobody uses while those are waited for lets the next one begin all
// the same: peers that never answer keep nobody out.
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "rt/waiters.h"

namespace berth::net {

class HandshakeLane {
 public:
  // Handshakes under way before new ones are made to wait.
  static constexpr size_t kBegunMax = 6;
  // How long the lane stays unused for the sake of those. About the time of one handshake.
  static constexpr Duration kPatience = Duration::Millis(2);

  // The loop outlives the lane, the lane its passages and turns.
  explicit HandshakeLane(rt::Loop& loop) : loop_(loop) {}
  ~HandshakeLane();
  HandshakeLane(const HandshakeLane&) = delete;
  HandshakeLane& operator=(const HandshakeLane&) = delete;

  // Nobody else computes until it is destroyed.
  class Turn {
   public:
    Turn(Turn&& other) noexcept : lane_(std::exchange(other.lane_, nullptr)) {}
    Turn& operator=(Turn&& other) noexcept {
      std::swap(lane_, other.lane_);
      return *this;
    }
    ~Turn() {
      if (lane_ != nullptr) lane_->EndTurn();
    }

   private:
    friend class HandshakeLane;
    explicit Turn(HandshakeLane& lane) : lane_(&lane) {}
    HandshakeLane* lane_;
  };

  // One handshake, from before its first step to its end.
  class Passage {
   public:
    explicit Passage(HandshakeLane& lane) : lane_(lane) {}
    ~Passage();
    Passage(const Passage&) = delete;
    Passage& operator=(const Passage&) = delete;

    // Waits for the turn of the next step; Cancelled.
    rt::Task<Result<Turn>> Next();

   private:
    HandshakeLane& lane_;
    bool has_asked_ = false;
    bool has_begun_ = false;
  };

  size_t begun() const { return begun_; }

 private:
  using Queue = rt::Waiters<Result<Turn>>;

  void EndTurn();
  void Admit();
  void Wait();
  bool GiveTurn(Queue& queue);

  rt::Loop& loop_;
  bool is_busy_ = false;
  size_t begun_ = 0;
  bool is_waiting_ = false;  // patience_ is set
  rt::TimerId patience_;
  Queue fresh_;
  Queue later_;
};

}  // namespace berth::net
