// SPDX-License-Identifier: Apache-2.0
#include "net/handshake_lane.h"

#include "base/check.h"

namespace berth::net {

HandshakeLane::~HandshakeLane() {
  CHECK(!is_busy_ && begun_ == 0) << "a lane is destroyed with " << begun_ << " handshakes";
  if (is_waiting_) loop_.CancelTimer(patience_);
}

rt::Task<Result<HandshakeLane::Turn>> HandshakeLane::Passage::Next() {
  const bool is_first = !std::exchange(has_asked_, true);
  // While nobody computes, nobody who might waits.
  const bool may_go = !lane_.is_busy_ && (!is_first || lane_.begun_ < kBegunMax);
  Result<Turn> turn = Cancelled();
  if (may_go) {
    lane_.is_busy_ = true;
    turn = Turn(lane_);
  } else {
    if (!lane_.is_busy_ && !lane_.is_waiting_) lane_.Wait();
    turn = co_await (is_first ? lane_.fresh_ : lane_.later_).Wait();
  }
  if (turn.ok() && is_first) {
    has_begun_ = true;
    ++lane_.begun_;
  }
  co_return turn;
}

HandshakeLane::Passage::~Passage() {
  if (!has_begun_) return;
  --lane_.begun_;
  lane_.Admit();
}

void HandshakeLane::EndTurn() {
  is_busy_ = false;
  Admit();
}

void HandshakeLane::Admit() {
  if (is_busy_ || GiveTurn(later_)) return;
  if (begun_ < kBegunMax) {
    GiveTurn(fresh_);
  } else if (!fresh_.empty()) {
    Wait();
  }
}

// REQUIRES: nobody computes.
void HandshakeLane::Wait() {
  if (std::exchange(is_waiting_, true)) loop_.CancelTimer(patience_);
  patience_ = loop_.After("tls.patience", kPatience, [this] {
    is_waiting_ = false;
    if (!is_busy_) GiveTurn(fresh_);
  });
}

bool HandshakeLane::GiveTurn(Queue& queue) {
  if (queue.empty()) return false;
  is_busy_ = true;  // handed over directly: nobody overtakes the one who waits
  Result<Turn> turn = Turn(*this);
  if (queue.CompleteFirst(std::move(turn))) return true;
  turn->lane_ = nullptr;  // all who waited were cancelled
  is_busy_ = false;
  return false;
}

}  // namespace berth::net
