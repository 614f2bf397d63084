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
inline constexpr Duration kAnnounceLimit = Duration::Seconds(30);  // from Welcome to the last chunk
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
// The most that the status of a pool may say, whoever wrote that: LeaseFor of 900,000 pools.
inline constexpr Duration kLeaseMax = Duration::Hours(2);
// The grace stays below the lease as 6 s do below 8 s.
inline Duration GraceFor(Duration lease) { return std::max(kGraceMin, lease * 3 / 4); }

// One message. A host with 300 machines announces 300 * ~120 bytes; a body holds an object or two
// of at most 1 MiB.
inline constexpr size_t kMessageBytesMax = 4 * 1024 * 1024;
// One announcement with all of its chunks. By number it may hold 16,384 objects * ~240 bytes +
// 1,024 orphans * ~250 + 16 pools * 256 classes * ~100 = 4.6 MB; 300 machines are 72 KB.
inline constexpr size_t kAnnounceBytesMax = 16 * 1024 * 1024;
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
// What an announcement can say of one pool: its runtime's, its host's labels, and 8 of the host's
// own.
inline constexpr size_t kPoolFactsMax = 2 * kFactsMax + 8;
// Open or to be opened, of one host. With the session itself they are less than the 100 streams
// that one connection may have.
inline constexpr size_t kTunnelsMax = 64;

// Per host, over all of its sessions: each begins with all the limits below anew, and costs 4 ms of
// a core (LeaseFor). A poollet's pauses are 32 ms at first and 2 s at last, +-50 %: 20 attempts
// take it 10 s at least.
inline constexpr double kConnectBurst = 20;
inline constexpr double kConnectsPerSecond = 1;

// Per session, refilled every second; a burst is twice as much, if nothing else is said. What a
// poollet of ours does not say is a strike, as is every word about what is not the host's own.
// Honest hosts earn a few, when something was moved under their hands; who goes on loses the
// session.
inline constexpr double kMessagesPerSecond = 500;
inline constexpr double kBytesPerSecond = 8 * 1024 * 1024;
inline constexpr double kStrikesMax = 100;
inline constexpr double kStrikesPerSecond = 1;
// Every kind of word in a message has its own limit, and what happens beyond it. An answer needs an
// offer that it can be the answer to; all else counts:
// Beyond it the session ends: the next one begins with all of them anew, so that none is missed.
inline constexpr double kStatusesPerSecond = 2000;
inline constexpr double kGonePerSecond = 2000;
// Each is an event for everyone who follows the fleet, and must not be too many for a reader of it
// (fleet/watch_hub.h) in one turn.
inline constexpr double kRefusalsPerSecond = 500;
// Not acted upon; nobody misses it, or the next round brings it again.
inline constexpr double kAcksPerSecond = 2000;
// Events: the welcome says so, and poollets keep to it, with half of the burst.
inline constexpr double kEventsPerSecond = 10;
inline constexpr double kStatisticsPerSecond = 2000;
inline constexpr double kStatisticsBurst = kKnownMax + 1;  // of everything that a host may have
// Waits, and the newest counts. Facts are an event for everyone who follows the fleet; a list of
// orphans is looked through once for every pool of the host.
inline constexpr double kFactsPerSecond = 100;
inline constexpr double kOrphanListsPerSecond = 2;
inline constexpr Duration kLatePause = Duration::Millis(20);  // how often it is tried again

}  // namespace berth::gateway
