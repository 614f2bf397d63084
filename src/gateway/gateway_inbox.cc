// SPDX-License-Identifier: Apache-2.0
// What hosts say. Nothing here trusts a number that a host has written: every object is looked up
// in the index and must be on a pool of the session that speaks (invariant 3).
#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "gateway/gateway.h"
#include "rt/chaos.h"
#include "rt/sleep.h"

namespace berth::gateway {
namespace {

constexpr Duration kRetryPause = Duration::Millis(200);

// One word that a condition may carry.
std::string SafeWord(std::string_view word, std::string_view otherwise) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (word.empty() || word.size() > kWordMax || !std::ranges::all_of(word, allowed)) {
    return std::string(otherwise);
  }
  return std::string(word);
}

client::EventSubject SubjectOf(const PoolFace& face) {
  return {.kind = face.kind, .key = {.namespace_ = "", .name = face.name}, .uid = face.uid};
}

}  // namespace

void Gateway::OnMessage(Session& session, agent::HostMessage message) {
  switch (message.message_case()) {
    case agent::HostMessage::kAnnounce:
      return OnAnnounce(session, std::move(*message.mutable_announce()));
    case agent::HostMessage::kHeartbeat: return OnHeartbeat(session, message.heartbeat());
    case agent::HostMessage::kPong: return;  // any word is an answer to a ping
    case agent::HostMessage::kGoodbye: return OnGoodbye(session, message.goodbye());
    case agent::HostMessage::kBatch:
      if (session.phase == Session::Phase::kSyncing || session.phase == Session::Phase::kSynced) {
        return OnBatch(session, message.batch());
      }
      break;
    default: break;
  }
  session.End(
      {.reason = std::string(kProtocol),
       .message = "message " + std::to_string(message.message_case()) + " does not belong here"});
}

void Gateway::OnHeartbeat(Session& session, const agent::Heartbeat& heartbeat) {
  if (heartbeat.session().start() != cluster_.start ||
      heartbeat.session().counter() != session.number()) {
    return session.End(
        {.reason = std::string(kProtocol), .message = "a heartbeat of another session"});
  }
  // Another server may lead, and have fenced this host already: it is to look for that one, now and
  // not after some heartbeats without an answer.
  if (!Leads()) {
    return session.End({.reason = std::string(kUnavailable),
                        .message = "this server does not lead at the moment"});
  }
  if (!health_.Grant(session.host(), deps_.loop.Now())) {
    return session.End({.reason = std::string(kFenced),
                        .message = "this session gets no more grants: connect again"});
  }
  ShortenLeases(session);
  agent::Grant grant;
  grant.set_number(heartbeat.number());
  grant.set_ttl_ms(static_cast<uint64_t>(health_.LeaseOf(session.host()).millis()));
  if (ShouldRenew(session)) grant.set_renew(true);
  session.QueueGrant(std::move(grant));
}

void Gateway::OnGoodbye(Session& session, const agent::Goodbye& goodbye) {
  if (goodbye.mode() == agent::Goodbye::DRAIN) {
    session.is_draining = true;
    return BeginDrain(session);
  }
  if (session.is_draining) {
    for (const auto& [uid, pool] : session.pools) {
      pools_.Change(pool.face, PoolWriter::Matter::kDrainOver, GiveUpDrain);
    }
  }
  BidFarewell(session);
}

