// SPDX-License-Identifier: Apache-2.0
#include "apiserver/fairness/brief_seat.h"

#include <utility>

namespace berth::apiserver {

BriefSeat::BriefSeat(rt::Loop& loop, RequestGate::Seat seat)
    : loop_(loop),
      seat_(std::move(seat)),
      timer_(loop.After("api.sending", kSendingMax, [this] { seat_.Leave(); })) {}

BriefSeat::~BriefSeat() { loop_.CancelTimer(timer_); }

}  // namespace berth::apiserver
