// SPDX-License-Identifier: Apache-2.0
// FairSeats decides who of many flows gets one of a level's seats. Pure: no clock, no task.
//
// Whoever asks while a seat is free gets it. Otherwise it waits in the queue of its flow, and a
// seat that gets free goes to the waiting flow that has the fewest, of several to the one that was
// served longest ago. So a flow that asks for everything gets no more than its part as soon as
// others wait, and all of it while nobody does; and a flow whose requests take long does not get
// more for that.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace berth::apiserver {

class FairSeats {
 public:
  struct Limits {
    size_t seats = 1;
    size_t queue_per_flow = 0;  // how many of one flow may wait
    size_t queue_total = 0;     // how many may wait in all
  };
  enum class Verdict : uint8_t { kSeated, kWaits, kFlowIsFull, kLevelIsFull };
  using Ticket = uint64_t;
  struct Asked {
    Verdict verdict = Verdict::kSeated;
    Ticket ticket = 0;  // of who is seated or waits
  };

  explicit FairSeats(Limits limits) : limits_(limits) {}

  Asked Ask(std::string_view flow);
  // Gives a seat back. Returns who sits down instead, if anybody waited. REQUIRES: it is seated.
  std::optional<Ticket> Leave(Ticket ticket);
  // Stops waiting. REQUIRES: it waits.
  void GiveUp(Ticket ticket);

  const Limits& limits() const { return limits_; }
  size_t seated() const { return seated_; }
  size_t waiting() const { return waiting_; }
  size_t flows() const { return flows_.size(); }
  size_t SeatsOf(std::string_view flow) const;

 private:
  struct Flow {
    std::string name;
    size_t seats = 0;
    uint64_t served = 0;  // when it last got a seat, in seats given
    std::list<Ticket> queue;
  };
  using Flows = std::map<std::string, Flow, std::less<>>;
  struct Turn {
    size_t seats;
    uint64_t served;
    std::string_view name;
    auto operator<=>(const Turn&) const = default;
  };
  struct Place {
    Flows::iterator flow;
    bool is_seated = false;
    std::list<Ticket>::iterator waits;  // if it is not seated
  };

  static Turn TurnOf(const Flow& flow) { return {flow.seats, flow.served, flow.name}; }
  void Seat(Flow& flow);
  void Forget(Flows::iterator flow);

  const Limits limits_;
  size_t seated_ = 0;
  size_t waiting_ = 0;
  uint64_t given_ = 0;
  Ticket last_ticket_ = 0;
  Flows flows_;           // only those that sit or wait
  std::set<Turn> turns_;  // of the flows that wait, whose turn it is first
  std::map<Ticket, Place> places_;
};

}  // namespace berth::apiserver