void Gateway::OnBatch(Session& session, const agent::HostBatch& batch) {
  const Time now = deps_.loop.Now();
  // Every list may be as long as a message is large: none is read further once the session is over.
  const auto read = [&session](const auto& items, const auto& act) {
    for (const auto& item : items) {
      if (session.ended()) return;
      act(item);
    }
  };
  if (batch.has_heartbeat()) OnHeartbeat(session, batch.heartbeat());
  read(batch.answers(), [&](const agent::Answer& answer) { OnAnswer(session, answer); });
  read(batch.acks(), [&](const agent::AssignAck& ack) {
    if (session.AdmitAck(now)) OnAck(session, ack);
  });
  read(batch.refusals(), [&](const agent::AssignRefused& refused) {
    if (!session.AdmitRefusal(now)) return EndTooFast(session, "refusals", kRefusalsPerSecond);
    OnAssignRefused(session, refused);
  });
  read(batch.statuses(), [&](const agent::ObjectStatus& status) {
    if (!session.AdmitStatus(now)) return EndTooFast(session, "statuses", kStatusesPerSecond);
    OnStatus(session, status);
  });
  read(batch.gone(), [&](const agent::Gone& gone) {
    if (!session.AdmitGone(now)) return EndTooFast(session, "removals", kGonePerSecond);
    OnGone(session, gone);
  });
  std::set<std::string_view> told;
  read(batch.facts(), [&](const agent::PoolFacts& facts) {
    const bool is_new = told.insert(facts.pool_uid()).second;
    if (!is_new) session.Strike("facts of one pool twice in a message");
    KeepFacts(session, facts);
  });
  read(batch.statistics(), [&](const agent::Statistics& statistics) {
    if (session.AdmitStatistics(now)) OnStatistics(session, statistics);
  });
  read(batch.events(), [&](const agent::HostEvent& event) { OnHostEvent(session, event); });
  if (session.ended()) return;
  if (batch.orphans_changed()) KeepOrphans(session, batch);
  CatchUp(session);
}

void Gateway::EndTooFast(Session& session, std::string_view what, double per_second) {
  session.End({.reason = std::string(kLimits),
               .message = std::string(what) + " faster than " +
                          std::to_string(static_cast<int>(per_second)) +
                          " a second: connect again"});
}

void Gateway::KeepFacts(Session& session, const agent::PoolFacts& facts) {
  if (!session.pools.contains(facts.pool_uid())) {
    return session.Strike("words about pools that are not its own");
  }
  agent::PoolFacts& kept = session.late_facts[facts.pool_uid()];
  // What nobody has read yet is not forgotten for newer figures.
  agent::PoolFacts older = std::exchange(kept, facts);
  if (older.classes_changed() && !facts.classes_changed()) {
    kept.set_classes_changed(true);
    kept.mutable_classes()->Swap(older.mutable_classes());
  }
  if (older.runtime_facts_changed() && !facts.runtime_facts_changed()) {
    kept.set_runtime_facts_changed(true);
    kept.mutable_runtime_facts()->swap(*older.mutable_runtime_facts());
  }
}

void Gateway::KeepOrphans(Session& session, const agent::HostBatch& batch) {
  const auto count = std::min<size_t>(static_cast<size_t>(batch.orphans_size()), kOrphansMax);
  session.late_orphans.emplace(batch.orphans().begin(),
                               batch.orphans().begin() + static_cast<ptrdiff_t>(count));
}

void Gateway::CatchUp(Session& session) {
  const Time now = deps_.loop.Now();
  while (!session.late_facts.empty() && session.AdmitFacts(now)) {
    const auto facts = session.late_facts.extract(session.late_facts.begin());
    OnFacts(session, facts.mapped());
  }
  if (session.late_orphans && session.AdmitOrphans(now)) {
    session.orphans = *std::exchange(session.late_orphans, std::nullopt);
    WriteOrphans(session);
  }
  if (session.late_facts.empty() && !session.late_orphans) return;
  if (session.is_catching_up) return;
  session.is_catching_up = true;
  session.scope.Spawn("gateway.late", CatchUpLater(session));
}

rt::Task<Status> Gateway::CatchUpLater(Session& session) {
  while (!session.late_facts.empty() || session.late_orphans) {
    CO_TRY_STATUS(co_await rt::Sleep(kLatePause));
    if (session.ended()) break;
    CatchUp(session);
  }
  session.is_catching_up = false;
  co_return OkStatus();
}

void Gateway::OnAnswer(Session& session, const agent::Answer& answer) {
  if (session.offers_open == 0) return session.Strike("answers that nobody asked for");
  --session.offers_open;
  fleet::Answer words = FromProto(answer);
  AskBook::Found found = asks_.Take(words.id, session.number());
  switch (found.match) {
    case AskBook::Match::kTaken: return found.done(std::move(words));
    case AskBook::Match::kForeign: return session.Strike("answers to offers of other hosts");
    case AskBook::Match::kLate: break;
  }
  if (words.verdict != fleet::Answer::Verdict::kAccepted) return;
  REACHED("gateway.s6_late_answer");
  agent::OfferId& release = *session.Queue().add_releases();
  release.set_term(words.id.term);
  release.set_number(words.id.number);
}

