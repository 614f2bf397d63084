// SPDX-License-Identifier: Apache-2.0
// What an announcement makes of a pool (PROTOCOL 5.1, 5.2, 5.5), pure. The host says what it has;
// what the pool is (labels, taints, limits, its host) comes from the token or from the operator.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/placement.h"
#include "base/result.h"
#include "base/time.h"
#include "client/records/host_record.h"
#include "gateway/rules/words.h"
#include "meta/object.h"

namespace berth::gateway {

// Null for a word that is not the kind of a pool.
const meta::KindInfo* PoolKindNamed(std::string_view name);

struct Announcer {
  std::string host;
  client::HostRecord record;
  std::string poollet_version;
  bool is_leaving = false;  // it goes on with a drain that it asked for on an earlier session
  Duration lease;           // as the welcome said, or longer while more was granted before
};

// The pool as its main resource should be: a new one, or `before` with what was missing.
// Forbidden if the host may not have the pool, with the reason.
Result<meta::Object> PlanPool(const agent::PoolAnnounce& announce,
                              const std::optional<meta::Object>& before,
                              const Announcer& announcer);

// Sets the status of an announced pool: agent, facts, classes, capacity, Ready=True. FenceReady and
// Orphans are set where they are known.
void ApplyAnnounce(const agent::PoolAnnounce& announce,
                   const agent::HostFacts& host,
                   const Announcer& announcer,
                   WallTime now,
                   meta::Object& pool);
// Classes and figures that changed during the session; allocatable is what the ledger has left.
void ApplyFacts(const agent::PoolFacts& facts, meta::Object& pool);
// What a runtime has said of itself during the session, beside what is known; what the host says of
// itself counts more. False if it was so before.
bool ApplyRuntimeFacts(const agent::PoolFacts& facts, meta::Object& pool);

// A lease in the whole seconds that a pool says of it: rounded up, as it stands for how long
// something may still run.
int32_t LeaseSeconds(Duration lease);
// What was granted before it is over. False unless the pool says a longer one.
bool ShortenLease(meta::Object& pool, Duration lease);

// The reason of Ready=False while a host that said goodbye is expected back.
inline constexpr std::string_view kPlannedAbsenceReason = "PlannedAbsence";

enum class ConditionStatus : uint8_t { kTrue, kFalse, kUnknown };
struct PoolCondition {
  std::string_view type;
  ConditionStatus status = ConditionStatus::kTrue;
  std::string reason;
  std::string message;
};
// True if anything but times changed; the transition time moves with the status only.
bool SetPoolCondition(meta::Object& pool, const PoolCondition& condition, WallTime now);

// What of a pool the gateway keeps in memory.
struct PoolFace {
  const meta::KindInfo* kind = nullptr;
  std::string name;
  std::string uid;
  std::string host;  // "" if no host has it
  std::string mode;
  bool is_deleting = false;
  apis::Amounts limits;
  std::string purge;                   // kPurgeOrphansAnnotation
  bool approves_deletions = false;     // kApproveDeletionsAnnotation
  bool is_off = false;                 // kOffAnnotation
  bool is_drained = false;             // the drain that its host asked for is over
  Duration lease;                      // the longest that its host may still have
  std::optional<WallTime> away_since;  // it said goodbye
};
PoolFace FaceOf(const meta::Object& pool);

// On a pool: UIDs of orphans that the operator has condemned, with commas; "*" for all that are
// listed now. Removed when they are gone.
inline constexpr std::string_view kPurgeOrphansAnnotation = "berth.dev/purge-orphans";
// On a pool, "true": its host carries out deletions that it had held back because history was
// rewound (PROTOCOL 4.3, the breaker). Removed with the last of them.
inline constexpr std::string_view kApproveDeletionsAnnotation = "berth.dev/approve-deletions";
// On a pool, "true": an operator has said that its host is off, and that nothing of it runs.
// Removed when the host comes back.
inline constexpr std::string_view kOffAnnotation = "berth.dev/off";

// Cordons the pool and asks for its drain (apis/core/pool_parts.h). False if it was so before.
bool RequestDrain(meta::Object& pool, WallTime now);
// The host waits no longer: what is still there stays. False if it was so before.
bool GiveUpDrain(meta::Object& pool);

}  // namespace berth::gateway
