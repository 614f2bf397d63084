// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers.h"

#include <fmt/format.h>

#include <cstdlib>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/reservation.h"
#include "iri/labels.h"

namespace berth::sim {
namespace {

// How long something may wait without a reason: reports that fail are written again every second,
// and a scheduler that starts looks at everything first.
constexpr Duration kReasonWithin = Duration::Seconds(45);
// A pool is lost after some seconds of silence; what follows may take as long as retries do.
constexpr Duration kTroubleLasts = Duration::Seconds(120);

std::string Show(const PlacedFact& fact) {
  return fmt::format("{} {} ({})", fact.kind->kind, fact.key.name, fact.uid);
}

// The first dimension in which `used` is more than `capacity`; "" if none is.
template <class Used>
std::string Beyond(const Used& used, const iri::ResourceVector& capacity) {
  for (const auto& [dimension, amount] : used) {
    const auto room = capacity.find(dimension);
    if (room != capacity.end() && amount > room->second) {
      return fmt::format("{} of {} {}", amount, room->second, dimension);
    }
  }
  return "";
}

}  // namespace

void CapacityChecker::OnChange(const Truth::Change& change) {
  if (!change.now || change.now->pool_uid.empty()) return;
  if (change.before && change.before->pool_uid == change.now->pool_uid) return;
  const HostProcess* host = sight_.HostOf(change.now->pool_uid);
  if (host == nullptr) return;
  if (change.before && change.before->epoch == 0) CheckUse(*change.now);
  apis::Amounts promised;
  for (const auto& [uid, fact] : sight_.truth().placed()) {
    if (fact.pool_uid != change.now->pool_uid || sight_.truth().IsInside(fact)) continue;
    for (const auto& [dimension, amount] : fact.needs) promised[dimension] += amount;
  }
  const std::string beyond = Beyond(promised, host->capacity());
  // What runs there after a restore is there, beside what the store believes to be.
  if (!beyond.empty() && !sight_.WasRewound(change.now->uid)) {
    Fail(fmt::format(
        "the server promised {} on pool {} with {}", beyond, change.now->pool, Show(*change.now)));
  }
}

// The first time a machine goes into the room that is kept for it, and nowhere else.
void CapacityChecker::CheckUse(const PlacedFact& machine) {
  if (machine.reservation.empty() && machine.reservation_uid.empty()) return;
  if (sight_.WasRewound(machine.uid)) return;
  const PlacedFact* reservation = sight_.truth().Find(machine.reservation_uid);
  // It may have gone before anybody was told of either.
  if (reservation == nullptr && !machine.reservation_uid.empty()) return;
  const bool is_named = reservation != nullptr && (reservation->key.name == machine.reservation ||
                                                   reservation->whole == machine.reservation);
  if (is_named && reservation->pool_uid == machine.pool_uid) return;
  if (machine.reservation.empty()) {
    return Fail(
        fmt::format("{} took room of {} and does not name it", Show(machine), Show(*reservation)));
  }
  Fail(fmt::format("{} is on pool {}, which keeps no room of reservation {}",
                   Show(machine),
                   machine.pool,
                   machine.reservation));
}

// Both sides of a use are in one commit.
void CapacityChecker::OnTick() {
  for (const auto& [uid, fact] : sight_.truth().placed()) {
    if (sight_.truth().IsInside(fact)) {
      Fail(fmt::format("{} took room of a reservation that does not know of it", Show(fact)));
    }
    if (static_cast<int64_t>(fact.consumers.size()) > fact.count) {
      Fail(fmt::format("{} is for {} machines and was used by {}",
                       Show(fact),
                       fact.count,
                       fact.consumers.size()));
    }
  }
}

void CapacityChecker::OnHost(HostProcess& host) {
  const std::string beyond = Beyond(host.state().Used(), host.capacity());
  if (!beyond.empty()) Fail(fmt::format("{} has {} on it", host.name(), beyond));
}

void BoundOnceChecker::OnChange(const Truth::Change& change) {
  if (!change.now) return;
  const PlacedFact& now = *change.now;
  Bound& bound = bound_[now.uid];
  if (now.epoch < bound.epoch) {
    Fail(fmt::format("{} went back from placement {} to {}", Show(now), bound.epoch, now.epoch));
  }
  if (now.epoch > bound.epoch) bound = {.epoch = now.epoch, .pool_uid = now.pool_uid};
  if (bound.pool_uid != now.pool_uid && now.epoch > 0) {
    Fail(fmt::format("{} is bound to pool {} and to pool {} at placement {}",
                     Show(now),
                     bound.pool_uid,
                     now.pool_uid,
                     now.epoch));
  }
}

void OneCopyChecker::OnHost(HostProcess& host) {
  const std::map<std::string, int> copies = host.state().RunningCopies(host.fake().clock());
  std::set<std::string>& known = on_host_[host.index()];
  for (const std::string& uid : known) {
    if (!copies.contains(uid)) running_[uid].erase(host.index());
  }
  known.clear();
  for (const auto& [uid, count] : copies) {
    if (count == 0) continue;
    known.insert(uid);
    running_[uid][host.index()] = count;
  }
  for (const std::string& uid : known) {
    std::map<size_t, int>& where = running_[uid];
    if (where.size() == 1 && where.begin()->second == 1) continue;
    int sum = 0;
    std::string names;
    for (auto& [index, count] : where) {
      // The others may have ended meanwhile: time passes on every host by its own clock.
      HostProcess& other = *sight_.hosts()[index];
      count = other.state().RunningCopies(other.fake().clock(), uid);
      sum += count;
      if (count > 0) names += fmt::format(" {}", other.name());
    }
    if (sum <= 1) continue;
    const PlacedFact* fact = sight_.truth().Find(uid);
    Fail(fmt::format("{} runs {} times:{}", fact == nullptr ? uid : Show(*fact), sum, names));
  }
}

void DurableChecker::OnLoaded(const store::RangeResult& all) {
  std::map<std::string, store::Revision> stored;
  for (const store::KeyValue& item : all.items) stored[item.key] = item.mod_revision;
  for (const auto& [key, write] : acknowledged_.writes) {
    const auto found = stored.find(key);
    const bool is_newer = found != stored.end() && found->second >= write.revision;
    if (is_newer || acknowledged_.unknown.contains(key)) continue;
    if (found == stored.end() && write.is_deleted) continue;
    Fail(fmt::format(
        "{} was acknowledged at revision {} and is {} after a crash",
        key,
        write.revision.value,
        found == stored.end() ? "not there" : fmt::format("at revision {}", found->second.value)));
  }
  acknowledged_.unknown.clear();
  for (auto write = acknowledged_.writes.begin(); write != acknowledged_.writes.end();) {
    // From here on what the store says counts.
    const auto found = stored.find(write->first);
    if (found == stored.end()) {
      write = acknowledged_.writes.erase(write);
    } else {
      write->second = {.revision = found->second, .is_deleted = false};
      ++write;
    }
  }
}

void DurableChecker::OnChange(const Truth::Change& change) {
  if (!change.before || !change.now || change.before->uid != change.now->uid) return;
  if (change.now->edit < change.before->edit) {
    Fail(fmt::format("edit {} of {} was overwritten by {}",
                     change.before->edit,
                     Show(*change.now),
                     change.now->edit));
  }
}

void ReasonChecker::OnTick() {
  const std::optional<Time> serving = sight_.ServingSince();
  std::map<std::string, Time> waiting;
  for (const auto& [uid, fact] : sight_.truth().placed()) {
    if (!fact.pool_uid.empty() || fact.is_deleting || !fact.wants_place) continue;
    const auto known = waiting_.find(uid);
    const Time since = known == waiting_.end() ? sight_.now() : known->second;
    waiting[uid] = since;
    if (!serving || sight_.now() - std::max(since, *serving) < kReasonWithin) continue;
    if (fact.reason.empty() || fact.message.empty()) {
      Fail(fmt::format("{} waits since {:.1f}s and does not say why",
                       Show(fact),
                       (since - Time()).to_seconds()));
    }
  }
  waiting_ = std::move(waiting);
}

// A set lets machines go that are too many, and those whose pool was lost.
bool AskedChecker::MayGo(const PlacedFact& fact) const {
  if (sight_.WasDeletionAsked(fact.uid)) return true;
  if (!fact.whole.empty()) return MayPartGo(fact);
  if (fact.set_uid.empty()) return false;
  const auto set = sight_.truth().sets().find(fact.set_uid);
  if (set == sight_.truth().sets().end() || set->second.is_deleting) return true;
  if (sight_.truth().MembersOf(fact.set_uid) >= set->second.replicas) return true;
  const HostProcess* host = sight_.HostOf(fact.pool_uid);
  return host != nullptr && sight_.now() - sight_.LastTrouble(*host) < kTroubleLasts;
}

// The part of a reservation goes with the whole, and with the pool that it is for.
bool AskedChecker::MayPartGo(const PlacedFact& part) const {
  const client::ObjectKey key{.namespace_ = part.key.namespace_, .name = part.whole};
  const PlacedFact* whole = sight_.truth().FindPlaced(apis::core::kReservationKind, key);
  if (whole == nullptr || whole->is_deleting) return true;
  const PoolFact* pool =
      sight_.truth().FindPool(apis::compute::kMachinePoolKind, part.pools.front());
  if (pool == nullptr) return true;
  // Another one may have got its name since.
  const HostProcess* host = sight_.HostOf(pool->uid);
  return host != nullptr && sight_.now() - sight_.LastTrouble(*host) < kTroubleLasts;
}

void AskedChecker::OnChange(const Truth::Change& change) {
  if (!change.before) return;
  const bool is_gone = !change.now.has_value();
  const bool goes = is_gone || (change.now->is_deleting && !change.before->is_deleting);
  if (!goes || (is_gone && change.before->is_deleting)) return;
  if (!MayGo(*change.before)) {
    Fail(fmt::format("{} is {} and nobody asked for it",
                     Show(*change.before),
                     is_gone ? "gone from the store" : "being deleted"));
  }
}

void AskedChecker::OnHost(HostProcess& host) {
  std::map<std::string, int64_t> now;
  const auto add = [&now](const iri::ObjectMetadata& metadata, std::string_view uid_label) {
    const std::string uid(iri::LabelOf(metadata, uid_label));
    const std::string placement(iri::LabelOf(metadata, iri::kPlacementLabel));
    if (!uid.empty()) now[uid] = std::atoll(placement.c_str());
  };
  for (const auto& [id, machine] : host.state().machines()) {
    add(machine.object.metadata, iri::kMachineUidLabel);
  }
  for (const auto& [id, volume] : host.state().volumes()) {
    add(volume.object.metadata, iri::kVolumeUidLabel);
  }
  for (const auto& [id, bucket] : host.state().buckets()) {
    add(bucket.object.metadata, iri::kBucketUidLabel);
  }
  std::map<std::string, int64_t>& before = here_[host.index()];
  for (const auto& [uid, placement] : before) {
    if (now.contains(uid)) continue;
    const PlacedFact* fact = sight_.truth().Find(uid);
    if (fact == nullptr || sight_.HostOf(fact->pool_uid) != &host) continue;
    const bool must_go = fact->is_deleting || !fact->release.empty() || fact->epoch != placement;
    if (fact->is_used && fact->release.empty() && fact->epoch == placement &&
        !sight_.WasRewound(uid)) {
      Fail(
          fmt::format("{} was removed from {} though a machine uses it", Show(*fact), host.name()));
    }
    if (must_go || sight_.WasDeletionAsked(uid) || sight_.WasRewound(uid)) continue;
    Fail(fmt::format("{} was removed from {}, where it belongs", Show(*fact), host.name()));
  }
  before = std::move(now);
}

}  // namespace berth::sim
