// SPDX-License-Identifier: Apache-2.0
// How much one host may say, and how long everything takes (PROTOCOL 3.6).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace berth::gateway {

// Timers.
inline constexpr Duration kHeartbeat = Duration::Seconds(2);
inline constexpr Duration kLeaseMin = Duration::Seconds(8);
inline constexpr Duration kGraceMin = Duration::Seconds(6);
inline constexpr Duration kPlannedAbsence = Duration::Minutes(5);
inline constexpr Duration kChallenge = Duration::Seconds(2);
inline constexpr Duration kHelloLimit = Duration::Seconds(10);
inline constexpr Duration kTunnelLimit = Duration::Seconds(10);

// H as it is announced: `least`, unless that would be more than 500 heartbeats a second from all.
inline Duration HeartbeatFor(size_t hosts, Duration least) {
  const Duration work = Duration::Millis(2 * static_cast<int64_t>(hosts));
  return std::min(kHeartbeat, std::max(least, work));
}
// L: every pool must be able to come back before its lease ends, at 4 ms of one core each.
inline Duration LeaseFor(size_t pools, size_t cores) {
  const auto work = Duration::Millis(8 * static_cast<int64_t>(pools)) /
                    static_cast<int64_t>(std::max<size_t>(cores, 1));
  return std::max(kLeaseMin, work);
}
// The grace stays below the lease as 6 s do below 8 s.
inline Duration GraceFor(Duration lease) { return std::max(kGraceMin, lease * 3 / 4); }

// One message. A host with 300 machines announces 300 * ~120 bytes; a body holds an object or two
// of at most 1 MiB.
inline constexpr size_t kMessageBytesMax = 4 * 1024 * 1024;
// Queued for a host and not taken by it; beyond it the session ends.
inline constexpr size_t kOutboxBytesMax = 8 * 1024 * 1024;
// Assignments wait while more than this is queued, so that offers and grants never queue behind
// them for long.
inline constexpr size_t kAssignOutboxBytes = 256 * 1024;
// One ServerBatch of assignments.
inline constexpr size_t kAssignBatchBytes = 64 * 1024;

inline constexpr size_t kTextMax = 1024;        // reasons and messages
inline constexpr size_t kWordMax = 128;         // one word, one key
inline constexpr size_t kPoolsMax = 16;         // of one host
inline constexpr size_t kClassesMax = 256;      // of one pool
inline constexpr size_t kFactsMax = 64;         // of one host or pool
inline constexpr size_t kDimensionsMax = 64;    // of one vector
inline constexpr size_t kKnownMax = 16 * 1024;  // objects of one host: * ~120 bytes = 2 MB
inline constexpr size_t kOrphansMax = 1024;     // kept of one host
inline constexpr size_t kConditionsMax = 16;    // of one status
inline constexpr size_t kPartsMax = 64;         // volumes or interfaces of one status
inline constexpr size_t kAttributesMax = 64;    // of one volume's access
inline constexpr size_t kSecretBytesMax = 64 * 1024;
inline constexpr size_t kTunnelsMax = 64;  // of one host, at a time

// Per session, refilled every second; a burst is twice as much. What is beyond is not acted upon
// and is a strike, as is every word about what is not the host's own. Honest hosts earn a few, when
// something was moved under their hands; who goes on loses the session. A status beyond ends it at
// once: the next one begins with every status anew, so that none is missed.
inline constexpr double kMessagesPerSecond = 500;
inline constexpr double kStatusesPerSecond = 2000;
inline constexpr double kEventsPerSecond = 10;
inline constexpr double kBytesPerSecond = 8 * 1024 * 1024;
inline constexpr double kStrikesMax = 100;
inline constexpr double kStrikesPerSecond = 1;

}  // namespace berth::gateway
