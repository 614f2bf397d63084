// SPDX-License-Identifier: Apache-2.0
#include "sim/convergence.h"

#include <fmt/format.h>

#include <algorithm>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/reservation.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "iri/labels.h"
#include "sim/rooms.h"

namespace berth::sim {
namespace {

using apis::compute::kMachineKind;
using apis::core::kReservationKind;

// The reason of who waits while others are being stopped for it.
constexpr std::string_view kPreempting = "Preempting";

// The store may have refused its volume, its user has deleted it, or its host is gone for good:
// then it is kept there (PROTOCOL 4.3), and what names it cannot start.
bool HasItsVolumes(const World& world, const Troubles& troubles, const PlacedFact& machine) {
  return std::ranges::all_of(machine.volumes, [&](const std::string& name) {
    const client::ObjectKey key{.namespace_ = machine.key.namespace_, .name = name};
    return std::ranges::any_of(world.truth().placed(), [&](const auto& other) {
      const PlacedFact& volume = other.second;
      if (volume.kind != &apis::storage::kVolumeKind || volume.key != key) return false;
      HostProcess* host = volume.pool_uid.empty() ? nullptr : world.HostOf(volume.pool_uid);
      // One that waits for its machine is kept where it is, and gets no other place.
      const bool is_there = !volume.is_deleting || (volume.is_used && host != nullptr);
      return is_there && (host == nullptr || !troubles.IsGone(*host));
    });
  });
}

// A volume goes with the machine that names it (PROTOCOL 6.2): as long as that one has no place, it
// is the one to be judged.
bool WaitsWithItsMachine(const World& world, const PlacedFact& fact) {
  if (fact.kind != &apis::storage::kVolumeKind) return false;
  return std::ranges::any_of(world.truth().placed(), [&fact](const auto& other) {
    const PlacedFact& machine = other.second;
    return machine.kind == &kMachineKind && machine.pool_uid.empty() && !machine.is_deleting &&
           machine.key.namespace_ == fact.key.namespace_ &&
           std::ranges::find(machine.volumes, fact.key.name) != machine.volumes.end();
  });
}

// Its deletion waits for the machine that uses it (PROTOCOL 4.6), which is judged itself.
bool WaitsForItsMachine(const World& world, const PlacedFact& fact) {
  if (!fact.is_used) return false;
  return std::ranges::any_of(world.truth().placed(), [&fact](const auto& other) {
    const PlacedFact& machine = other.second;
    return machine.kind == &kMachineKind && machine.key.namespace_ == fact.key.namespace_ &&
           std::ranges::find(machine.volumes, fact.key.name) != machine.volumes.end();
  });
}

// The pool that keeps room for the machine by the reservation that it names; "" if none does.
std::string ReservedFor(const World& world, const Troubles& troubles, const PlacedFact& machine) {
  for (const auto& [uid, fact] : world.truth().placed()) {
    const bool is_named =
        fact.kind == &kReservationKind && fact.key.namespace_ == machine.key.namespace_ &&
        (fact.key.name == machine.reservation || fact.whole == machine.reservation);
    if (!is_named || !fact.wants_place || fact.is_deleting || !fact.release.empty()) continue;
    const auto pool = world.truth().pools().find(fact.pool_uid);
    if (pool == world.truth().pools().end()) continue;
    if (IsUsable(world, troubles, pool->second, machine)) return pool->second.name;
  }
  return "";
}

// The group that the machine is in: what is known of it, those with a place, and those that wait.
struct Members {
  const GroupFact* group = nullptr;  // null: it does not exist
  int64_t placed = 0;
  std::vector<const PlacedFact*> waiting;
  // How many more need a place before any gets one.
  size_t needed() const {
    return static_cast<size_t>(std::max<int64_t>(0, group->min_members - placed));
  }
};

Members MembersOf(const World& world, const client::ObjectKey& key) {
  Members members;
  for (const auto& [uid, group] : world.truth().groups()) {
    if (group.key == key) members.group = &group;
  }
  for (const auto& [uid, fact] : world.truth().placed()) {
    const bool is_member = fact.group == key.name && fact.key.namespace_ == key.namespace_;
    if (!is_member || fact.is_deleting) continue;
    if (fact.pool_uid.empty()) {
      members.waiting.push_back(&fact);
    } else {
      ++members.placed;
    }
  }
  return members;
}

// A group needs room for as many as it asks for at once, and is judged as one. Once so many have a
// place each of the others goes alone.
bool WaitsForItsGroup(const World& world, const PlacedFact& machine) {
  if (machine.group.empty()) return false;
  const Members members =
      MembersOf(world, {.namespace_ = machine.key.namespace_, .name = machine.group});
  return members.group == nullptr || members.needed() > 0;
}

std::string WhyNotTogether(const World& world,
                           const Troubles& troubles,
                           const Rooms& rooms,
                           const GroupFact& group) {
  Members members = MembersOf(world, group.key);
  if (members.needed() == 0 || members.waiting.size() < members.needed()) return "";
  members.waiting.resize(members.needed());
  const bool may_wait = std::ranges::any_of(members.waiting, [&](const PlacedFact* member) {
    return member->is_picky || !member->reservation.empty() ||
           !HasItsVolumes(world, troubles, *member);
  });
  if (may_wait || !rooms.ForAll(members.waiting)) return "";
  return fmt::format("{} members of {} have no pool though there is room for them at once: {}",
                     members.waiting.size(),
                     group.key.name,
                     members.waiting.front()->message);
}

// Whether it would be placed alone and anywhere, and nobody is being stopped for it already.
bool MayStopOthers(const PlacedFact& fact) {
  return fact.kind == &kMachineKind && fact.reservation.empty() && fact.group.empty() &&
         fact.volumes.empty() && fact.reason != kPreempting;
}

std::string WhyNotPlaced(const World& world,
                         const Troubles& troubles,
                         const Rooms& rooms,
                         const PlacedFact& fact) {
  const bool may_wait = fact.is_picky || WaitsForItsGroup(world, fact) ||
                        !HasItsVolumes(world, troubles, fact) || WaitsWithItsMachine(world, fact);
  if (may_wait || !fact.wants_place) return "";
  // The first time there is no other room for it than that.
  const bool is_reserved = !fact.reservation.empty() && fact.epoch == 0;
  const std::string room = is_reserved ? ReservedFor(world, troubles, fact) : rooms.For(fact);
  if (!room.empty()) {
    return fmt::format("{} {} has no pool though {} has room: {} {}",
                       fact.kind->kind,
                       fact.key.name,
                       room,
                       fact.reason,
                       fact.message);
  }
  const std::string urgent_room = MayStopOthers(fact) ? rooms.IfOthersLeft(fact) : "";
  if (urgent_room.empty()) return "";
  return fmt::format("{} has no pool though {} would have room without what is less important: {}",
                     fact.key.name,
                     urgent_room,
                     fact.message);
}

std::string WhyNotAsWanted(const World& world,
                           const Troubles& troubles,
                           const Rooms& rooms,
                           const PlacedFact& fact) {
  if (WaitsForItsMachine(world, fact)) return "";
  if (fact.pool_uid.empty() && fact.is_deleting) return fact.key.name + " is still being deleted";
  if (fact.pool_uid.empty()) return WhyNotPlaced(world, troubles, rooms, fact);
  HostProcess* host = world.HostOf(fact.pool_uid);
  if (host == nullptr) return fact.key.name + " is on a pool that is nobody's";
  if (troubles.IsGone(*host)) {
    // What is kept waits for its host; everything else must have left it.
    const bool may_move = fact.on_loss == PlacedFact::OnLoss::kMove ||
                          (fact.kind == &kReservationKind && fact.left > 0);
    const bool is_replaced = fact.on_loss == PlacedFact::OnLoss::kReplace;
    if ((may_move || is_replaced) && !fact.is_deleting) {
      return fmt::format("{} is {} {}, which is gone",
                         fact.key.name,
                         is_replaced ? "not replaced on" : "still on",
                         fact.pool);
    }
    return "";
  }
  if (fact.is_deleting)
    return fmt::format("{} is still being deleted on {}", fact.key.name, fact.pool);
  if (!fact.release.empty())
    return fmt::format("{} still has to leave {}", fact.key.name, fact.pool);
  const bool is_storage =
      fact.kind == &apis::storage::kBucketKind || fact.kind == &apis::storage::kVolumeKind;
  if (is_storage && fact.state != "Available") {
    return fmt::format("{} is on {} and said to be {}", fact.key.name, fact.pool, fact.state);
  }
  if (fact.kind != &kMachineKind) return "";
  const int copies = host->state().RunningCopies(host->fake().clock(), fact.uid);
  // Who deletes a volume by force (4.5) has a machine that cannot start; one that runs goes on.
  if (copies == 0 && !HasItsVolumes(world, troubles, fact)) return "";
  if (copies != (fact.is_on ? 1 : 0)) {
    return fmt::format("{} runs {} times on {}, power {}, and is said to be {}",
                       fact.key.name,
                       copies,
                       fact.pool,
                       fact.is_on ? "on" : "off",
                       fact.state);
  }
  if (fact.is_on && fact.state != "Running") {
    return fmt::format("{} runs on {} and is said to be {}", fact.key.name, fact.pool, fact.state);
  }
  return "";
}

// What is on the host and does not belong there. What a restore has taken out of the history may be
// an orphan, which nobody may touch.
std::string WhyNotClean(const World& world, HostProcess& host) {
  if (!host.is_synced()) return host.name() + " has no session";
  if (host.poollet().host().ledger().holds() > 0) return host.name() + " still holds something";
  for (const auto& [id, machine] : host.state().machines()) {
    const std::string uid(iri::LabelOf(machine.object.metadata, iri::kMachineUidLabel));
    const PlacedFact* fact = world.truth().Find(uid);
    if (world.WasRewound(uid)) continue;
    if (fact == nullptr || world.HostOf(fact->pool_uid) != &host) {
      return fmt::format("{} still has {}, which is not its own", host.name(), uid);
    }
  }
  return "";
}

// Every pool that the reservation is for has its part of it.
std::string WhyNotInParts(const World& world, const PlacedFact& whole) {
  if (!whole.is_whole || whole.is_deleting) return "";
  for (const std::string& pool : whole.pools) {
    if (world.truth().FindPool(apis::compute::kMachinePoolKind, pool) == nullptr) continue;
    const bool has_part = std::ranges::any_of(world.truth().placed(), [&](const auto& other) {
      const PlacedFact& part = other.second;
      return part.whole == whole.key.name && part.pools.front() == pool && !part.is_deleting;
    });
    if (!has_part) return fmt::format("{} has no part for {}", whole.key.name, pool);
  }
  return "";
}

// How many machines of the set are there. One that replaces what is lost has none on a host that is
// gone, whatever its machines say themselves of what is to become of them.
int64_t MembersThere(const World& world, const Troubles& troubles, const SetFact& set) {
  if (!set.replaces) return world.truth().MembersOf(set.uid);
  return std::ranges::count_if(world.truth().placed(), [&](const auto& entry) {
    const PlacedFact& fact = entry.second;
    if (fact.set_uid != set.uid || fact.is_deleting) return false;
    const HostProcess* host = world.HostOf(fact.pool_uid);
    return host == nullptr || !troubles.IsGone(*host);
  });
}

}  // namespace

std::string WhyNotConverged(const World& world, const Troubles& troubles) {
  for (const auto& host : world.hosts()) {
    if (troubles.IsGone(*host)) continue;
    std::string why = WhyNotClean(world, *host);
    if (!why.empty()) return why;
  }
  const Rooms rooms(world, troubles);
  for (const auto& [uid, fact] : world.truth().placed()) {
    std::string why = WhyNotAsWanted(world, troubles, rooms, fact);
    if (why.empty()) why = WhyNotInParts(world, fact);
    if (!why.empty()) return why;
  }
  for (const auto& [uid, group] : world.truth().groups()) {
    std::string why = WhyNotTogether(world, troubles, rooms, group);
    if (!why.empty()) return why;
  }
  for (const auto& [uid, pool] : world.truth().pools()) {
    const HostProcess* host = world.HostOf(uid);
    if (pool.is_leaving && host != nullptr && !troubles.IsGone(*host)) {
      return fmt::format("{} is marked as leaving and its host is back", pool.name);
    }
  }
  for (const auto& [uid, set] : world.truth().sets()) {
    const int64_t members = MembersThere(world, troubles, set);
    if (members != set.replicas) {
      return fmt::format("{} has {} machines of {}", set.key.name, members, set.replicas);
    }
  }
  return "";
}

}  // namespace berth::sim