const DesiredEntry* Gateway::MineAt(const Session& session,
                                    const std::string& uid,
                                    uint64_t placement) const {
  const DesiredEntry* entry = index_.Find(uid);
  if (entry == nullptr || entry->placement != placement) return nullptr;
  return session.pools.contains(entry->pool_uid) ? entry : nullptr;
}

void Gateway::OnAck(Session& session, const agent::AssignAck& ack) {
  if (MineAt(session, ack.uid(), ack.placement()) == nullptr) {
    session.Strike("words about objects that are not its own");
  }
}

void Gateway::OnAssignRefused(Session& session, const agent::AssignRefused& refused) {
  const DesiredEntry* entry = MineAt(session, refused.uid(), refused.placement());
  if (entry == nullptr) return;  // another placement by now: nothing to undo
  // Said before: the store has not caught up with it yet.
  if (!session.items.contains(refused.uid())) return;
  REACHED("gateway.g2_assign_refused");
  const std::string reason = SafeWord(refused.reason(), "Refused");
  const std::string message =
      "host " + session.host() + " cannot take it: " + CleanText(refused.message(), kTextMax);
  const auto pool = session.pools.find(entry->pool_uid);
  session.items.erase(refused.uid());
  events_.Record({.kind = entry->kind, .key = entry->key, .uid = entry->uid},
                 client::EventType::kWarning,
                 "AssignRefused",
                 "Assign",
                 message);
  TellPool(fleet::FleetEvent::Type::kRefused, pool->second, reason);
  releases_.Release({.kind = entry->kind,
                     .key = entry->key,
                     .uid = entry->uid,
                     .placement = static_cast<int64_t>(entry->placement),
                     .proof = client::UnbindProof::kHostReleased,
                     .reason = reason,
                     .message = message});
}

void Gateway::OnStatus(Session& session, const agent::ObjectStatus& status) {
  const DesiredEntry* entry = MineAt(session, status.uid(), status.placement());
  if (entry == nullptr || status.incarnation() != cluster_.incarnation) {
    REACHED("gateway.g3_status_refused");
    return session.Strike("words about objects that are not its own");
  }
  if (status.kind() != entry->kind->kind) return session.Strike("statuses of another kind");
  statuses_.Report(*entry->kind, entry->key, entry->pool_uid, status);
}

void Gateway::OnGone(Session& session, const agent::Gone& gone) {
  const auto stone = session.tombstones.find(gone.uid());
  if (stone != session.tombstones.end() &&
      gone.placement() <= static_cast<uint64_t>(stone->second.placement)) {
    scope_.Spawn("gateway.tombstone", ClearTombstone(session.host(), stone->second));
    session.tombstones.erase(stone);
    return;
  }
  const DesiredEntry* entry = MineAt(session, gone.uid(), gone.placement());
  if (entry == nullptr || gone.incarnation() != cluster_.incarnation) {
    // A copy that nobody wants any more, or never did.
    return AckGone(session, gone.uid(), gone.placement());
  }
  releasing_[entry->uid] = session.host();
  session.items.erase(entry->uid);
  releases_.Release({.kind = entry->kind,
                     .key = entry->key,
                     .uid = entry->uid,
                     .placement = static_cast<int64_t>(entry->placement),
                     .proof = client::UnbindProof::kHostReleased,
                     .reason = entry->release.empty() ? "HostReleased" : entry->release,
                     .message = "host " + session.host() + " has removed it"});
}

void Gateway::OnReleased(const client::UnbindRequest& request) {
  auto node = releasing_.extract(request.uid);
  if (node.empty()) return;
  Session* session = table_.OfHost(node.mapped());
  if (session != nullptr) {
    AckGone(*session, request.uid, static_cast<uint64_t>(request.placement));
  }
}

