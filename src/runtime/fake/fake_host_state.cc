// SPDX-License-Identifier: Apache-2.0
// Time, history, leases and reservations of a fake host.
#include "runtime/fake/fake_host_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/strings.h"
#include "base/uid.h"
#include "iri/labels.h"

namespace berth::runtime {

using iri::ChangeType;
using iri::ObjectKind;

namespace {

std::string_view UidOf(ObjectKind kind, const iri::ObjectMetadata& metadata) {
  switch (kind) {
    case ObjectKind::kMachine: return iri::LabelOf(metadata, iri::kMachineUidLabel);
    case ObjectKind::kVolume: return iri::LabelOf(metadata, iri::kVolumeUidLabel);
    case ObjectKind::kBucket: return iri::LabelOf(metadata, iri::kBucketUidLabel);
    case ObjectKind::kVolumeSnapshot: return iri::LabelOf(metadata, iri::kSnapshotUidLabel);
    case ObjectKind::kUnknown: break;
  }
  return {};
}

void Earlier(std::optional<Time>& earliest, std::optional<Time> candidate) {
  if (candidate.has_value() && (!earliest.has_value() || *candidate < *earliest)) {
    earliest = candidate;
  }
}

template <class Table>
void EarliestOf(const Table& table, std::optional<Time>& earliest) {
  for (const auto& [id, entry] : table) {
    Earlier(earliest, entry.ready_at);
    Earlier(earliest, entry.gone_at);
  }
}

std::optional<Time> DueOf(const FakeGuest& guest) {
  using Phase = FakeGuest::Phase;
  if (guest.held && guest.phase == Phase::kBooting) return std::nullopt;
  if (guest.phase == Phase::kBooting || guest.phase == Phase::kStopping) return guest.until;
  if (guest.phase == Phase::kRunning) return guest.crash_at;
  return std::nullopt;
}

}  // namespace

FakeHostState::FakeHostState(FakeHostOptions options, uint64_t seed)
    : options_(std::move(options)), random_(seed), boot_id_(NewUid(random_)) {}

std::map<std::string, int> FakeHostState::RunningCopies(const FakeClock& clock) {
  Advance(clock);
  std::map<std::string, int> copies;
  for (const auto& [id, machine] : machines_) {
    if (!machine.guest.alive()) continue;
    ++copies[std::string(UidOf(ObjectKind::kMachine, machine.object.metadata))];
  }
  return copies;
}

int FakeHostState::RunningCopies(const FakeClock& clock, std::string_view machine_uid) {
  const auto copies = RunningCopies(clock);
  const auto found = copies.find(std::string(machine_uid));
  return found == copies.end() ? 0 : found->second;
}

std::optional<Time> FakeHostState::NextDue() const {
  std::optional<Time> earliest;
  for (const auto& [id, machine] : machines_) Earlier(earliest, DueOf(machine.guest));
  EarliestOf(machines_, earliest);
  EarliestOf(volumes_, earliest);
  EarliestOf(snapshots_, earliest);
  EarliestOf(buckets_, earliest);
  for (const auto& [uid, lease] : leases_) {
    if (!lease.fenced && !options_.lies.ignores_leases) Earlier(earliest, lease.deadline);
  }
  return earliest;
}

void FakeHostState::Advance(const FakeClock& clock) {
  while (AdvanceOnce(clock)) {
  }
}

bool FakeHostState::AdvanceOnce(const FakeClock& clock) {
  const std::optional<Time> due = NextDue();
  if (!due.has_value() || *due > clock.now) return false;
  const FakeClock then = {.now = *due, .wall = clock.wall - (clock.now - *due)};
  ExpireLeases(then);  // first: who dies at this moment does not begin anything at it
  for (auto& [id, machine] : machines_) AdvanceGuest(machine, then);
  RemoveGone(machines_, ObjectKind::kMachine, then.now);
  MakeReady(volumes_, ObjectKind::kVolume, then.now);
  RemoveGone(volumes_, ObjectKind::kVolume, then.now);
  MakeReady(snapshots_, ObjectKind::kVolumeSnapshot, then.now);
  RemoveGone(snapshots_, ObjectKind::kVolumeSnapshot, then.now);
  MakeReady(buckets_, ObjectKind::kBucket, then.now);
  RemoveGone(buckets_, ObjectKind::kBucket, then.now);
  return true;
}

template <class Entry>
void FakeHostState::RemoveGone(Table<Entry>& table, ObjectKind kind, Time at) {
  for (auto place = table.begin(); place != table.end();) {
    if (!place->second.gone_at.has_value() || *place->second.gone_at > at) {
      ++place;
      continue;
    }
    const iri::ObjectMetadata metadata = std::move(place->second.object.metadata);
    place = table.erase(place);
    Changed(kind, ChangeType::kDeleted, metadata, "gone");
  }
}

template <class Entry>
void FakeHostState::MakeReady(Table<Entry>& table, ObjectKind kind, Time at) {
  for (auto& [id, entry] : table) {
    if (!entry.ready_at.has_value() || *entry.ready_at > at) continue;
    entry.ready_at.reset();
    Changed(kind, ChangeType::kChanged, entry.object.metadata, "state");
  }
}

void FakeHostState::ExpireLeases(const FakeClock& clock) {
  if (options_.lies.ignores_leases) return;
  for (auto& [uid, lease] : leases_) {
    if (lease.fenced || lease.deadline > clock.now) continue;
    lease.fenced = true;
    for (auto& [id, machine] : machines_) {
      if (UidOf(ObjectKind::kMachine, machine.object.metadata) != uid) continue;
      if (machine.guest.alive()) KillGuest(machine, "Fenced", clock);
    }
    if (on_touch) on_touch({.what = Touched::What::kLeases});
  }
}

std::vector<iri::LeaseState> FakeHostState::Renew(const FakeClock& clock,
                                                  const iri::LeaseRenewal& renewal) {
  Advance(clock);
  for (const std::string& uid : renewal.released_uids) leases_.erase(uid);
  for (const std::string& uid : renewal.machine_uids) {
    FakeLease& lease = leases_[uid];
    if (!lease.fenced) lease.deadline = std::max(lease.deadline, renewal.deadline);
  }
  Advance(clock);  // a deadline may lie in the past already
  if (on_touch) on_touch({.what = Touched::What::kLeases});
  std::vector<iri::LeaseState> states;
  for (const auto& [uid, lease] : leases_) {
    states.push_back({.machine_uid = uid, .deadline = lease.deadline, .fenced = lease.fenced});
  }
  return states;
}

Status FakeHostState::SetReservations(const FakeClock& clock,
                                      std::vector<iri::Reservation> reservations) {
  Advance(clock);
  std::vector<iri::Reservation> before = std::exchange(reservations_, {});
  iri::ResourceVector sum;
  for (const iri::Reservation& reservation : reservations) {
    const bool taken = !reservation.machine_uid.empty() && HasMachine(reservation.machine_uid);
    if (taken) continue;
    for (const auto& [name, amount] : reservation.resources) sum[name] += amount;
  }
  const Status room = CheckRoom(sum, "");
  if (!room.ok()) {
    reservations_ = std::move(before);
    return Conflict("reservations: " + std::string(room.message()));
  }
  reservations_ = std::move(reservations);
  if (on_touch) on_touch({.what = Touched::What::kReservations});
  return OkStatus();
}

bool FakeHostState::HasMachine(std::string_view uid) const {
  return std::ranges::any_of(machines_, [&](const auto& entry) {
    return UidOf(ObjectKind::kMachine, entry.second.object.metadata) == uid;
  });
}

Status FakeHostState::CheckRoom(const iri::ResourceVector& more,
                                std::string_view machine_uid) const {
  if (options_.lies.accepts_everything) return OkStatus();
  iri::ResourceVector taken = Used();
  for (const iri::Reservation& reservation : reservations_) {
    const std::string& owner = reservation.machine_uid;
    if (!owner.empty() && (owner == machine_uid || HasMachine(owner))) continue;
    for (const auto& [name, amount] : reservation.resources) taken[name] += amount;
  }
  for (const auto& [name, amount] : more) {
    const auto total = options_.capacity.find(name);
    const int64_t has = total == options_.capacity.end() ? 0 : total->second;
    if (amount <= has - taken[name]) continue;
    return {Reason::kTooManyRequests,
            "no room: " + name + " " + std::to_string(amount) + " wanted, " +
                std::to_string(has - taken[name]) + " of " + std::to_string(has) + " free"};
  }
  return OkStatus();
}

std::optional<std::vector<iri::Change>> FakeHostState::ChangesAfter(uint64_t number) const {
  if (number > last_change_ || last_change_ - number > changes_.size()) return std::nullopt;
  const auto first = changes_.end() - static_cast<std::ptrdiff_t>(last_change_ - number);
  return std::vector<iri::Change>(first, changes_.end());
}

void FakeHostState::Changed(ObjectKind kind,
                            ChangeType type,
                            const iri::ObjectMetadata& metadata,
                            std::string_view what) {
  iri::Change change;
  change.type = type;
  change.kind = kind;
  change.id = metadata.id;
  change.uid = UidOf(kind, metadata);
  change.what = what;
  changes_.push_back(std::move(change));
  ++last_change_;
  if (changes_.size() > kFakeChangesMax) changes_.pop_front();
  if (on_touch) on_touch({.what = Touched::What::kObject, .kind = kind, .id = metadata.id});
}

void FakeHostState::Said(ObjectKind kind,
                         const iri::ObjectMetadata& metadata,
                         iri::EventType type,
                         std::string_view reason,
                         std::string message,
                         const FakeClock& clock) {
  iri::Event event;
  event.involved = metadata;
  event.type = type;
  event.reason = reason;
  event.message = std::move(message);
  event.action = "Run";
  event.time = WallTime::FromSeconds(clock.wall.seconds());
  events_.push_back({.kind = kind, .event = std::move(event)});
  if (events_.size() > kFakeEventsMax) events_.pop_front();
}

std::vector<iri::Event> FakeHostState::ShowEvents(ObjectKind kind,
                                                  const iri::EventFilter& filter) const {
  std::vector<iri::Event> shown;
  for (const StoredEvent& stored : events_) {
    const bool same = stored.kind == kind ||
                      (kind == ObjectKind::kVolume && stored.kind == ObjectKind::kVolumeSnapshot);
    if (same && Matches(filter, stored.event)) shown.push_back(stored.event);
  }
  return shown;
}

void FakeHostState::PowerCut(const FakeClock& clock) {
  Advance(clock);
  boot_id_ = NewUid(random_);
  for (auto& [id, machine] : machines_) {
    if (machine.guest.alive()) KillGuest(machine, "HostLostPower", clock);
    if (!ForgetsSecrets() || machine.object.spec.ignition_data.empty()) continue;
    machine.ForgetIgnition();
    Changed(ObjectKind::kMachine, ChangeType::kChanged, machine.object.metadata, "secrets");
  }
  if (on_touch) on_touch({.what = Touched::What::kLeases});
}

void FakeHostState::Forget(const FakeClock& clock) {
  Advance(clock);
  const auto at_once = [&](auto& table) {
    for (auto& [id, entry] : table) entry.gone_at = clock.now;
  };
  at_once(machines_);
  at_once(volumes_);
  at_once(snapshots_);
  at_once(buckets_);
  leases_.clear();
  reservations_.clear();
  Advance(clock);
  if (on_touch) on_touch({.what = Touched::What::kLeases});
  if (on_touch) on_touch({.what = Touched::What::kReservations});
}

bool FakeHostState::IsIdempotent() const {
  return options_.flavor == FakeFlavor::kBerth && !options_.lies.creates_duplicates;
}
bool FakeHostState::Hides() {
  return options_.lies.list_omits > 0 && random_.Chance(options_.lies.list_omits);
}
std::string FakeHostState::NewId(std::string_view prefix) {
  constexpr int kSuffix = 12;
  return std::string(prefix) + random_.NameSuffix(kSuffix);
}

void FakeHostState::Restore(FakeMachine machine) {
  machines_.insert_or_assign(machine.object.metadata.id, std::move(machine));
}
void FakeHostState::Restore(FakeEntry<iri::Volume> volume) {
  volumes_.insert_or_assign(volume.object.metadata.id, std::move(volume));
}
void FakeHostState::Restore(FakeEntry<iri::VolumeSnapshot> snapshot) {
  snapshots_.insert_or_assign(snapshot.object.metadata.id, std::move(snapshot));
}
void FakeHostState::Restore(FakeEntry<iri::Bucket> bucket) {
  buckets_.insert_or_assign(bucket.object.metadata.id, std::move(bucket));
}
void FakeHostState::RestoreLeases(std::map<std::string, FakeLease, std::less<>> leases) {
  leases_ = std::move(leases);
}
void FakeHostState::RestoreReservations(std::vector<iri::Reservation> reservations) {
  reservations_ = std::move(reservations);
}

}  // namespace berth::runtime
