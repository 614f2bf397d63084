// SPDX-License-Identifier: Apache-2.0
#include "gateway/identity/refusal.h"

#include <array>
#include <utility>

namespace berth::gateway {
namespace {

constexpr std::array<std::pair<std::string_view, Reason>, 11> kReasons = {{
    {kNoCertificate, Reason::kUnauthorized},
    {kNotAHost, Reason::kUnauthorized},
    {kExpired, Reason::kUnauthorized},
    {kRevoked, Reason::kUnauthorized},
    {kRemoved, Reason::kUnauthorized},
    {kVersion, Reason::kBadRequest},
    {kProtocol, Reason::kBadRequest},
    {kOlderHistory, Reason::kConflict},
    {kAlreadyConnected, Reason::kAlreadyExists},
    {kSuperseded, Reason::kConflict},
    {kLimits, Reason::kTooManyRequests},
}};

}  // namespace

Status ToStatus(const Refusal& refusal) {
  Reason reason = Reason::kUnavailable;  // whatever is not about the host itself: try again
  for (const auto& [word, found] : kReasons) {
    if (word == refusal.reason) reason = found;
  }
  const Status status(reason, refusal.reason + ": " + refusal.message);
  return refusal.retry_after > Duration() ? status.WithRetryAfter(refusal.retry_after) : status;
}

}  // namespace berth::gateway
