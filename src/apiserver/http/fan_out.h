// SPDX-License-Identifier: Apache-2.0
// One event may be for thousands of watchers, and telling each of them takes some microseconds. A
// FanOut lets a few of them have a turn and then everybody else on the loop, so that a request does
// not wait until all are told. Belongs to a loop.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "rt/waiters.h"

namespace berth::apiserver {

class FanOut {
 public:
  // About a millisecond of writes.
  static constexpr size_t kPerTurn = 64;

  explicit FanOut(rt::Loop& loop) : loop_(loop) {}
  FanOut(const FanOut&) = delete;
  FanOut& operator=(const FanOut&) = delete;

  // Ok at once for the first few of a turn, and in the order of arrival for the others; Cancelled.
  rt::Task<Status> Next() {
    if (used_ < kPerTurn && waiting_.empty()) {
      ++used_;
      Arm();
      co_return OkStatus();
    }
    co_return co_await waiting_.Wait();
  }

 private:
  void Arm() {
    if (is_armed_) return;
    is_armed_ = true;
    loop_.Post("api.fan_out", [this] { Turn(); });
  }
  void Turn() {
    is_armed_ = false;
    used_ = 0;
    while (used_ < kPerTurn && waiting_.CompleteFirst(OkStatus())) ++used_;
    if (used_ > 0) Arm();
  }

  rt::Loop& loop_;
  size_t used_ = 0;  // in this turn
  bool is_armed_ = false;
  rt::Waiters<Status> waiting_;
};

}  // namespace berth::apiserver
