// SPDX-License-Identifier: Apache-2.0
// After a restore: who runs what is found out from the hosts before anything is done with it
// (rules/settlement.h). A copy that runs by a placement which the store has lost is adopted where
// it is, if the host can prove that it was given that placement.
#include <algorithm>
#include <array>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/reservation.h"
#include "apis/placement.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_pool.h"
#include "apis/storage/volume_snapshot.h"
#include "base/log.h"
#include "client/cache/informer.h"
#include "gateway/gateway.h"
#include "pki/digest.h"
#include "rt/chaos.h"
#include "rt/sleep.h"

namespace berth::gateway {
namespace {

constexpr Duration kRetryPause = Duration::Millis(200);
constexpr size_t kPage = 500;
constexpr size_t kAdoptionsPerCall = 64;
constexpr size_t kProofBytes = 16;

// What it takes there by the word of its host, which no proof is of: not more than its pool has of
// what the pool is known to have.
client::Amounts TakenBy(const agent::Known& known, const Session::Pool* pool) {
  client::Amounts taken;
  for (const auto& [name, amount] : FromProto(known.resources())) {
    if (amount == 0) continue;
    taken[name] = amount;
    if (pool == nullptr) continue;
    const auto has = pool->facts.capacity.find(name);
    if (has != pool->facts.capacity.end()) taken[name] = std::min(amount, has->second);
  }
  return taken;
}

}  // namespace

// A failure is tried again: hosts are let in when the list is whole, but for what cannot be read.
rt::Task<Status> Gateway::BeginSettlement() {
  for (;;) {
    const Status listed = co_await ListRewound();
    if (listed.Is(Reason::kCancelled)) co_return listed;
    if (listed.ok()) break;
    LOG_WARNING("listing what was restored: {}", listed.ToString());
    CO_TRY_STATUS(co_await rt::Sleep(kRetryPause));
  }
  RevealFollowed();
  settlement_.Listed();
  WatchUnread();
  LOG_WARNING("the store was restored: {} objects wait until these were heard: {}",
              settlement_.OpenUids().size(),
              settlement_.Awaited());
  TryConclude();
  co_return OkStatus();
}

rt::Task<Status> Gateway::ListRewound() {
  static constexpr std::array kObjects = {&apis::compute::kMachineKind,
                                          &apis::storage::kVolumeKind,
                                          &apis::storage::kVolumeSnapshotKind,
                                          &apis::storage::kBucketKind,
                                          &apis::core::kReservationKind};
  for (const meta::KindInfo* kind : kObjects) {
    client::ListOptions options;
    options.limit = kPage;
    options.detail = client::Detail::kMetadata;
    options.unreadable = client::Unreadable::kName;  // what is not known may run twice
    do {
      CO_TRY(const client::ObjectList page, co_await deps_.client.List(*kind, options));
      for (const meta::Object& object : page.items) {
        settlement_.Know(object.metadata().uid, *kind, client::KeyOf(object));
      }
      for (const client::Unread& unread : page.unread) NoteUnread(*kind, unread);
      options.continue_token = page.continue_token;
    } while (!options.continue_token.empty());
  }
  static constexpr std::array kPools = {&apis::compute::kMachinePoolKind,
                                        &apis::storage::kVolumePoolKind,
                                        &apis::storage::kBucketPoolKind};
  std::vector<std::string> off;
  for (const meta::KindInfo* kind : kPools) {
    client::ListOptions options;
    options.unreadable = client::Unreadable::kName;
    CO_TRY(const client::ObjectList pools, co_await deps_.client.List(*kind, options));
    for (const client::Unread& unread : pools.unread) NoteUnread(*kind, unread);
    for (const meta::Object& pool : pools.items) {
      const PoolFace face = FaceOf(pool);
      const bool has_copies = face.mode == apis::core::kPoolModeSession && !face.host.empty();
      if (has_copies) settlement_.Await(face.uid, face.name, face.host);
      if (face.is_off) off.push_back(face.host);
    }
  }
  for (const std::string& host : off) settlement_.HostHeard(host);
  co_return OkStatus();
}

std::string Gateway::ProofOf(const std::string& uid,
                             uint64_t incarnation,
                             uint64_t placement,
                             const std::string& pool_uid) const {
  const std::string words =
      uid + '/' + std::to_string(incarnation) + '/' + std::to_string(placement) + '/' + pool_uid;
  return proof_key_.CodeOf(words).substr(0, kProofBytes);
}

// Nobody asks it of what the store itself has given out.
bool Gateway::IsProven(const agent::Known& known) const {
  if (known.incarnation() == cluster_.incarnation) return false;
  return pki::EqualConstantTime(
      known.proof(),
      ProofOf(known.uid(), known.incarnation(), known.placement(), known.pool_uid()));
}

std::optional<Desired> Gateway::DesiredOf(const std::string& uid) {
  const DesiredEntry* entry = index_.Find(uid);
  if (entry == nullptr) {
    const Settlement::Object* object = settlement_.Find(uid);
    if (object == nullptr || object->kind == nullptr) return std::nullopt;
    return Desired();  // never placed
  }
  return Desired{.pool_uid = entry->pool_uid,
                 .placement = entry->placement,
                 .is_deleting = entry->must_go(),
                 .hash = entry->hash};
}

// The pool may have been made anew since the restore: then it is the one of its kind.
std::string Gateway::PoolFor(const Session& session, const agent::Known& known) {
  const Settlement::Object* object = settlement_.Find(known.uid());
  if (object != nullptr && object->kind != nullptr) {
    return PoolHere(session, *object->kind, known.pool_uid());
  }
  return session.pools.contains(known.pool_uid()) ? known.pool_uid() : "";
}

void Gateway::Claim(Session& session, const agent::Known& known) {
  HeldCopy copy{.host = session.host(),
                .pool_uid = PoolFor(session, known),
                .incarnation = known.incarnation(),
                .placement = known.placement(),
                .resources = {},
                .consumers = {}};
  const auto pool = session.pools.find(copy.pool_uid);
  copy.resources = TakenBy(known, pool == session.pools.end() ? nullptr : &pool->second);
  const int consumers = std::min(known.consumers_size(), int{apis::core::kReservationCountMax});
  for (int i = 0; i < consumers; ++i) {
    copy.consumers.push_back(CleanText(known.consumers(i), kWordMax));
  }
  settlement_.Claim(known.uid(), std::move(copy));
  if (known.leased()) KeepLease(session, known);
}

// What runs goes on until it is known who has it.
void Gateway::KeepLease(Session& session, const agent::Known& known) {
  agent::Confirm& keep = *session.Queue().add_confirms();
  keep.set_uid(known.uid());
  keep.set_incarnation(known.incarnation());
  keep.set_placement(known.placement());
  keep.set_keep_only(true);
}

void Gateway::Adopt(Session& session, const agent::Known& known) {
  if (settlement_.Find(known.uid()) == nullptr) {
    // Late: the object is known, and free.
    const DesiredEntry* entry = index_.Find(known.uid());
    if (entry == nullptr) return;
    settlement_.Know(known.uid(), *entry->kind, entry->key);
  }
  Claim(session, known);
  if (!PoolFor(session, known).empty()) scope_.Spawn("gateway.adopt", AdoptAll({known.uid()}));
}

bool Gateway::HoldsBack(const std::string& uid, const DesiredEntry* now) {
  if (now != nullptr && !settlement_.is_listing()) Reveal(*now->kind, now->key, uid);
  if (!settlement_.IsOpen(uid)) return false;
  const Settlement::Object* object = settlement_.Find(uid);
  if (object == nullptr) return true;  // not listed yet
  const bool is_over =
      now == nullptr || (object->adopted_from && now->placement > *object->adopted_from);
  if (is_over) CloseOpen(uid);
  return true;
}

void Gateway::Hear(const Session& session) {
  if (!settlement_.is_open()) return;
  settlement_.HostHeard(session.host());
  TryConclude();
}

void Gateway::TryConclude() {
  if (!settlement_.all_heard()) return;
  concludes_again_ = is_concluding_;
  if (is_concluding_) return;
  is_concluding_ = true;
  scope_.Spawn("gateway.settle", Conclude());
}

rt::Task<Status> Gateway::Conclude() {
  // Not inside of what made it possible.
  CO_TRY_STATUS(co_await rt::Yield());
  std::vector<std::string> elsewhere;
  size_t stuck = 0;
  for (const std::string& uid : settlement_.OpenUids()) {
    const Settlement::Object* object = settlement_.Find(uid);
    if (object == nullptr || object->kind == nullptr || object->is_unread) continue;
    const HeldCopy* copy = Settlement::LatestOf(*object);
    const DesiredEntry* entry = index_.Find(uid);
    const bool is_as_stored =
        copy == nullptr || (entry != nullptr && entry->pool_uid == copy->pool_uid);
    if (is_as_stored) {
      CloseOpen(uid);
    } else if (copy->pool_uid.empty()) {
      ++stuck;
      LOG_WARNING(
          "{} runs on host {}, whose pool the store does not know: it waits until the host "
          "has a pool again, or is revoked",
          uid,
          copy->host);
    } else {
      elsewhere.push_back(uid);
    }
  }
  CO_TRY_STATUS(co_await AdoptAll(std::move(elsewhere)));
  if (settlement_.HasDoubt()) {
    LOG_WARNING(
        "hosts run what may be an object that cannot be read: it is settled when all {} are "
        "mended or removed",
        settlement_.AllUnread().size());
  }
  const bool is_stuck = stuck > 0 || settlement_.HasDoubt();
  if (is_stuck || concludes_again_) {
    is_concluding_ = false;  // when the next host is heard, or something can be read
    BeginHeldDrains();
    if (std::exchange(concludes_again_, false)) TryConclude();
    co_return OkStatus();
  }
  for (;;) {
    const Status settled = co_await deps_.rewound.Settle();
    if (settled.ok()) break;
    if (settled.Is(Reason::kCancelled)) co_return settled;
    CO_TRY_STATUS(co_await rt::Sleep(kRetryPause));
  }
  if (std::exchange(concludes_again_, false)) {
    is_concluding_ = false;
    TryConclude();
    co_return OkStatus();
  }
  REACHED("gateway.settled");
  LOG_INFO("all hosts were heard since the restore: what they run is known");
  settlement_.Finish();
  const Result<uint64_t> revision = co_await StoreRevision();
  if (revision.status().Is(Reason::kCancelled)) co_return revision.status();
  agent::ServerMessage message;
  message.mutable_synced()->set_revision(revision.ok() ? *revision : 0);
  for (const auto& [host, session] : table_.hosts()) {
    if (session->phase != Session::Phase::kSynced || session->ended()) continue;
    session->Flush();
    session->Send(message);
    for (const auto& [uid, pool] : session->pools) {
      TellPool(fleet::FleetEvent::Type::kFacts, pool, "");
    }
  }
  BeginHeldDrains();
  co_return OkStatus();
}

// A machine that has moved on since counts too: what it has used is used.
bool Gateway::MayHaveUsed(const std::string& uid, const std::string& name_space) {
  const auto is_machine_there = [&](const meta::KindInfo* kind, const client::ObjectKey& key) {
    return kind == &apis::compute::kMachineKind && key.namespace_ == name_space;
  };
  if (const DesiredEntry* entry = index_.Find(uid))
    return is_machine_there(entry->kind, entry->key);
  const Settlement::Object* object = settlement_.Find(uid);
  if (object != nullptr && object->kind != nullptr) {
    return is_machine_there(object->kind, object->key);
  }
  return !uid.empty();
}

std::vector<client::Adoption> Gateway::PlanAdoptions(const std::vector<std::string>& uids) {
  std::vector<client::Adoption> adoptions;
  for (const std::string& uid : uids) {
    Settlement::Object* object = settlement_.Find(uid);
    // Closed meanwhile, and said again by its host: then nobody knows its kind.
    if (object == nullptr || object->kind == nullptr) continue;
    if (object->adopted_from || object->is_unread) continue;
    const HeldCopy* copy = Settlement::LatestOf(*object);
    const PoolFace* pool = copy == nullptr ? nullptr : pool_feed_.Find(copy->pool_uid);
    if (pool == nullptr) {
      CloseOpen(uid);  // the pool was removed, and what it had with it
      continue;
    }
    const DesiredEntry* entry = index_.Find(uid);
    client::Adoption& adoption = adoptions.emplace_back();
    adoption.kind = object->kind;
    adoption.key = object->key;
    adoption.uid = uid;
    adoption.placement = entry == nullptr ? 0 : static_cast<int64_t>(entry->placement);
    adoption.pool = pool->name;
    adoption.pool_uid = pool->uid;
    adoption.resources = copy->resources;
    for (const std::string& user : copy->consumers) {
      if (MayHaveUsed(user, object->key.namespace_)) adoption.consumers.push_back(user);
    }
    if (adoptions.size() == kAdoptionsPerCall) break;
  }
  return adoptions;
}

rt::Task<Status> Gateway::AdoptAll(std::vector<std::string> uids) {
  for (;;) {
    const std::vector<client::Adoption> adoptions = PlanAdoptions(uids);
    if (adoptions.empty()) co_return OkStatus();
    const std::vector<Status> verdicts = co_await deps_.rewound.AdoptBatch(adoptions);
    bool is_over = true;
    for (size_t i = 0; i < verdicts.size(); ++i) {
      if (verdicts[i].Is(Reason::kCancelled)) co_return verdicts[i];
      if (verdicts[i].ok()) {
        Adopted(adoptions[i]);
      } else if (verdicts[i].Is(Reason::kNotFound)) {
        CloseOpen(adoptions[i].uid);
      } else if (verdicts[i].Is(Reason::kInternal)) {
        // Its body cannot be read, and so not be bound: it stays open until it can.
        if (Settlement::Object* object = settlement_.Find(adoptions[i].uid)) {
          object->is_unread = true;
          settlement_.NoteUnread(*adoptions[i].kind, adoptions[i].key);
          WatchUnread();
        }
      } else {
        // Somebody else has changed its placement, or the store is away: looked at again.
        is_over = false;
      }
    }
    if (!is_over) CO_TRY_STATUS(co_await rt::Sleep(kRetryPause));
  }
}

void Gateway::Adopted(const client::Adoption& adoption) {
  REACHED("gateway.adopted");
  events_.Record({.kind = adoption.kind, .key = adoption.key, .uid = adoption.uid},
                 client::EventType::kNormal,
                 "Adopted",
                 "Adopt",
                 "the store was restored from a backup; pool " + adoption.pool +
                     " has it since, and keeps it");
  Settlement::Object* object = settlement_.Find(adoption.uid);
  if (object == nullptr) return;  // closed by its own event
  object->adopted_from = static_cast<uint64_t>(adoption.placement);
  const DesiredEntry* entry = index_.Find(adoption.uid);
  if (entry != nullptr && entry->placement > *object->adopted_from) CloseOpen(adoption.uid);
}

void Gateway::CloseOpen(const std::string& uid) {
  Settlement::Object* object = settlement_.Find(uid);
  if (object == nullptr) return;
  const std::vector<HeldCopy> copies = std::move(object->copies);
  settlement_.Close(uid);
  TellClosed(uid, copies);
  // It may be the last that their drains have waited for.
  for (const HeldCopy& copy : copies) {
    Session* session = table_.OfHost(copy.host);
    if (session != nullptr) BeginHeldDrain(*session);
  }
}

void Gateway::TellClosed(const std::string& uid, const std::vector<HeldCopy>& copies) {
  const DesiredEntry* entry = index_.Find(uid);
  if (entry == nullptr) return;  // never placed, or gone: its host leaves it alone
  for (const HeldCopy& copy : copies) {
    Session* session = table_.OfHost(copy.host);
    if (session == nullptr) continue;
    session->items[uid] = {.placement = copy.placement, .hash = ""};
    if (entry->pool_uid != copy.pool_uid) {
      SendDelete(*session, *entry, copy.placement, agent::Delete::MOVED);
    }
  }
  Session* session = table_.OfPool(entry->pool_uid);
  if (session == nullptr) return;
  if (entry->must_go()) {
    SendDelete(*session, *entry, entry->placement, WhyOf(*entry));
  } else {
    MarkDirty(*session, uid, nullptr);
  }
}

}  // namespace berth::gateway
