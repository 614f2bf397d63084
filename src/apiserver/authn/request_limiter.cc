// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authn/request_limiter.h"

#include <fmt/core.h>

#include "base/check.h"
#include "base/strings.h"

namespace berth::apiserver {
namespace {

Status Refusal(std::string message) {
  return Status(Reason::kTooManyRequests, std::move(message)).WithRetryAfter(Duration::Seconds(1));
}

}  // namespace

RequestLimiter::RequestLimiter(RequestLimits limits, metrics::Registry& metrics)
    : limits_(limits),
      refused_(metrics.GetCounter("berth_requests_limited_total",
                                  "Requests refused because too many were in flight.")) {}

RequestLimiter::~RequestLimiter() {
  CHECK(users_.empty()) << users_.size() << " users have requests in flight";
}

Result<RequestLimiter::Ticket> RequestLimiter::Enter(std::string_view user, RequestLength kind) {
  const auto slot = static_cast<size_t>(kind);
  const bool is_short = kind == RequestLength::kShort;
  const size_t total_max = is_short ? limits_.short_total : limits_.stream_total;
  const size_t user_max = is_short ? limits_.short_per_user : limits_.stream_per_user;
  if (total_[slot] >= total_max) {
    refused_.Add();
    return Refusal(fmt::format("too many requests in flight, the limit is {}", total_max));
  }
  auto entry = users_.find(user);
  if ((entry == users_.end() ? 0 : entry->second[slot]) >= user_max) {
    refused_.Add();
    return Refusal(fmt::format(
        "user {} has too many requests in flight, the limit is {}", Quote(user), user_max));
  }
  if (entry == users_.end()) {
    entry = users_.emplace(std::string(user), std::array<size_t, 2>{0, 0}).first;
  }
  ++entry->second[slot];
  ++total_[slot];
  Ticket ticket;
  ticket.limiter_ = this;
  ticket.entry_ = entry;
  ticket.kind_ = kind;
  return ticket;
}

RequestLimiter::Ticket::~Ticket() {
  if (limiter_ == nullptr) return;
  const auto slot = static_cast<size_t>(kind_);
  --limiter_->total_[slot];
  --entry_->second[slot];
  if (entry_->second[0] == 0 && entry_->second[1] == 0) limiter_->users_.erase(entry_);
}

}  // namespace berth::apiserver
