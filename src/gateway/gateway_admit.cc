// SPDX-License-Identifier: Apache-2.0
// What a host announces: its pools, and everything that it knows of.
#include "base/log.h"
#include "gateway/gateway.h"
#include "gateway/rules/resync.h"
#include "rt/chaos.h"

namespace berth::gateway {
namespace {

Refusal Malformed(std::string message) {
  return {.reason = std::string(kProtocol), .message = std::move(message)};
}

// A refusal that the host is to hear, as against a server that cannot write now.
bool IsVerdict(const Status& status) {
  return status.Is(Reason::kForbidden) || status.Is(Reason::kInvalid) ||
         status.Is(Reason::kBadRequest);
}

// Of a list in chunks the first ones are kept, as of one in a batch: a host that has more must
// still be let in. What is left out is left alone, like the others.
void KeepFirstOrphans(int known, agent::Announce& chunk) {
  const int room = static_cast<int>(kOrphansMax) - known;
  if (chunk.orphans_size() <= room) return;
  chunk.mutable_orphans()->DeleteSubrange(room, chunk.orphans_size() - room);
}

// Two pools with one UID: somebody has copied one in the store.
bool IsSamePool(const PoolFace& a, const PoolFace& b) {
  return a.kind == b.kind && a.name == b.name;
}

// What the host has is not what tombstones speak of: it comes from a history that the store has
// lost.
bool IsStranger(ResyncStep step) {
  return step == ResyncStep::kQuarantine || step == ResyncStep::kAdopt || step == ResyncStep::kWait;
}

}  // namespace

void Gateway::OnAnnounce(Session& session, agent::Announce chunk) {
  if (session.phase != Session::Phase::kAnnouncing) {
    return session.End(Malformed("a second announcement"));
  }
  agent::Announce& all = session.announce;
  KeepFirstOrphans(all.orphans_size(), chunk);
  session.announce_bytes += chunk.ByteSizeLong();
  if (static_cast<size_t>(all.pools_size() + chunk.pools_size()) > kPoolsMax ||
      static_cast<size_t>(all.known_size() + chunk.known_size()) > kKnownMax ||
      session.announce_bytes > kAnnounceBytesMax) {
    return session.End({.reason = std::string(kLimits),
                        .message = "announced more than " + std::to_string(kPoolsMax) + " pools, " +
                                   std::to_string(kKnownMax) + " objects or " +
                                   std::to_string(kAnnounceBytesMax) + " bytes"});
  }
  all.MergeFrom(chunk);
  if (!chunk.last()) return;
  session.phase = Session::Phase::kAdmitting;
  session.scope.Spawn("gateway.admit", Admit(session));
}

// Until its last chunk an announcement is memory that does nothing.
void Gateway::EndLateAnnounces() {
  const Time limit = deps_.loop.Now() - kAnnounceLimit;
  std::vector<Session*> late;
  for (const auto& [host, session] : table_.hosts()) {
    const bool is_late = session->phase == Session::Phase::kAnnouncing && session->began < limit;
    if (is_late) late.push_back(session);
  }
  for (Session* session : late) {
    session->End(Malformed("not all was announced within " + FormatDuration(kAnnounceLimit)));
  }
}

[[gnu::noinline]] rt::Task<Status> Gateway::Admit(Session& session) {
  {
    CO_TRY(LeaseGate::Place place, co_await admission_.Enter(session.lease_left));
    Status status = co_await AdmitPools(session);
    if (status.ok()) status = co_await ReadTombstones(session);
    if (status.Is(Reason::kCancelled)) co_return status;
    if (!status.ok()) {
      session.End({.reason = std::string(kUnavailable),
                   .message = std::string(status.message()),
                   .retry_after = Duration::Millis(200)});
      co_return OkStatus();
    }
  }
  if (session.ended()) co_return OkStatus();
  Resync(session);
  StartPump(session);
  co_return OkStatus();
}

rt::Task<Status> Gateway::AdmitPools(Session& session) {
  for (int i = 0; i < session.announce.pools_size(); ++i) {
    const agent::PoolAnnounce announce = session.announce.pools(i);
    auto pool = co_await pools_.Admit(announce, session.announce.host(), session.announcer);
    agent::PoolWelcome welcome;
    welcome.set_kind(CleanText(announce.kind(), kWordMax));
    welcome.set_name(CleanText(announce.name(), kWordMax * 2));
    if (!pool.ok()) {
      if (!IsVerdict(pool.status())) co_return pool.status();
      LOG_WARNING("pool {} of host {} refused: {}",
                  welcome.name(),
                  session.host(),
                  pool.status().message());
      welcome.set_refused(std::string(pool.status().message()));
      *session.Queue().add_pools() = std::move(welcome);
      continue;
    }
    Session::Pool known;
    known.face = FaceOf(*pool);
    const PoolFace* same = pool_feed_.Find(known.face.uid);
    if (same != nullptr && !IsSamePool(*same, known.face)) {
      welcome.set_refused("its UID is that of pool " + same->name);
      *session.Queue().add_pools() = std::move(welcome);
      continue;
    }
    known.said = announce.capacity();
    known.facts = FromProto(known.face.uid, known.said, known.face.limits);
    welcome.set_uid(known.face.uid);
    ToProto(known.face.limits, *welcome.mutable_limits());
    *session.Queue().add_pools() = std::move(welcome);
    const std::string uid = known.face.uid;
    session.pools[uid] = std::move(known);
  }
  co_return OkStatus();
}

rt::Task<Status> Gateway::ReadTombstones(Session& session) {
  std::vector<std::string> uids;
  for (const auto& [uid, pool] : session.pools) uids.push_back(uid);
  for (const std::string& uid : uids) {
    CO_TRY(std::vector<client::Tombstone> stones, co_await deps_.tombstones.ListTombstones(uid));
    for (client::Tombstone& stone : stones) {
      const std::string object = stone.uid;
      session.tombstones[object] = std::move(stone);
    }
  }
  co_return OkStatus();
}

// In one turn of the loop: from here on changes of the index reach the session.
void Gateway::Resync(Session& session) {
  session.phase = Session::Phase::kSyncing;
  for (const auto& [uid, pool] : session.pools) {
    table_.AddPool(uid, session);
    health_.Know(uid, session.host());
  }
  Strangers strangers;
  for (const agent::Known& known : session.announce.known()) {
    if (!IsStranger(ResyncKnown(session, known))) continue;
    strangers[known.uid()] = known.incarnation() == cluster_.incarnation ? known.placement() : 0;
  }
  for (const auto& [pool_uid, pool] : session.pools) {
    for (const std::string& uid : index_.OfPool(pool_uid)) {
      if (session.items.contains(uid) || settlement_.IsOpen(uid)) continue;
      const DesiredEntry& entry = *index_.Find(uid);
      if (entry.must_go()) {
        SendDelete(session, entry, entry.placement, WhyOf(entry));
      } else {
        session.MarkDirty(uid, nullptr);
      }
    }
  }
  ResyncTombstones(session, strangers);
  for (agent::Orphan& orphan : *session.announce.mutable_orphans()) {
    session.orphans.push_back(std::move(orphan));
  }
  session.announce = agent::Announce();  // with its memory
  Hear(session);
}

void Gateway::ResyncTombstones(Session& session, const Strangers& strangers) {
  auto stones = std::exchange(session.tombstones, {});
  for (auto& [uid, stone] : stones) {
    // What the host has under that name comes from a history that the store does not know.
    if (!strangers.contains(uid)) OnTombstone(session, std::move(stone));
  }
  // One may have been left after they were read, and before the index knew of it.
  Strangers unknown;
  for (const auto& [uid, placement] : strangers) {
    if (placement > 0 && index_.Find(uid) == nullptr && !stones.contains(uid)) {
      unknown[uid] = placement;
    }
  }
  if (unknown.empty()) return;
  for (const auto& [pool_uid, pool] : session.pools) {
    scope_.Spawn("gateway.tombstone", FindTombstones(pool_uid, unknown));
  }
}

ResyncStep Gateway::ResyncKnown(Session& session, const agent::Known& known) {
  const DesiredEntry* entry = index_.Find(known.uid());
  // It was given to this host since the restore: the store knows.
  if (known.incarnation() == cluster_.incarnation &&
      MineAt(session, known.uid(), known.placement()) != nullptr) {
    settlement_.Close(known.uid());
  }
  ResyncInput input{.known = {.incarnation = known.incarnation(),
                              .placement = known.placement(),
                              .hash = known.hash(),
                              .is_gone = known.gone(),
                              .is_leased = known.leased(),
                              .is_proven = IsProven(known)},
                    .desired = DesiredOf(known.uid()),
                    .is_here = entry != nullptr && session.pools.contains(entry->pool_uid),
                    .tombstone = std::nullopt,
                    .incarnation = cluster_.incarnation,
                    .is_open = settlement_.IsOpen(known.uid())};
  if (const auto stone = session.tombstones.find(known.uid()); stone != session.tombstones.end()) {
    input.tombstone = static_cast<uint64_t>(stone->second.placement);
  }
  Session::Item item{.placement = known.placement(), .hash = known.hash()};
  const ResyncStep step = DecideResync(input);
  if (step == ResyncStep::kAssign || step == ResyncStep::kDelete) settlement_.Close(known.uid());
  switch (step) {
    case ResyncStep::kConfirm:
    case ResyncStep::kConfirmAndCheck:
      // The pump confirms it, unless a move was claimed, and compares the body.
      session.items[known.uid()] = std::move(item);
      session.MarkDirty(known.uid(), nullptr);
      break;
    case ResyncStep::kAssign:
      // Of an older placement or history: whatever its hash, it is assigned anew.
      item.hash.clear();
      session.items[known.uid()] = std::move(item);
      session.MarkDirty(known.uid(), nullptr);
      break;
    case ResyncStep::kDelete:
      session.items[known.uid()] = std::move(item);
      SendDelete(session, *entry, entry->placement, WhyOf(*entry));
      break;
    case ResyncStep::kMoved:
      REACHED("gateway.seq17_moved_away");
      session.items[known.uid()] = std::move(item);
      SendDelete(session, *entry, known.placement(), agent::Delete::MOVED);
      break;
    case ResyncStep::kTombstone:
      session.items[known.uid()] = std::move(item);
      break;  // told with the other tombstones
    case ResyncStep::kGone: {
      agent::Gone gone;
      gone.set_uid(known.uid());
      gone.set_incarnation(known.incarnation());
      gone.set_placement(known.placement());
      session.items[known.uid()] = std::move(item);
      OnGone(session, gone);
      break;
    }
    case ResyncStep::kForget: AckGone(session, known.uid(), known.placement()); break;
    case ResyncStep::kAdopt: Adopt(session, known); break;
    case ResyncStep::kWait:
      if (!known.gone()) Claim(session, known);
      break;
    case ResyncStep::kQuarantine:
      REACHED("gateway.seq20_quarantine");
      LOG_WARNING(
          "host {} has {} at placement {} of incarnation {}, which the store does not: left alone",
          session.host(),
          CleanText(known.uid(), kWordMax),
          known.placement(),
          known.incarnation());
      if (!input.desired && input.known.is_proven) KeepInMind(session, known);
      break;
  }
  return step;
}

void Gateway::FinishSync(Session& session, uint64_t revision) {
  session.Flush();
  agent::ServerMessage message;
  message.mutable_synced()->set_revision(revision);
  message.mutable_synced()->set_open(settlement_.is_open());
  session.Send(message);
  session.phase = Session::Phase::kSynced;
  for (const auto& [uid, pool] : session.pools) {
    TellPool(fleet::FleetEvent::Type::kJoined, pool, "");
    WriteFenceReady(pool.face, pool.said);
    SendPurges(session, pool.face);
  }
  WriteOrphans(session);
  BeginHeldDrain(session);
  SettleApprovals(session);
}

}  // namespace berth::gateway
