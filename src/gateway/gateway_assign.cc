// SPDX-License-Identifier: Apache-2.0
// What hosts are told about objects. Everything comes out of the store (G1): the index says what
// has changed, and the pump of each session brings it to its host, one body at a time.
#include "apis/compute/machine_pool.h"
#include "apis/core/well_known.h"
#include "apis/networking/network_interface.h"
#include "apis/placement.h"
#include "apis/storage/volume_pool.h"
#include "base/log.h"
#include "base/strings.h"
#include "gateway/gateway.h"
#include "rt/chaos.h"
#include "rt/sleep.h"

namespace berth::gateway {
namespace {

constexpr int kBurst = 16;  // bodies assembled before others get their turn
constexpr Duration kOutboxPause = Duration::Millis(20);
constexpr Duration kRetryPause = Duration::Millis(200);
constexpr Duration kUnreadPause = Duration::Seconds(5);
constexpr Duration kUnreadPauseMax = Duration::Minutes(1);
constexpr int kRoundsMax = 4;  // an object, its volumes, their secrets

bool HasRequest(const meta::Object& object) {
  const auto& annotations = object.metadata().annotations;
  if (annotations.empty()) return false;  // of most, and a string for each would be dear
  return annotations.contains(std::string(apis::core::kReconcileRequestedAtAnnotation));
}

// Somebody was faster, whose change comes back here, or a rule is against it, which the machine
// waits for; others are tried again.
bool WaitsForAClaim(const Status& why) {
  return why.Is(Reason::kConflict) || why.Is(Reason::kNotFound) || why.Is(Reason::kForbidden) ||
         why.Is(Reason::kInvalid);
}

// Writes a claimed part and puts it where the machine's body takes it from.
template <class T, class Named>
rt::Task<Status> ClaimPart(client::Client* client,
                           T part,
                           const meta::KindInfo* kind,
                           Named* named) {
  const std::string name = part.metadata.name;
  meta::Object wanted = meta::Object::Of(*kind, std::move(part));
  const client::WriteOptions options;
  auto claimed = co_await client->Update(std::move(wanted), options);
  if (claimed.ok()) {
    (*named)[name] = std::move(claimed->template as<T>());
    co_return OkStatus();
  }
  if (!WaitsForAClaim(claimed.status())) co_return claimed.status();
  LOG_INFO("claiming {} {}: {}", kind->singular, name, claimed.status().ToString());
  co_return OkStatus();
}

}  // namespace

bool Gateway::IsClaimed(const std::string& uid, uint64_t placement) const {
  return claims_.contains({uid, placement});
}

void Gateway::OnEntry(const DesiredEntry* before,
                      const DesiredEntry* now,
                      const meta::Object* object) {
  const std::string uid = now != nullptr ? now->uid : before->uid;
  // A placement that is over needs no claim any more.
  for (auto at = claims_.lower_bound({uid, 0}); at != claims_.end() && at->first == uid;) {
    at = now == nullptr || at->second < now->placement ? claims_.erase(at) : std::next(at);
  }
  if (HoldsBack(uid, now)) return;
  if (before != nullptr && !before->pool_uid.empty() &&
      (now == nullptr || now->pool_uid != before->pool_uid)) {
    Session* left = table_.OfPool(before->pool_uid);
    if (left != nullptr && left->items.contains(uid)) {
      if (now != nullptr) SendDelete(*left, *before, before->placement, agent::Delete::MOVED);
      // Not by the host's own word: then there is a tombstone, which its answer clears.
      const Strangers strangers = {{uid, before->placement}};
      scope_.Spawn("gateway.tombstone", FindTombstones(before->pool_uid, strangers));
    }
    if (left != nullptr) {
      left->statistics.erase(uid);
      CheckDrained(*left);
      SettleApprovals(*left);
    }
  }
  if (now == nullptr || now->pool_uid.empty()) return;
  Session* session = table_.OfPool(now->pool_uid);
  if (session == nullptr) return;
  if (!now->must_go()) {
    if (object == nullptr || !AssignAtOnce(*session, *now, *object)) {
      MarkDirty(*session, uid, object);
    }
    return;
  }
  const auto item = session->items.find(uid);
  if (item != session->items.end() && item->second.is_deleting) return;
  SendDelete(*session, *now, now->placement, WhyOf(*now));
}

void Gateway::OnReferenced(const DesiredEntry& entry) {
  Session* session = table_.OfPool(entry.pool_uid);
  if (session != nullptr && !entry.must_go()) MarkDirty(*session, entry.uid, nullptr);
}

void Gateway::MarkDirty(Session& session, const std::string& uid, const meta::Object* object) {
  session.MarkDirty(uid, object);
  StartPump(session);
}

void Gateway::SendDelete(Session& session,
                         const DesiredEntry& entry,
                         uint64_t placement,
                         agent::Delete::Why why) {
  session.items[entry.uid].is_deleting = true;
  session.dirty().erase(entry.uid);
  agent::Delete& message = *session.Queue().add_deletes();
  message.set_uid(entry.uid);
  message.set_incarnation(cluster_.incarnation);
  message.set_placement(placement);
  message.set_why(why);
  message.set_kind(std::string(entry.kind->kind));
  message.set_approved(IsApproved(session, PoolHere(session, *entry.kind, entry.pool_uid)));
}

void Gateway::SendTombstone(Session& session, const client::Tombstone& stone) {
  agent::Delete& message = *session.Queue().add_deletes();
  message.set_uid(stone.uid);
  message.set_incarnation(cluster_.incarnation);
  message.set_placement(static_cast<uint64_t>(stone.placement));
  message.set_why(agent::Delete::TOMBSTONE);
  message.set_kind(stone.kind);
  message.set_approved(IsApproved(session, stone.pool_uid));
}

agent::Delete::Why Gateway::WhyOf(const DesiredEntry& entry) {
  return entry.is_deleting ? agent::Delete::DELETED : agent::Delete::MOVED;
}

// Objects left the store or the pool although the host had them. If that was by force or behind a
// fence there are tombstones; if not, nobody may remove what runs.
rt::Task<Status> Gateway::FindTombstones(std::string pool_uid, Strangers strangers) {
  for (;;) {
    auto stones = co_await deps_.tombstones.ListTombstones(pool_uid);
    if (stones.status().Is(Reason::kCancelled)) co_return stones.status();
    Session* session = table_.OfPool(pool_uid);
    if (session == nullptr) co_return OkStatus();  // read when the host returns
    if (!stones.ok()) {
      CO_TRY_STATUS(co_await rt::Sleep(kRetryPause));
      continue;
    }
    for (client::Tombstone& stone : *stones) {
      const auto known = strangers.find(stone.uid);
      if (known == strangers.end()) continue;
      if (known->second > static_cast<uint64_t>(stone.placement)) continue;
      OnTombstone(*session, std::move(stone));
    }
    co_return OkStatus();
  }
}

// Whether or not the host has announced it: its answer is the proof that it is rid of it.
void Gateway::OnTombstone(Session& session, client::Tombstone stone) {
  const DesiredEntry* entry = index_.Find(stone.uid);
  const bool is_back = entry != nullptr && session.pools.contains(entry->pool_uid) &&
                       entry->placement > static_cast<uint64_t>(stone.placement);
  if (is_back) {
    // It was given to this host again: what it has is what it should have.
    scope_.Spawn("gateway.tombstone", ClearTombstone(session.host(), std::move(stone)));
    return;
  }
  const auto item = session.items.find(stone.uid);
  if (item == session.items.end() || !item->second.is_deleting) SendTombstone(session, stone);
  const std::string uid = stone.uid;
  session.tombstones[uid] = std::move(stone);
}

// A session that has nothing to bring has no pump: its frame would be a tenth of the session.
void Gateway::StartPump(Session& session) {
  if (session.is_pumping || session.ended() || session.phase < Session::Phase::kSyncing) return;
  session.is_pumping = true;
  session.scope.Spawn("gateway.pump", Pump(session));
}

[[gnu::noinline]] rt::Task<Status> Gateway::Pump(Session& session) {
  // Not inside of the change that made it necessary: the index is not to be touched there.
  CO_TRY_STATUS(co_await rt::Yield());
  for (int assigned = 0; !session.ended();) {
    if (session.dirty().empty()) {
      if (session.phase != Session::Phase::kSyncing) break;
      const Result<uint64_t> revision = co_await StoreRevision();
      if (revision.status().Is(Reason::kCancelled)) co_return revision.status();
      if (!session.ended()) FinishSync(session, revision.ok() ? *revision : 0);
      continue;
    }
    if (session.outbox_bytes() > kAssignOutboxBytes) {
      // A slow host waits for its own bodies, not in our memory.
      CO_TRY_STATUS(co_await rt::Sleep(kOutboxPause));
      continue;
    }
    auto node = session.dirty().extract(session.dirty().begin());
    const std::string uid = node.key();
    const Status status = co_await AssignOne(session, uid, std::move(node.mapped()));
    if (status.Is(Reason::kCancelled)) co_return status;
    if (status.Is(Reason::kInternal)) {
      SetAside(session, uid, status);
    } else if (status.ok()) {
      session.unread.erase(uid);
    } else {
      LOG_WARNING("assigning {} to host {}: {}", uid, session.host(), status.ToString());
      session.MarkDirty(uid, nullptr);
      CO_TRY_STATUS(co_await rt::Sleep(kRetryPause));
    }
    if (++assigned % kBurst == 0) CO_TRY_STATUS(co_await rt::Yield());
  }
  session.is_pumping = false;
  co_return OkStatus();
}

// Something of it cannot be read, for nobody knows how long: its host keeps what it has of it, and
// is told of all others.
void Gateway::SetAside(Session& session, const std::string& uid, const Status& why) {
  REACHED("gateway.unread_part");
  const DesiredEntry* entry = index_.Find(uid);
  if (entry == nullptr || session.ended()) return;
  if (!entry->must_go()) ConfirmAsItIs(session, *entry);
  if (!session.unread.insert(uid).second) return;  // that was said
  LOG_WARNING("assigning {} to host {}: {}", uid, session.host(), why.ToString());
  if (session.looks_again) return;
  session.looks_again = true;
  session.scope.Spawn("gateway.unread", LookAgain(session));
}

// Changes of what they name wake them too; this is for what is mended in the store by hand.
rt::Task<Status> Gateway::LookAgain(Session& session) {
  Duration pause = kUnreadPause;
  while (!session.unread.empty()) {
    CO_TRY_STATUS(co_await rt::Sleep(pause));
    pause = std::min(pause * 2, kUnreadPauseMax);
    // A copy: what is marked may be looked at meanwhile.
    const std::set<std::string> unread = session.unread;
    for (const std::string& uid : unread) MarkDirty(session, uid, nullptr);
  }
  session.looks_again = false;
  co_return OkStatus();
}

bool Gateway::AssignAtOnce(Session& session,
                           const DesiredEntry& entry,
                           const meta::Object& object) {
  // What is older goes first, and with it what this one would refer to.
  if (session.is_pumping || session.outbox_bytes() > kAssignOutboxBytes) return false;
  // The pump has time to end a request.
  if (entry.is_managed_elsewhere || HasRequest(object)) return false;
  const Parts parts;
  if (!NeedsOf(object, parts).empty()) return false;
  index_.SetReferences(entry.uid, entry.key, parts);
  EncodedAssign assign = AssembleAssign(object, parts, cluster_.incarnation, copied_);
  index_.SetHash(entry.uid, entry.touches, assign.hash);
  SendAssign(session, entry, std::move(assign));
  return true;
}

rt::Task<Status> Gateway::AssignOne(Session& session,
                                    std::string uid,
                                    std::optional<meta::Object> object) {
  const DesiredEntry* entry = index_.Find(uid);
  if (entry == nullptr || entry->must_go() || !session.pools.contains(entry->pool_uid) ||
      settlement_.IsOpen(uid)) {
    co_return OkStatus();
  }
  if (entry->is_managed_elsewhere) {
    ConfirmAsItIs(session, *entry);
    co_return OkStatus();
  }
  const uint64_t placement = entry->placement;
  const std::string pool_uid = entry->pool_uid;
  const uint64_t touches = entry->touches;
  EncodedAssign assign{.bytes = {}, .hash = entry->hash};
  const auto known = session.items.find(uid);
  if (assign.hash.empty() || known == session.items.end() || known->second.hash != assign.hash ||
      known->second.placement != placement) {
    if (!object) {
      const client::ObjectKey key = entry->key;
      auto read = co_await deps_.client.Get(*entry->kind, key);
      if (read.status().Is(Reason::kNotFound)) co_return OkStatus();
      if (!read.ok()) co_return read.status();
      object = *std::move(read);
    }
    const auto epoch = static_cast<uint64_t>(apis::EpochOf(*object));
    // Newer than the index: its event is on the way. Older: to be read again.
    if (object->metadata().uid != uid || epoch > placement) co_return OkStatus();
    if (epoch < placement || !apis::IsBound(*object))
      co_return Unavailable("an old state was read");
    CO_TRY(Parts parts, co_await CollectParts(&*object));
    CO_TRY_STATUS(co_await ClaimInterfaces(&*object, &parts));
    CO_TRY_STATUS(co_await ClaimVolumes(&session, &*object, &parts));
    assign = AssembleAssign(*object, parts, cluster_.incarnation, copied_);
    index_.SetHash(uid, touches, assign.hash);
  }
  // The world may have changed while parts were read.
  entry = index_.Find(uid);
  if (entry == nullptr || entry->must_go() || entry->placement != placement ||
      entry->pool_uid != pool_uid) {
    co_return OkStatus();
  }
  const bool is_told = SendAssign(session, *entry, std::move(assign));
  if (is_told && object && HasRequest(*object)) co_return co_await EndRequest(*std::move(object));
  co_return OkStatus();
}

// 5.7: the host was told, so the wish for another look is over.
rt::Task<Status> Gateway::EndRequest(meta::Object object) {
  object.metadata().annotations.erase(std::string(apis::core::kReconcileRequestedAtAnnotation));
  const client::WriteOptions options;
  const auto written = co_await deps_.client.Update(std::move(object), options);
  if (written.status().Is(Reason::kCancelled)) co_return written.status();
  // Somebody was faster: their change comes back here, with the request if that is still there.
  if (!written.ok()) LOG_DEBUG("ending a request: {}", written.status().ToString());
  co_return OkStatus();
}

bool Gateway::SendAssign(Session& session, const DesiredEntry& entry, EncodedAssign assign) {
  if (session.ended()) return false;
  if (IsClaimed(entry.uid, entry.placement)) return false;  // invariant 4; EndMove comes back to it
  Session::Item& item = session.items[entry.uid];
  if (item.placement == entry.placement && item.hash == assign.hash) {
    Confirm(session, item, entry.uid);
    return true;
  }
  item = {.placement = entry.placement, .hash = std::move(assign.hash), .is_confirmed = true};
  agent::Assign proof;
  proof.set_proof(ProofOf(entry.uid, cluster_.incarnation, entry.placement, entry.pool_uid));
  proof.AppendToString(&assign.bytes);
  session.QueueAssign(assign.bytes);
  return true;
}

// By which a host notices that history was rewound.
rt::Task<Result<uint64_t>> Gateway::StoreRevision() {
  client::ListOptions options;
  options.limit = 1;
  options.detail = client::Detail::kMetadata;
  CO_TRY(const client::ObjectList page,
         co_await deps_.client.List(apis::compute::kMachinePoolKind, options));
  co_return ParseUint(page.resource_version).value_or(0);
}

void Gateway::Confirm(Session& session, Session::Item& item, const std::string& uid) {
  if (item.is_confirmed) return;
  item.is_confirmed = true;
  agent::Confirm& confirm = *session.Queue().add_confirms();
  confirm.set_uid(uid);
  confirm.set_incarnation(cluster_.incarnation);
  confirm.set_placement(item.placement);
}

// 5.7: what the host has may go on, as it is; what it does not have is not begun.
void Gateway::ConfirmAsItIs(Session& session, const DesiredEntry& entry) {
  const auto item = session.items.find(entry.uid);
  if (item == session.items.end() || item->second.placement != entry.placement) return;
  if (!IsClaimed(entry.uid, entry.placement)) Confirm(session, item->second, entry.uid);
}

rt::Task<Result<Parts>> Gateway::CollectParts(const meta::Object* object) {
  Parts parts;
  const client::ObjectKey own{.namespace_ = object->metadata().namespace_,
                              .name = object->metadata().name};
  for (int round = 0; round < kRoundsMax; ++round) {
    const std::vector<Need> needs = NeedsOf(*object, parts);
    if (round == 0 || !needs.empty()) {
      // Noted before they are read, so that no change between is missed.
      for (const Need& need : needs) Put(need, std::nullopt, parts);
      index_.SetReferences(object->metadata().uid, own, parts);
    }
    if (needs.empty()) break;
    for (const Need& need : needs) {
      const bool is_of_cluster = need.kind->scope == meta::Scope::kCluster;
      const client::ObjectKey key{.namespace_ = is_of_cluster ? std::string() : own.namespace_,
                                  .name = need.name};
      auto found = co_await deps_.client.Get(*need.kind, key);
      if (found.ok()) {
        std::optional<meta::Object> part(*std::move(found));
        Put(need, std::move(part), parts);
      } else if (!found.status().Is(Reason::kNotFound)) {
        co_return found.status();
      }
    }
  }
  co_return parts;
}

// Claims end with their machine: controller/claims.
rt::Task<Status> Gateway::ClaimInterfaces(const meta::Object* machine, Parts* parts) {
  for (apis::networking::NetworkInterface& nic : InterfacesToClaim(*machine, *parts)) {
    CO_TRY_STATUS(co_await ClaimPart(&deps_.client,
                                     std::move(nic),
                                     &apis::networking::kNetworkInterfaceKind,
                                     &parts->interfaces));
  }
  co_return OkStatus();
}

rt::Task<Status> Gateway::ClaimVolumes(const Session* session,
                                       const meta::Object* machine,
                                       Parts* parts) {
  for (apis::storage::Volume& volume : VolumesToClaim(*machine, *parts)) {
    const auto& placement = volume.status.placement;
    if (placement && !session->pools.contains(placement->pool_uid)) {
      std::string pool = placement->pool;
      CO_TRY(const bool reaches, co_await Reaches(session, machine, std::move(pool)));
      if (!reaches) continue;
    }
    CO_TRY_STATUS(co_await ClaimPart(
        &deps_.client, std::move(volume), &apis::storage::kVolumeKind, &parts->volumes));
  }
  co_return OkStatus();
}

rt::Task<Result<bool>> Gateway::Reaches(const Session* session,
                                        const meta::Object* machine,
                                        std::string volume_pool) {
  const client::ObjectKey from{.namespace_ = {}, .name = std::move(volume_pool)};
  const client::ObjectKey to{.namespace_ = {}, .name = apis::PlacementOf(*machine)->pool};
  const auto volumes = co_await deps_.client.Get(apis::storage::kVolumePoolKind, from);
  const auto machines = co_await deps_.client.Get(apis::compute::kMachinePoolKind, to);
  for (const Status& read : {volumes.status(), machines.status()}) {
    if (read.Is(Reason::kNotFound)) co_return false;
    if (!read.ok()) co_return read;
  }
  const bool reaches = CanReach(volumes->as<apis::storage::VolumePool>(),
                                machines->as<apis::compute::MachinePool>());
  if (!reaches) {
    LOG_INFO("machine {} names a volume of pool {}, which is out of reach of host {}",
             machine->metadata().name,
             from.name,
             session->host());
  }
  co_return reaches;
}

// After a restore the store may know nothing of what is there: it would be drained at once, and go
// with all of it. It is not offered anything meanwhile.
void Gateway::BeginDrain(Session& session) {
  if (settlement_.MayHide(session.host())) return;
  const WallTime now = deps_.loop.WallNow();
  for (const auto& [uid, pool] : session.pools) {
    pools_.Change(pool.face, PoolWriter::Matter::kDrain, [now](meta::Object& object) {
      return RequestDrain(object, now);
    });
  }
  CheckDrained(session);
}

void Gateway::BeginHeldDrain(Session& session) {
  const bool waits = session.is_draining && session.phase == Session::Phase::kSynced;
  if (waits && !session.ended() && !session.said_goodbye) BeginDrain(session);
}

void Gateway::BeginHeldDrains() {
  for (const auto& [host, session] : table_.hosts()) BeginHeldDrain(*session);
}

void Gateway::CheckDrained(Session& session) {
  if (!session.is_draining || session.said_goodbye || session.phase != Session::Phase::kSynced) {
    return;
  }
  if (settlement_.MayHide(session.host())) return;
  // Volumes and buckets do not leave.
  for (const auto& [uid, pool] : session.pools) {
    const bool can_leave = pool.face.kind == &apis::compute::kMachinePoolKind;
    if (can_leave && !pool.face.is_drained && !index_.OfPool(uid).empty()) return;
  }
  BidFarewell(session);
}

void Gateway::BidFarewell(Session& session) {
  session.said_goodbye = true;
  health_.Goodbye(session.host(), deps_.loop.Now());
  session.Flush();
  agent::ServerMessage farewell;
  farewell.mutable_farewell();
  session.Send(farewell);
}

}  // namespace berth::gateway
