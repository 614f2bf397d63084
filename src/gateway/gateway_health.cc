// SPDX-License-Identifier: Apache-2.0
// Timers and conditions: what people and the scheduler see of a host's health.
#include <algorithm>
#include <set>

#include "apis/core/pool_parts.h"
#include "base/strings.h"
#include "gateway/gateway.h"
#include "rt/sleep.h"

namespace berth::gateway {
namespace {

namespace core = apis::core;

constexpr Duration kTick = Duration::Millis(500);
constexpr uint64_t kPublishTicks = 20;  // figures are shown at most every 10 s
constexpr size_t kOrphansNamed = 5;     // in a condition's message
constexpr std::string_view kAllOrphans = "*";

PoolCondition ConditionOf(HealthBook::Ready ready) {
  switch (ready) {
    case HealthBook::Ready::kYes:
      return {.type = core::kPoolReady,
              .status = ConditionStatus::kTrue,
              .reason = "Connected",
              .message = "the host is connected"};
    case HealthBook::Ready::kAway:
      return {.type = core::kPoolReady,
              .status = ConditionStatus::kFalse,
              .reason = std::string(kPlannedAbsenceReason),
              .message = "the host has said goodbye and is expected back"};
    case HealthBook::Ready::kUnknown: break;
  }
  return {.type = core::kPoolReady,
          .status = ConditionStatus::kUnknown,
          .reason = "Silent",
          .message = "the host has not been heard of for the grace time"};
}

// Whether the host may have more orphans than those that are kept: nobody counts them.
bool IsCut(const Session& session) { return session.orphans.size() >= kOrphansMax; }

PoolCondition OrphansSaid(size_t count, const std::vector<std::string>& names, bool is_cut) {
  if (count > 0) {
    return {.type = core::kPoolOrphans,
            .status = ConditionStatus::kTrue,
            .reason = "Quarantined",
            .message = std::to_string(count) + (is_cut ? " or more" : "") +
                       " left alone: " + Join(names, ", ")};
  }
  if (is_cut) {
    return {.type = core::kPoolOrphans,
            .status = ConditionStatus::kUnknown,
            .reason = "ListCut",
            .message = "the host has " + std::to_string(kOrphansMax) +
                       " orphans or more, of which the first are listed: none of them is of this "
                       "pool"};
  }
  return {.type = core::kPoolOrphans,
          .status = ConditionStatus::kFalse,
          .reason = "None",
          .message = "nothing on the host is unknown to the server"};
}

}  // namespace

rt::Task<Status> Gateway::Tick() {
  for (;;) {
    CO_TRY_STATUS(co_await rt::Sleep(kTick));
    for (const HealthBook::Turn& turn : health_.Tick(deps_.loop.Now())) WriteReady(turn);
    EndLateAnnounces();
    // A share of the hosts each time: all at once would be a burst of writes.
    const uint64_t share = ++ticks_ % kPublishTicks;
    for (const auto& [host, session] : table_.hosts()) {
      if (session->number() % kPublishTicks == share) PublishFacts(*session);
    }
  }
}

void Gateway::WriteReady(const HealthBook::Turn& turn) {
  const bool is_ready = turn.ready == HealthBook::Ready::kYes;
  Session* session = table_.OfPool(turn.pool_uid);
  if (session != nullptr && session->phase == Session::Phase::kSynced) {
    // Connected but silent: not asked until it speaks again.
    const auto pool = session->pools.find(turn.pool_uid);
    if (pool != session->pools.end()) {
      TellPool(is_ready ? fleet::FleetEvent::Type::kJoined : fleet::FleetEvent::Type::kLeft,
               pool->second,
               is_ready ? "" : "Silent");
    }
  }
  const PoolFace* face = pool_feed_.Find(turn.pool_uid);
  if (face == nullptr) return;
  const WallTime now = deps_.loop.WallNow();
  pools_.Change(*face,
                PoolWriter::Matter::kReady,
                [condition = ConditionOf(turn.ready), now](meta::Object& pool) {
                  return SetPoolCondition(pool, condition, now);
                });
}

void Gateway::ShortenLeases(Session& session) {
  // Before, its pools are about to say what is in the announcer.
  if (session.phase < Session::Phase::kSyncing) return;
  const Duration lease = health_.LongestLeaseOf(session.host());
  if (LeaseSeconds(lease) >= LeaseSeconds(session.announcer.lease)) return;
  session.announcer.lease = lease;
  for (const auto& [uid, pool] : session.pools) {
    pools_.Change(pool.face, PoolWriter::Matter::kLease, [this, lease](meta::Object& object) {
      // Another server may have told the host a longer one.
      return Leads() && ShortenLease(object, lease);
    });
  }
}

void Gateway::SetProblem(Session::Pool& pool, const std::string& problem) {
  if (pool.problem == problem) return;
  using Type = fleet::FleetEvent::Type;
  const bool was_well = pool.problem.empty();
  pool.problem = problem;
  if (was_well != problem.empty()) {
    TellPool(problem.empty() ? Type::kJoined : Type::kLeft, pool, problem.empty() ? "" : "Runtime");
  }
  PoolCondition condition = ConditionOf(HealthBook::Ready::kYes);
  if (!problem.empty()) {
    condition.status = ConditionStatus::kFalse;
    condition.reason = "Runtime";
    condition.message = problem;
  }
  const WallTime now = deps_.loop.WallNow();
  pools_.Change(pool.face, PoolWriter::Matter::kReady, [condition, now](meta::Object& object) {
    return SetPoolCondition(object, condition, now);
  });
}

void Gateway::PublishFacts(Session& session) {
  for (auto& [uid, pool] : session.pools) {
    if (!std::exchange(pool.is_unpublished, false)) continue;
    agent::PoolFacts facts;
    facts.set_pool_uid(uid);
    *facts.mutable_facts() = pool.said;
    pools_.Change(pool.face, PoolWriter::Matter::kFigures, [facts](meta::Object& object) {
      const meta::Object before = object;
      ApplyFacts(facts, object);
      return !(object == before);
    });
  }
}

void Gateway::WriteOrphans(Session& session) {
  const WallTime now = deps_.loop.WallNow();
  for (const auto& [uid, pool] : session.pools) {
    std::vector<std::string> names;
    size_t count = 0;
    for (const agent::Orphan& orphan : session.orphans) {
      if (orphan.pool() != pool.face.name) continue;
      ++count;
      if (names.size() >= kOrphansNamed) continue;
      names.push_back(CleanText(orphan.kind(), kWordMax) + " " +
                      CleanText(orphan.namespace_(), kWordMax) + "/" +
                      CleanText(orphan.name(), kWordMax) + " (" +
                      CleanText(orphan.uid(), kWordMax) + ")");
    }
    const PoolCondition condition = OrphansSaid(count, names, IsCut(session));
    pools_.Change(pool.face, PoolWriter::Matter::kOrphans, [condition, now](meta::Object& object) {
      return SetPoolCondition(object, condition, now);
    });
    SendPurges(session, pool.face);
  }
}

void Gateway::WriteFenceReady(const PoolFace& face, const agent::Facts& facts) {
  const WallTime now = deps_.loop.WallNow();
  const PoolCondition condition{
      .type = core::kPoolFenceReady,
      .status = facts.fence_ready() ? ConditionStatus::kTrue : ConditionStatus::kFalse,
      .reason = facts.fence_ready() ? "Armed" : "NotArmed",
      .message = facts.fence_ready() ? "machines that may move can be placed here"
                                     : CleanText(facts.fence_problem(), kTextMax)};
  pools_.Change(face, PoolWriter::Matter::kFenceReady, [condition, now](meta::Object& object) {
    return SetPoolCondition(object, condition, now);
  });
}

// The operator has condemned orphans in an annotation: the host is told, and the annotation goes
// when none of them is left. Of a list that was cut nobody knows that.
void Gateway::SendPurges(Session& session, const PoolFace& face) {
  if (face.purge.empty() || session.phase != Session::Phase::kSynced) return;
  std::set<std::string_view> condemned;
  for (std::string_view uid : Split(face.purge, ',')) condemned.insert(Trim(uid));
  bool any_left = false;
  for (const agent::Orphan& orphan : session.orphans) {
    if (orphan.pool() != face.name) continue;
    if (!condemned.contains(kAllOrphans) && !condemned.contains(orphan.uid())) continue;
    any_left = true;
    agent::OrphanVerdict& verdict = *session.Queue().add_orphans();
    verdict.set_uid(orphan.uid());
    verdict.set_runtime_id(orphan.runtime_id());
    verdict.set_verdict(agent::OrphanVerdict::PURGE);
  }
  if (any_left || IsCut(session)) return;
  pools_.Change(face, PoolWriter::Matter::kPurge, [said = face.purge](meta::Object& pool) {
    const auto found = pool.metadata().annotations.find(std::string(kPurgeOrphansAnnotation));
    // Something else may have been condemned meanwhile.
    if (found == pool.metadata().annotations.end() || found->second != said) return false;
    pool.metadata().annotations.erase(found);
    return true;
  });
}

HealthBook::Past Gateway::PastOf(const PoolFace& face) const {
  HealthBook::Past past{.lease = face.lease, .planned_until = std::nullopt};
  const WallTime now = deps_.loop.WallNow();
  if (!face.away_since || *face.away_since < now - kPlannedAbsence) return past;
  // The wall clock may have been set meanwhile: never longer than from now on.
  const Duration gone = now - std::min(*face.away_since, now);
  if (gone < kPlannedAbsence) past.planned_until = deps_.loop.Now() + (kPlannedAbsence - gone);
  return past;
}

void Gateway::OnPool(const PoolFace* before, const PoolFace* now) {
  if (now == nullptr) {
    health_.Forget(before->uid);
    settlement_.PoolGone(before->uid);
    TryConclude();
    Session* session = table_.OfPool(before->uid);
    if (session != nullptr) {
      session->End({.reason = std::string(kUnavailable),
                    .message = "pool " + before->name + " was deleted"});
    }
    return;
  }
  if (now->mode == core::kPoolModeSession && !now->host.empty()) {
    health_.Know(now->uid, now->host, PastOf(*now));
  }
  RevealPool(*now);
  if (now->is_off) {
    settlement_.HostHeard(now->host);
    TryConclude();
  }
  Session* session = table_.OfPool(now->uid);
  if (session == nullptr) return;
  Session::Pool& pool = session->pools[now->uid];
  const bool limits_changed = pool.face.limits != now->limits;
  const bool purge_changed = pool.face.purge != now->purge;
  const bool approval_changed = pool.face.approves_deletions != now->approves_deletions;
  const bool drain_changed = pool.face.is_drained != now->is_drained;
  pool.face = *now;
  if (limits_changed) {
    pool.facts = FromProto(now->uid, pool.said, now->limits);
    if (session->phase == Session::Phase::kSynced) {
      TellPool(fleet::FleetEvent::Type::kFacts, pool, "");
    }
  }
  if (purge_changed) SendPurges(*session, pool.face);
  if (drain_changed) CheckDrained(*session);
  if (approval_changed) {
    SendApproved(*session, pool.face);
    SettleApprovals(*session);
  }
}

void Gateway::Report(client::HealthReport& report) const {
  constexpr std::string_view kName = "gateway";
  report.Add(kName, revocations_.reflector());
  pool_feed_.Report(kName, report);
  index_.Report(kName, report);
  events_.Report(report);
}

void Gateway::OnRevocations() {
  std::vector<Session*> revoked;
  for (const auto& [host, session] : table_.hosts()) {
    const HostIdentity& identity = session->identity();
    if (revocations_.revocations().Covers(host, identity.serial, identity.issued)) {
      revoked.push_back(session);
    }
  }
  for (Session* session : revoked) {
    session->End({.reason = std::string(kRevoked),
                  .message = "the certificate of host " + session->host() + " was revoked"});
    Leave(*session);
  }
}

}  // namespace berth::gateway
