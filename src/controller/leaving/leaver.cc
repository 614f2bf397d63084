// SPDX-License-Identifier: Apache-2.0
#include "controller/leaving/leaver.h"

#include <utility>

#include "apis/compute/machine.h"
#include "apis/core/pool_parts.h"
#include "client/ties/find_tie.h"

namespace berth::controller {

rt::Task<Result<Departure>> Leaver::Ask(client::ReleaseRequest request, std::string pool_mode) {
  const client::EventSubject subject{.kind = request.kind, .key = request.key, .uid = request.uid};
  CO_TRY(std::string tie, co_await FindTie(request, std::move(pool_mode)));
  if (!tie.empty()) {
    const std::string message = request.message + ", but it stays: " + tie;
    request.reason = "Stays";
    request.message = message;
    CO_TRY_STATUS(co_await client::SayItStays(loop_, client_, std::move(request)));
    events_.Record(subject, client::EventType::kWarning, "NotReleased", "Releasing", message);
    co_return Departure{.outcome = Departure::Outcome::kStays, .tie = std::move(tie)};
  }
  const std::string message = request.message + ": it is stopped and looks for another place";
  request.message = message;
  CO_TRY(const client::ReleaseOutcome outcome,
         co_await client::AskToLeave(loop_, client_, std::move(request)));
  if (outcome != client::ReleaseOutcome::kAsked) {
    co_return Departure{.outcome = Departure::Outcome::kLeavesAlready, .tie = {}};
  }
  events_.Record(subject, client::EventType::kWarning, "Released", "Releasing", message);
  co_return Departure{.outcome = Departure::Outcome::kAsked, .tie = {}};
}

rt::Task<Result<std::string>> Leaver::FindTie(client::ReleaseRequest request,
                                              std::string pool_mode) {
  if (pool_mode != apis::core::kPoolModeSession) {
    co_return std::string("its pool's poollet speaks the API and would leave it running");
  }
  if (request.kind != &apis::compute::kMachineKind) co_return std::string();
  const Result<meta::Object> machine = co_await client_.Get(*request.kind, request.key);
  if (machine.status().Is(Reason::kNotFound)) co_return std::string();
  CO_TRY_STATUS(machine);
  co_return co_await client::FindHostTie(client_, *machine);
}

}  // namespace berth::controller
