// SPDX-License-Identifier: Apache-2.0
// After a restore: what of the store cannot be read (rules/settlement.h, ADR 0038). Hosts are let
// in without it. It is asked for by name until it can be read or is gone, of which nobody is told,
// and is one more open object from then on.
#include "apis/core/pool_parts.h"
#include "apis/placement.h"
#include "base/log.h"
#include "gateway/gateway.h"
#include "rt/chaos.h"
#include "rt/sleep.h"

namespace berth::gateway {
namespace {

namespace core = apis::core;

// One read per object that cannot be read: whoever mends it waits as long for the next step.
constexpr Duration kLookEvery = Duration::Seconds(5);

}  // namespace

void Gateway::NoteUnread(const meta::KindInfo& kind, const client::Unread& unread) {
  LOG_WARNING("{} {}/{} of the restored store cannot be read",
              kind.plural,
              unread.key.namespace_,
              unread.key.name);
  const bool is_known = !unread.uid.empty() && !apis::IsPool(kind);
  if (is_known) settlement_.Know(unread.uid, kind, unread.key);
  if (!is_known) settlement_.NoteUnread(kind, unread.key);
}

void Gateway::WatchUnread() {
  if (is_looking_ || settlement_.AllUnread().empty()) return;
  is_looking_ = true;
  scope_.Spawn("gateway.unread", LookAtUnread());
}

rt::Task<Status> Gateway::LookAtUnread() {
  for (;;) {
    CO_TRY_STATUS(co_await rt::Sleep(kLookEvery));
    const std::vector<Settlement::Unread> all = settlement_.AllUnread();
    if (all.empty()) break;
    for (const Settlement::Unread& one : all) {
      const auto found = co_await deps_.client.Get(*one.kind, one.key);
      if (found.status().Is(Reason::kCancelled)) co_return found.status();
      if (found.status().Is(Reason::kNotFound)) RemoveUnread(one);
      // Of a pool the feed tells, with its host.
      if (found.ok() && !apis::IsPool(*one.kind)) {
        Reveal(*one.kind, one.key, found->metadata().uid);
      }
    }
  }
  is_looking_ = false;
  co_return OkStatus();
}

void Gateway::RevealFollowed() {
  index_.ForEach([this](const DesiredEntry& entry) {
    if (settlement_.ForgetUnread(*entry.kind, entry.key)) {
      settlement_.Know(entry.uid, *entry.kind, entry.key);
    }
  });
  pool_feed_.ForEach([this](const PoolFace& face) { RevealPool(face); });
}

void Gateway::Reveal(const meta::KindInfo& kind,
                     const client::ObjectKey& key,
                     const std::string& uid) {
  const Settlement::Object* known = settlement_.Find(uid);
  const bool is_stranger = known != nullptr && known->kind == nullptr;
  if (!settlement_.ForgetUnread(kind, key) && !is_stranger) return;
  REACHED("gateway.seq20_unread_revealed");
  // Another object has the name by now: what could not be read is gone.
  const std::string former = settlement_.UidAt(kind, key);
  if (!former.empty() && former != uid) CloseOpen(former);
  settlement_.Know(uid, kind, key);
  settlement_.Find(uid)->is_unread = false;
  if (settlement_.is_open()) return TryConclude();
  scope_.Spawn("gateway.adopt", AdoptAll({uid}));
}

void Gateway::RevealPool(const PoolFace& face) {
  if (!settlement_.ForgetUnread(*face.kind, {.namespace_ = "", .name = face.name})) return;
  const bool has_copies = face.mode == core::kPoolModeSession && !face.host.empty() && !face.is_off;
  const Session* session = table_.OfHost(face.host);
  const bool was_heard = session != nullptr && session->phase >= Session::Phase::kSyncing;
  if (has_copies && !was_heard) settlement_.Await(face.uid, face.name, face.host);
  TryConclude();
}

void Gateway::RemoveUnread(const Settlement::Unread& gone) {
  settlement_.ForgetUnread(*gone.kind, gone.key);
  const std::string uid = settlement_.UidAt(*gone.kind, gone.key);
  if (!uid.empty()) CloseOpen(uid);
  TryConclude();
}

void Gateway::KeepInMind(Session& session, const agent::Known& known) {
  if (settlement_.is_open() && settlement_.HasUnread()) Claim(session, known);
}

}  // namespace berth::gateway
