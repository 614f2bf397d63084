// SPDX-License-Identifier: Apache-2.0
// A BriefSeat is a seat of the gate for what is sent: seats are for computing, not for clients that
// read slowly. On the gate's loop.
#pragma once

#include "apiserver/fairness/request_gate.h"
#include "base/time.h"
#include "rt/loop.h"

namespace berth::apiserver {

class BriefSeat {
 public:
  // How long an answer that is being sent keeps others from being worked on: as long as the largest
  // list takes to be encoded.
  static constexpr Duration kSendingMax = Duration::Seconds(1);

  // Given back after kSendingMax, with Leave(), or with its destruction. The loop outlives it.
  BriefSeat(rt::Loop& loop, RequestGate::Seat seat);
  ~BriefSeat();
  BriefSeat(const BriefSeat&) = delete;
  BriefSeat& operator=(const BriefSeat&) = delete;

  void Leave() { seat_.Leave(); }

 private:
  rt::Loop& loop_;
  RequestGate::Seat seat_;
  const rt::TimerId timer_;
};

}  // namespace berth::apiserver
