// SPDX-License-Identifier: Apache-2.0
// Where an object is placed, and what its owner asks of the place. These are our additions to the
// kinds of others: each kind has them in one field of its spec and one of its status, so that they
// cannot collide with what those kinds become.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/core/references.h"
#include "apis/core/resources.h"
#include "meta/field_errors.h"
#include "meta/label_selector.h"
#include "meta/type.h"

namespace berth::apis::core {

// The topology in which every pool is a place of its own; any other key is a label of pools.
inline constexpr std::string_view kPoolTopology = "berth.dev/pool";

// Absent is Keep. Nobody writes the default into objects.
inline constexpr std::string_view kOnPoolLossKeep = "Keep";
inline constexpr std::string_view kOnPoolLossMove = "Move";

// On a machine that a set has made: when its pool is lost, the set makes another one and this one
// goes when its host returns.
inline constexpr std::string_view kOnPoolLossAnnotation = "berth.dev/on-pool-loss";
inline constexpr std::string_view kOnPoolLossReplace = "Replace";

inline constexpr std::string_view kPolicyBinpack = "binpack";
inline constexpr std::string_view kPolicySpread = "spread";
inline constexpr std::string_view kPolicyBalanced = "balanced";

inline constexpr std::string_view kDoNotSchedule = "DoNotSchedule";
inline constexpr std::string_view kScheduleAnyway = "ScheduleAnyway";

// Type of the condition that says whether an object has its place.
inline constexpr std::string_view kScheduledCondition = "Scheduled";

struct AffinityTerm {
  meta::LabelSelector label_selector;
  std::string topology_key;
  bool operator==(const AffinityTerm&) const = default;
};
BERTH_DESCRIBE(AffinityTerm,
               "dev.berth.api.v1alpha1.AffinityTerm",
               "Objects of the same kind and namespace, and how near they are meant to be.",
               BERTH_FIELD(label_selector,
                           "labelSelector",
                           "The objects that are meant, by their labels.",
                           {.always = true}),
               BERTH_FIELD(topology_key,
                           "topologyKey",
                           "Pools with the same value of this label are one place; "
                           "berth.dev/pool: each pool is its own.",
                           {.required = true}))

struct WeightedAffinityTerm {
  int32_t weight = 0;
  AffinityTerm term;
  bool operator==(const WeightedAffinityTerm&) const = default;
};
BERTH_DESCRIBE(WeightedAffinityTerm,
               "dev.berth.api.v1alpha1.WeightedAffinityTerm",
               "A wish and how much it counts against others.",
               BERTH_FIELD(weight, "weight", "From 1 to 100.", {.required = true}),
               BERTH_FIELD(term, "term", "The wish.", {.always = true}))

struct Affinity {
  std::vector<AffinityTerm> required;
  std::vector<WeightedAffinityTerm> preferred;
  bool operator==(const Affinity&) const = default;
};
BERTH_DESCRIBE(Affinity,
               "dev.berth.api.v1alpha1.Affinity",
               "Which other objects decide where this one may be.",
               BERTH_FIELD(required, "required", "Every one of them must hold."),
               BERTH_FIELD(preferred, "preferred", "Places where they hold are better."))

struct SpreadConstraint {
  std::string topology_key;
  int32_t max_skew = 0;
  std::string when_unsatisfiable;
  std::optional<meta::LabelSelector> label_selector;
  bool operator==(const SpreadConstraint&) const = default;
};
BERTH_DESCRIBE(
    SpreadConstraint,
    "dev.berth.api.v1alpha1.SpreadConstraint",
    "Keeps similar objects spread evenly over places.",
    BERTH_FIELD(topology_key,
                "topologyKey",
                "Pools with the same value of this label are one place; berth.dev/pool: each pool "
                "is its own.",
                {.required = true}),
    BERTH_FIELD(max_skew,
                "maxSkew",
                "By how many objects the fullest place may exceed the emptiest; at least 1.",
                {.required = true}),
    BERTH_FIELD(when_unsatisfiable,
                "whenUnsatisfiable",
                "DoNotSchedule (also when empty): wait. ScheduleAnyway: only a wish.",
                {.values = {"DoNotSchedule", "ScheduleAnyway"}}),
    BERTH_FIELD(label_selector,
                "labelSelector",
                "The objects that are counted; absent: those that have all labels of this one."))

struct Placement {
  std::string priority_class_name;
  std::optional<int32_t> priority;
  std::optional<Affinity> affinity;
  std::optional<Affinity> anti_affinity;
  std::vector<SpreadConstraint> spread;
  std::optional<LocalObjectReference> group_ref;
  std::optional<LocalObjectReference> reservation_ref;
  std::string on_pool_loss;
  std::string policy;
  bool operator==(const Placement&) const = default;
};
BERTH_DESCRIBE(
    Placement,
    "dev.berth.api.v1alpha1.Placement",
    "What is asked of the place beyond class, selector and tolerations.",
    BERTH_FIELD(priority_class_name,
                "priorityClassName",
                "The PriorityClass: how important it is against others. Needs the verb use on the "
                "class. Cannot change."),
    BERTH_FIELD(priority,
                "priority",
                "The value of the class when this was made; set by the server. Cannot change."),
    BERTH_FIELD(affinity, "affinity", "Be near these objects."),
    BERTH_FIELD(anti_affinity, "antiAffinity", "Be away from these objects."),
    BERTH_FIELD(spread, "spread", "Be spread evenly with similar objects."),
    BERTH_FIELD(group_ref,
                "groupRef",
                "The group whose members are placed all or none. Cannot change."),
    BERTH_FIELD(reservation_ref,
                "reservationRef",
                "The reservation whose room is used: the object waits for it, and goes nowhere "
                "else the first time."),
    BERTH_FIELD(on_pool_loss,
                "onPoolLoss",
                "When the pool is lost. Keep (also when empty): stay until the pool returns or "
                "somebody proves that it is off. Move: start elsewhere once the host was fenced; a "
                "machine with state on its host only is kept all the same, and its condition "
                "Movable says why.",
                {.values = {"Keep", "Move"}}),
    BERTH_FIELD(policy,
                "policy",
                "How to choose among pools that will do; absent: the server's own choice.",
                {.values = {"binpack", "spread", "balanced"}}))

// Why an object has to leave its pool (PlacementStatus::release).
inline constexpr std::string_view kReleaseDrain = "Drain";          // an operator empties the pool
inline constexpr std::string_view kReleaseMove = "Move";            // an operator moves the object
inline constexpr std::string_view kReleaseTaint = "Taint";          // NoExecute
inline constexpr std::string_view kReleasePreempted = "Preempted";  // for something more important

// Type of the condition that says that an object has to leave its pool and for whom, or why it
// stays although it should. Goes with the next binding.
inline constexpr std::string_view kReleasedCondition = "Released";

// Type of the condition that says that a machine is not moved although it asks for it:
// apis/compute/host_tie.h.
inline constexpr std::string_view kMovableCondition = "Movable";
inline constexpr std::string_view kReasonHostLocalState = "HostLocalState";
inline constexpr std::string_view kReasonHostNotTold = "HostNotTold";

// Whether its owner wants it to be started elsewhere when its pool is lost.
inline bool AsksToMove(const std::optional<Placement>& placement) {
  return placement && placement->on_pool_loss == kOnPoolLossMove;
}

// Room that is made for an object by stopping others; kept for it until then, whoever schedules.
struct Nomination {
  std::string pool;
  std::string pool_uid;
  WallTime until;
  bool operator==(const Nomination&) const = default;
};
BERTH_DESCRIBE(Nomination,
               "dev.berth.api.v1alpha1.Nomination",
               "Where room is being made for the object, by stopping less important ones.",
               BERTH_FIELD(pool, "pool", "Name of the pool."),
               BERTH_FIELD(pool_uid, "poolUID", "UID of the pool."),
               BERTH_FIELD(until, "until", "When the room is everybody's again."))

// Written in bind and unbind commits only; what a status update says of it is ignored, but for
// attempt, reason, while the object has a pool, release, and while it has none, nominated.
struct PlacementStatus {
  std::string pool;
  std::string pool_uid;
  int64_t epoch = 0;
  WallTime bound_time;
  int64_t attempt = 0;
  std::string reason;
  bool pinned = false;
  ResourceList resources;
  std::string release;
  std::optional<Nomination> nominated;
  std::string reservation_uid;
  bool operator==(const PlacementStatus&) const = default;
};
BERTH_DESCRIBE(
    PlacementStatus,
    "dev.berth.api.v1alpha1.PlacementStatus",
    "Where the object is placed; written by the scheduler.",
    BERTH_FIELD(pool, "pool", "Name of the pool; empty while there is none."),
    BERTH_FIELD(pool_uid,
                "poolUID",
                "UID of the pool: a later pool of the same name is another one."),
    BERTH_FIELD(epoch, "epoch", "Counts bindings and unbindings: which host may run the object."),
    BERTH_FIELD(bound_time, "boundTime", "When the object was bound to the pool."),
    BERTH_FIELD(attempt,
                "attempt",
                "How often a place was looked for in vain since the object was bound or lost its "
                "place; as of the last change of the condition Scheduled."),
    BERTH_FIELD(
        reason,
        "reason",
        "Why the last place was lost, in one word; before the first one, why none was found."),
    BERTH_FIELD(pinned,
                "pinned",
                "The pool was named by the owner of the object: this pool or none."),
    BERTH_FIELD(resources, "resources", "What the object takes of the pool."),
    BERTH_FIELD(release,
                "release",
                "Not empty: the object has to leave its pool, and why, in one word. Its host stops "
                "it, and once it is gone there it looks for another place."),
    BERTH_FIELD(nominated,
                "nominated",
                "The pool where less important objects are being stopped for it."),
    BERTH_FIELD(reservation_uid,
                "reservationUID",
                "UID of the reservation whose room the object took."))

// Everything about `placement` that its description cannot say.
void CheckPlacement(const std::optional<Placement>& placement,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors);
void CheckPlacementUpdate(const std::optional<Placement>& now,
                          const std::optional<Placement>& before,
                          const meta::FieldPath& path,
                          meta::FieldErrors& errors);

// What stays as it was in every write but bind and unbind commits.
void KeepPlacementStatus(std::optional<PlacementStatus>& now,
                         const std::optional<PlacementStatus>& before);

}  // namespace berth::apis::core
