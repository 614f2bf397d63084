// SPDX-License-Identifier: Apache-2.0
#include "apiserver/fairness/fair_seats.h"

#include "base/check.h"

namespace berth::apiserver {

FairSeats::Asked FairSeats::Ask(std::string_view flow) {
  auto found = flows_.find(flow);
  const bool must_wait = seated_ >= limits_.seats;
  if (must_wait) {
    if (waiting_ >= limits_.queue_total) return {.verdict = Verdict::kLevelIsFull};
    const size_t queued = found == flows_.end() ? 0 : found->second.queue.size();
    if (queued >= limits_.queue_per_flow) return {.verdict = Verdict::kFlowIsFull};
  }
  if (found == flows_.end()) {
    found = flows_.emplace(std::string(flow), Flow{.name = std::string(flow)}).first;
  }
  const Ticket ticket = ++last_ticket_;
  Flow& of = found->second;
  if (!must_wait) {
    Seat(of);
    places_.emplace(ticket, Place{.flow = found, .is_seated = true, .waits = {}});
    return {.verdict = Verdict::kSeated, .ticket = ticket};
  }
  const auto waits = of.queue.insert(of.queue.end(), ticket);
  if (of.queue.size() == 1) turns_.insert(TurnOf(of));
  ++waiting_;
  places_.emplace(ticket, Place{.flow = found, .is_seated = false, .waits = waits});
  return {.verdict = Verdict::kWaits, .ticket = ticket};
}

// REQUIRES: the flow has no turn, as its turn changes.
void FairSeats::Seat(Flow& flow) {
  ++flow.seats;
  flow.served = ++given_;
  ++seated_;
}

std::optional<FairSeats::Ticket> FairSeats::Leave(Ticket ticket) {
  const auto place = places_.find(ticket);
  CHECK(place != places_.end() && place->second.is_seated) << "ticket " << ticket << " has no seat";
  const auto from = place->second.flow;
  places_.erase(place);
  if (!from->second.queue.empty()) turns_.erase(TurnOf(from->second));
  --from->second.seats;
  --seated_;
  if (!from->second.queue.empty()) turns_.insert(TurnOf(from->second));
  Forget(from);
  if (turns_.empty()) return std::nullopt;

  const auto next = flows_.find(turns_.begin()->name);
  Flow& flow = next->second;
  turns_.erase(turns_.begin());
  const Ticket first = flow.queue.front();
  flow.queue.pop_front();
  --waiting_;
  Seat(flow);
  if (!flow.queue.empty()) turns_.insert(TurnOf(flow));
  places_.at(first).is_seated = true;
  return first;
}

void FairSeats::GiveUp(Ticket ticket) {
  const auto place = places_.find(ticket);
  CHECK(place != places_.end() && !place->second.is_seated) << "ticket " << ticket << " waits not";
  const auto from = place->second.flow;
  from->second.queue.erase(place->second.waits);
  places_.erase(place);
  --waiting_;
  if (from->second.queue.empty()) turns_.erase(TurnOf(from->second));
  Forget(from);
}

void FairSeats::Forget(Flows::iterator flow) {
  if (flow->second.seats == 0 && flow->second.queue.empty()) flows_.erase(flow);
}

size_t FairSeats::SeatsOf(std::string_view flow) const {
  const auto found = flows_.find(flow);
  return found == flows_.end() ? 0 : found->second.seats;
}

}  // namespace berth::apiserver
