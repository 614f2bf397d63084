// SPDX-License-Identifier: Apache-2.0
// Why the gateway does not go on with a host: one word for programs, a sentence for people.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace berth::gateway {

// The words of agent.proto's Refused.
inline constexpr std::string_view kNoCertificate = "NoCertificate";
inline constexpr std::string_view kNotAHost = "NotAHost";
inline constexpr std::string_view kExpired = "Expired";
inline constexpr std::string_view kRevoked = "Revoked";
inline constexpr std::string_view kRemoved = "Removed";
inline constexpr std::string_view kVersion = "Version";
inline constexpr std::string_view kOlderHistory = "OlderHistory";
inline constexpr std::string_view kAlreadyConnected = "AlreadyConnected";
inline constexpr std::string_view kSuperseded = "Superseded";
inline constexpr std::string_view kProtocol = "Protocol";
inline constexpr std::string_view kLimits = "Limits";
inline constexpr std::string_view kFenced = "Fenced";
inline constexpr std::string_view kDraining = "Draining";
inline constexpr std::string_view kUnavailable = "Unavailable";
// Not refused at all: how a session ended in peace, or without a word.
inline constexpr std::string_view kGoodbye = "Goodbye";
inline constexpr std::string_view kLost = "Lost";

struct Refusal {
  std::string reason;
  std::string message;
  Duration retry_after = {};  // zero: the host's own backoff
};

// The status that the call ends with.
Status ToStatus(const Refusal& refusal);

}  // namespace berth::gateway