void Gateway::AckGone(Session& session, const std::string& uid, uint64_t placement) {
  const auto item = session.items.find(uid);
  if (item != session.items.end() && item->second.placement <= placement) {
    session.items.erase(item);
  }
  agent::Gone& ack = *session.Queue().add_forget();
  ack.set_uid(uid);
  ack.set_incarnation(cluster_.incarnation);
  ack.set_placement(placement);
  SettleApprovals(session);
}

rt::Task<Status> Gateway::ClearTombstone(std::string host, client::Tombstone tombstone) {
  const std::vector<std::string> uids = {tombstone.uid};
  Status cleared = co_await deps_.tombstones.ClearTombstones(tombstone.pool_uid, uids);
  while (!cleared.ok()) {
    if (cleared.Is(Reason::kCancelled)) co_return cleared;
    CO_TRY_STATUS(co_await rt::Sleep(kRetryPause));
    cleared = co_await deps_.tombstones.ClearTombstones(tombstone.pool_uid, uids);
  }
  Session* session = table_.OfHost(host);
  if (session != nullptr) {
    AckGone(*session, tombstone.uid, static_cast<uint64_t>(tombstone.placement));
  }
  co_return OkStatus();
}

void Gateway::OnFacts(Session& session, const agent::PoolFacts& facts) {
  const auto found = session.pools.find(facts.pool_uid());
  if (found == session.pools.end()) return;  // it was its own when this was said
  Session::Pool& pool = found->second;
  const fleet::Vector before = pool.facts.capacity;
  const bool fence_changed = pool.said.fence_ready() != facts.facts().fence_ready() ||
                             pool.said.fence_problem() != facts.facts().fence_problem();
  pool.said = facts.facts();
  pool.facts = FromProto(facts.pool_uid(), pool.said, pool.face.limits);
  SetProblem(pool, CleanText(facts.problem(), kTextMax));
  if (pool.problem.empty()) TellPool(fleet::FleetEvent::Type::kFacts, pool, "");
  if (fence_changed) WriteFenceReady(pool.face, pool.said);
  if (facts.runtime_facts_changed()) {
    pools_.Change(pool.face, PoolWriter::Matter::kFacts, [facts](meta::Object& object) {
      return ApplyRuntimeFacts(facts, object);
    });
  }
  if (!facts.classes_changed() && before == pool.facts.capacity) {
    pool.is_unpublished = true;  // written with the next round
    return;
  }
  // Bindings are checked against the capacity in the store.
  pool.is_unpublished = false;
  const auto matter =
      facts.classes_changed() ? PoolWriter::Matter::kClasses : PoolWriter::Matter::kFigures;
  pools_.Change(pool.face, matter, [facts](meta::Object& object) {
    ApplyFacts(facts, object);
    return true;
  });
}

void Gateway::OnStatistics(Session& session, const agent::Statistics& statistics) {
  const DesiredEntry* entry = index_.Find(statistics.uid());
  const bool is_mine =
      statistics.uid().empty() || (entry != nullptr && session.pools.contains(entry->pool_uid));
  if (!is_mine) return;
  session.statistics[statistics.uid()] = FromProto(statistics, deps_.loop.WallNow());
}

void Gateway::OnHostEvent(Session& session, const agent::HostEvent& event) {
  if (!session.AdmitEvent(deps_.loop.Now())) return;
  client::EventSubject subject;
  if (event.uid().empty()) {
    const auto pool = session.pools.find(event.pool_uid());
    if (pool == session.pools.end()) return session.Strike("events of pools that are not its own");
    subject = SubjectOf(pool->second.face);
  } else {
    const DesiredEntry* entry = index_.Find(event.uid());
    if (entry == nullptr || !session.pools.contains(entry->pool_uid)) {
      return session.Strike("words about objects that are not its own");
    }
    subject = {.kind = entry->kind, .key = entry->key, .uid = entry->uid};
  }
  events_.Record(
      subject,
      event.type() == "Normal" ? client::EventType::kNormal : client::EventType::kWarning,
      SafeWord(event.reason(), "HostEvent"),
      "Report",
      CleanText(event.message(), kTextMax));
}

}  // namespace berth::gateway
