// SPDX-License-Identifier: Apache-2.0
// The RequestGate is where requests wait for their turn: in their level, in the queue of their
// user. Belongs to the API server's loop.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "apiserver/fairness/fair_seats.h"
#include "apiserver/fairness/priority.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "rt/leaf.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::apiserver {

class RequestGate {
 public:
  // Longer than that nobody waits: most clients give up after 30 s, and try again sooner.
  static constexpr Duration kWaitMax = Duration::Seconds(15);

  // Being worked on. Ends with its destruction, or before.
  class Seat {
   public:
    Seat() = default;
    Seat(Seat&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)),
          level_(other.level_),
          ticket_(other.ticket_) {}
    Seat& operator=(Seat&& other) noexcept {
      std::swap(gate_, other.gate_);
      std::swap(level_, other.level_);
      std::swap(ticket_, other.ticket_);
      return *this;
    }
    ~Seat() { Leave(); }
    void Leave();

   private:
    friend class RequestGate;
    Seat(RequestGate& gate, PriorityLevel level, FairSeats::Ticket ticket)
        : gate_(&gate), level_(level), ticket_(ticket) {}
    RequestGate* gate_ = nullptr;
    PriorityLevel level_ = PriorityLevel::kExempt;
    FairSeats::Ticket ticket_ = 0;
  };

  RequestGate(rt::Loop& loop, const LevelLimits& limits, metrics::Registry& metrics);
  // CHECKs that nobody sits or waits.
  ~RequestGate();
  RequestGate(const RequestGate&) = delete;
  RequestGate& operator=(const RequestGate&) = delete;

  // Waits for a seat. TooManyRequests, to be tried again after a second, if there is no room to
  // wait either, or after kWaitMax; Cancelled.
  rt::Task<Result<Seat>> Enter(PriorityLevel level, std::string user);

  const FairSeats& level(PriorityLevel level) const { return At(level).seats; }

 private:
  struct Level {
    explicit Level(const FairSeats::Limits& limits) : seats(limits) {}
    FairSeats seats;
    std::map<FairSeats::Ticket, rt::Leaf<Status>*> waiting;
    metrics::Gauge* seated = nullptr;
    metrics::Gauge* queued = nullptr;
    metrics::Counter* refused = nullptr;
    metrics::Histogram* waited = nullptr;
  };

  Level& At(PriorityLevel level) { return *levels_[static_cast<size_t>(level)]; }
  const Level& At(PriorityLevel level) const { return *levels_[static_cast<size_t>(level)]; }
  rt::Task<Status> Wait(PriorityLevel level, FairSeats::Ticket ticket);
  void Leave(PriorityLevel level, FairSeats::Ticket ticket);
  static void Show(Level& level);

  rt::Loop& loop_;
  std::array<std::unique_ptr<Level>, kPriorityLevels> levels_;
};

}  // namespace berth::apiserver
