// SPDX-License-Identifier: Apache-2.0
#include "apiserver/fairness/request_gate.h"

#include <fmt/core.h>

#include "base/check.h"
#include "base/strings.h"
#include "rt/deadline.h"

namespace berth::apiserver {
namespace {

Status Refusal(std::string message) {
  return Status(Reason::kTooManyRequests, std::move(message)).WithRetryAfter(Duration::Seconds(1));
}

}  // namespace

RequestGate::RequestGate(rt::Loop& loop, const LevelLimits& limits, metrics::Registry& metrics)
    : loop_(loop) {
  for (size_t i = 0; i < kPriorityLevels; ++i) {
    const auto level = static_cast<PriorityLevel>(i);
    levels_[i] = std::make_unique<Level>(limits.Of(level));
    const metrics::Labels labels = {{"level", std::string(NameOf(level))}};
    levels_[i]->seated = &metrics.GetGauge(
        "berth_apiserver_requests_seated", "Requests being worked on, by priority level.", labels);
    levels_[i]->queued = &metrics.GetGauge(
        "berth_apiserver_requests_queued", "Requests that wait, by priority level.", labels);
    levels_[i]->refused =
        &metrics.GetCounter("berth_apiserver_requests_refused_total",
                            "Requests refused because too many wait, by priority level.",
                            labels);
    levels_[i]->waited = &metrics.GetHistogram("berth_apiserver_request_wait_seconds",
                                               "How long requests waited that had to.",
                                               metrics::LatencyBounds(),
                                               labels);
  }
}

RequestGate::~RequestGate() {
  for (const auto& level : levels_) {
    CHECK(level->seats.seated() == 0 && level->waiting.empty()) << "requests are in flight";
  }
}

rt::Task<Result<RequestGate::Seat>> RequestGate::Enter(PriorityLevel level, std::string user) {
  Level& at = At(level);
  const FairSeats::Asked asked = at.seats.Ask(user);
  Show(at);
  switch (asked.verdict) {
    case FairSeats::Verdict::kSeated: co_return Seat(*this, level, asked.ticket);
    case FairSeats::Verdict::kWaits: break;
    case FairSeats::Verdict::kFlowIsFull:
      at.refused->Add();
      co_return Refusal(fmt::format("too many requests: user {} has {} waiting in level {}",
                                    Quote(user),
                                    at.seats.limits().queue_per_flow,
                                    NameOf(level)));
    case FairSeats::Verdict::kLevelIsFull:
      at.refused->Add();
      co_return Refusal(fmt::format("too many requests: {} are worked on and {} wait in level {}",
                                    at.seats.seated(),
                                    at.seats.waiting(),
                                    NameOf(level)));
  }
  const Time since = loop_.Now();
  const Status waited = co_await rt::WithDeadline(Wait(level, asked.ticket), kWaitMax);
  at.waited->Observe((loop_.Now() - since).to_seconds());
  if (waited.Is(Reason::kTimeout)) {
    at.refused->Add();
    co_return Refusal(fmt::format("too many requests: user {} waited {} in level {}",
                                  Quote(user),
                                  FormatDuration(kWaitMax),
                                  NameOf(level)));
  }
  if (!waited.ok()) co_return waited;
  co_return Seat(*this, level, asked.ticket);
}

rt::Task<Status> RequestGate::Wait(PriorityLevel level, FairSeats::Ticket ticket) {
  Level& at = At(level);
  rt::Leaf<Status> leaf;
  at.waiting.emplace(ticket, &leaf);
  const Status status = co_await leaf;
  if (status.ok()) co_return status;
  if (at.waiting.erase(ticket) > 0) {
    at.seats.GiveUp(ticket);
    Show(at);
  } else {
    Leave(level, ticket);  // seated in the moment of its cancellation
  }
  co_return status;
}

void RequestGate::Leave(PriorityLevel level, FairSeats::Ticket ticket) {
  Level& at = At(level);
  const auto next = at.seats.Leave(ticket);
  Show(at);
  if (!next.has_value()) return;
  const auto waiter = at.waiting.find(*next);
  rt::Leaf<Status>* leaf = waiter->second;
  at.waiting.erase(waiter);
  leaf->Complete(OkStatus());
}

void RequestGate::Show(Level& level) {
  level.seated->Set(static_cast<double>(level.seats.seated()));
  level.queued->Set(static_cast<double>(level.seats.waiting()));
}

void RequestGate::Seat::Leave() {
  if (RequestGate* gate = std::exchange(gate_, nullptr)) gate->Leave(level_, ticket_);
}

}  // namespace berth::apiserver
