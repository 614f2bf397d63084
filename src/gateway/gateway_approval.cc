// SPDX-License-Identifier: Apache-2.0
// A host whose history was rewound holds mass deletions back until an operator approves them (the
// breaker of PROTOCOL 4.3). The approval is an annotation on the pool, and is over with the last
// deletion that it was for.
#include "apis/placement.h"
#include "gateway/gateway.h"

namespace berth::gateway {

bool Gateway::IsApproved(const Session& session, const std::string& pool_uid) {
  const auto pool = session.pools.find(pool_uid);
  return pool != session.pools.end() && pool->second.face.approves_deletions;
}

std::string Gateway::PoolHere(const Session& session,
                              const meta::KindInfo& kind,
                              const std::string& pool_uid) {
  if (session.pools.contains(pool_uid)) return pool_uid;
  for (const auto& [uid, pool] : session.pools) {
    if (pool.face.kind == &apis::PoolKindOf(kind)) return uid;
  }
  return "";
}

// The operator has said yes after all: everything that is to go is told again.
void Gateway::SendApproved(Session& session, const PoolFace& face) {
  if (!face.approves_deletions) return;
  for (const std::string& uid : index_.OfPool(face.uid)) {
    const DesiredEntry& entry = *index_.Find(uid);
    if (entry.must_go() && !settlement_.IsOpen(uid)) {
      SendDelete(session, entry, entry.placement, WhyOf(entry));
    }
  }
  for (const auto& [uid, item] : session.items) {
    const DesiredEntry* entry = item.is_deleting ? index_.Find(uid) : nullptr;
    if (entry == nullptr || session.pools.contains(entry->pool_uid)) continue;
    if (PoolHere(session, *entry->kind, entry->pool_uid) != face.uid) continue;
    SendDelete(session, *entry, item.placement, agent::Delete::MOVED);
  }
  for (const auto& [uid, stone] : session.tombstones) {
    if (stone.pool_uid == face.uid) SendTombstone(session, stone);
  }
}

bool Gateway::HasDeletions(const Session& session, const PoolFace& face) const {
  for (const std::string& uid : index_.OfPool(face.uid)) {
    if (index_.Find(uid)->must_go()) return true;
  }
  for (const auto& [uid, item] : session.items) {
    const DesiredEntry* entry = item.is_deleting ? index_.Find(uid) : nullptr;
    if (entry == nullptr || session.pools.contains(entry->pool_uid)) continue;
    if (PoolHere(session, *entry->kind, entry->pool_uid) == face.uid) return true;
  }
  for (const auto& [uid, stone] : session.tombstones) {
    if (stone.pool_uid == face.uid) return true;
  }
  return false;
}

// An approval that stayed would open the breaker for ever.
void Gateway::SettleApprovals(Session& session) {
  if (session.phase != Session::Phase::kSynced) return;
  for (const auto& [uid, pool] : session.pools) {
    if (!pool.face.approves_deletions || HasDeletions(session, pool.face)) continue;
    pools_.Change(pool.face, PoolWriter::Matter::kApproval, [](meta::Object& object) {
      return object.metadata().annotations.erase(std::string(kApproveDeletionsAnnotation)) > 0;
    });
  }
}

}  // namespace berth::gateway
