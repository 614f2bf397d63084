// SPDX-License-Identifier: Apache-2.0
// Reservation: room on a machine pool that is kept free until a machine uses it, as IronCore's
// proposal IEP-11 names it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/core/placement.h"
#include "apis/core/references.h"
#include "apis/core/resources.h"
#include "base/time.h"
#include "meta/kind.h"

namespace berth::apis::core {

inline constexpr std::string_view kReserveOne = "One";
inline constexpr std::string_view kReserveAll = "All";

// States of a reservation, and of each pool that it is about.
inline constexpr std::string_view kReservationPending = "Pending";    // no pool has it yet
inline constexpr std::string_view kReservationAccepted = "Accepted";  // the host keeps the room
inline constexpr std::string_view kReservationRejected = "Rejected";  // no pool takes it
inline constexpr std::string_view kReservationBound = "Bound";        // machines have all of it
inline constexpr std::string_view kReservationLost = "Lost";          // its pool fell silent
inline constexpr std::string_view kReservationExpired = "Expired";    // its time is over

// PlacementStatus::release of one whose time is over, and the reason of one whose pool is gone.
inline constexpr std::string_view kReleaseExpired = "Expired";
inline constexpr std::string_view kReasonPoolLost = "PoolLost";

// On a reservation that was made for one pool of another one, with mode All: the other one's name.
inline constexpr std::string_view kReservationOfLabel = "berth.dev/reservation";

// Of one with mode All: its name is the value of that label.
inline constexpr size_t kWholeNameMax = 63;
// A host is told who has used its room: 256 UIDs are 9 KiB.
inline constexpr int32_t kReservationCountMax = 256;
inline constexpr size_t kReservationPoolsMax = 256;
inline constexpr Duration kReservationTtlMin = Duration::Seconds(1);
inline constexpr Duration kReservationTtlMax = Duration::Minutes(int64_t{60} * 24 * 365);

struct ReservationSpec {
  std::vector<std::string> pools;
  ResourceList resources;
  std::optional<LocalObjectReference> class_ref;
  std::map<std::string, std::string> selector;
  std::string mode;
  std::string ttl;
  std::optional<int32_t> count;
  std::optional<LocalObjectReference> machine_pool_ref;
};
BERTH_DESCRIBE(
    ReservationSpec,
    "dev.berth.api.v1alpha1.ReservationSpec",
    "The room wanted.",
    BERTH_FIELD(pools, "pools", "Names of the machine pools that will do; empty: any."),
    BERTH_FIELD(resources,
                "resources",
                "How much room, for one machine: cpu, memory and whatever else pools have. Cannot "
                "change."),
    BERTH_FIELD(class_ref,
                "classRef",
                "A MachineClass: room for one machine of it, instead of resources. Cannot change."),
    BERTH_FIELD(selector, "selector", "Labels that the pool must have."),
    BERTH_FIELD(mode,
                "mode",
                "One (also when empty): the first pool that accepts. All: each of them. Cannot "
                "change.",
                {.values = {"One", "All"}}),
    BERTH_FIELD(ttl,
                "ttl",
                "How long the room is kept once a host has accepted, such as 1h; absent: until "
                "the reservation is deleted."),
    BERTH_FIELD(count, "count", "For how many machines; 1 unless said otherwise. Cannot change."),
    BERTH_FIELD(machine_pool_ref,
                "machinePoolRef",
                "The pool that keeps the room; set by the scheduler."))

struct ReservationPool {
  std::string name;
  std::string state;
  bool operator==(const ReservationPool&) const = default;
};
BERTH_DESCRIBE(ReservationPool,
               "dev.berth.api.v1alpha1.ReservationPoolStatus",
               "What one pool says.",
               BERTH_FIELD(name, "name", "Name of the pool."),
               BERTH_FIELD(state, "state", "Pending, Accepted, Rejected, Bound, Lost or Expired."))

struct ReservationConsumer {
  std::string name;
  std::string uid;
  bool operator==(const ReservationConsumer&) const = default;
};
BERTH_DESCRIBE(ReservationConsumer,
               "dev.berth.api.v1alpha1.ReservationConsumer",
               "A machine that has used the room.",
               BERTH_FIELD(name, "name", "Name of the machine."),
               BERTH_FIELD(uid, "uid", "UID of the machine."))

struct ReservationCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  WallTime last_transition_time;
  bool operator==(const ReservationCondition&) const = default;
};
BERTH_DESCRIBE(ReservationCondition,
               "dev.berth.api.v1alpha1.ReservationCondition",
               "One aspect of the reservation's condition.",
               BERTH_FIELD(type, "type", "What it is about: Scheduled.", {.required = true}),
               BERTH_FIELD(status,
                           "status",
                           "True, False or Unknown.",
                           {.required = true, .values = {"True", "False", "Unknown"}}),
               BERTH_FIELD(reason, "reason", "One word for programs.", {.always = true}),
               BERTH_FIELD(message, "message", "A sentence for people.", {.always = true}),
               BERTH_FIELD(last_transition_time, "lastTransitionTime", "When status last changed."))

struct ReservationStatus {
  std::string state;
  std::vector<ReservationPool> pools;
  std::vector<ReservationConsumer> consumers;
  std::string remaining;
  std::vector<ReservationCondition> conditions;
  std::optional<PlacementStatus> placement;
};
BERTH_DESCRIBE(
    ReservationStatus,
    "dev.berth.api.v1alpha1.ReservationStatus",
    "The room as it is.",
    BERTH_FIELD(state,
                "state",
                "Pending, Accepted, Rejected, Bound, Lost or Expired.",
                {.fallback = "\"Pending\""}),
    BERTH_FIELD(pools, "pools", "What each pool says."),
    BERTH_FIELD(consumers, "consumers", "The machines that have used the room."),
    BERTH_FIELD(remaining, "remaining", "How much of ttl is left, written from time to time."),
    BERTH_FIELD(conditions, "conditions", "More about the reservation, aspect by aspect."),
    BERTH_FIELD(placement, "placement", "Where the room is; written by the scheduler."))

struct Reservation {
  meta::ObjectMeta metadata;
  ReservationSpec spec;
  ReservationStatus status;
};
BERTH_DESCRIBE(Reservation,
               "dev.berth.api.v1alpha1.Reservation",
               "Room on a machine pool that is kept free until a machine uses it "
               "(spec.placement.reservationRef).",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The room wanted."),
               BERTH_FIELD(status, "status", "The room as it is; written by the system."))

extern const meta::KindInfo kReservationKind;
inline const meta::KindInfo& BerthKind(meta::Tag<Reservation>) { return kReservationKind; }

// Whether room is to be kept on every pool in question, by a reservation of its own for each.
bool IsForAll(const ReservationSpec& spec);
// For how many machines, and for how many it still is.
int32_t CountOf(const ReservationSpec& spec);
int32_t LeftOf(const Reservation& reservation);
// Whether this machine may use the room: it names the reservation, or the one that it is a part of.
bool IsNamedBy(const Reservation& reservation, std::string_view reservation_ref);
// Nobody takes it, for now: the pools that it names have said no. One that was lost stays Lost.
void BecomeRejected(Reservation& reservation);
// How long it is kept once a host has accepted it; nullopt: for ever.
std::optional<Duration> TtlOf(const ReservationSpec& spec);

}  // namespace berth::apis::core
