// SPDX-License-Identifier: Apache-2.0
// PlacementReview: asks where something would be placed, and why it is or is not. Asked with a
// create and answered in status; nothing is stored and nothing is placed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meta/kind.h"
#include "meta/quantity.h"
#include "meta/value.h"

namespace berth::apis::berth_dev {

// What came of the question.
inline constexpr std::string_view kVerdictPlaced = "Placed";
inline constexpr std::string_view kVerdictFits = "Fits";
inline constexpr std::string_view kVerdictFitsPartly = "FitsPartly";
inline constexpr std::string_view kVerdictNoPool = "NoPool";
inline constexpr std::string_view kVerdictWaits = "Waits";
inline constexpr std::string_view kVerdictNotNeeded = "NotNeeded";

// How many copies are counted at most unless said otherwise, and at all.
inline constexpr int32_t kCopiesCounted = 1000;
inline constexpr int32_t kCopiesCountedMax = 100'000;

// Drafts that come with a question: a group of 256 machines, each with a volume of its own.
inline constexpr size_t kRelatedMax = 512;

struct PlacementTarget {
  std::string api_version;
  std::string kind;
  std::string name;
  bool operator==(const PlacementTarget&) const = default;
};
BERTH_DESCRIBE(PlacementTarget,
               "dev.berth.api.v1alpha1.PlacementTarget",
               "An object in the namespace of the review.",
               BERTH_FIELD(api_version,
                           "apiVersion",
                           "Its apiVersion; may be left out for kinds that are placed."),
               BERTH_FIELD(kind,
                           "kind",
                           "Machine, Volume, VolumeSnapshot, Bucket or Reservation.",
                           {.always = true}),
               BERTH_FIELD(name, "name", "Its name.", {.always = true}))

struct PlacementReviewSpec {
  std::optional<PlacementTarget> object_ref;
  meta::Value object;
  std::vector<meta::Value> related;
  std::optional<int32_t> copies;
};
BERTH_DESCRIBE(PlacementReviewSpec,
               "dev.berth.api.v1alpha1.PlacementReviewSpec",
               "What is asked about: an object that exists, or one that does not.",
               BERTH_FIELD(object_ref,
                           "objectRef",
                           "An object that exists. Who asks needs the right to get it."),
               BERTH_FIELD(object,
                           "object",
                           "A Machine, Volume, VolumeSnapshot, Bucket, Reservation, MachineSet or "
                           "MachineGroup as it would be created."),
               BERTH_FIELD(related,
                           "related",
                           "What would be created with it: volumes, snapshots, reservations and "
                           "machine classes that it names, machines that name the group; at most "
                           "512. What exists already counts as it is.",
                           {.list_type = "atomic"}),
               BERTH_FIELD(copies,
                           "copies",
                           "Up to how many copies are counted; 1000 unless said otherwise."))

struct RuleCount {
  std::string rule;
  int64_t pools = 0;
  std::string message;
  bool operator==(const RuleCount&) const = default;
};
BERTH_DESCRIBE(RuleCount,
               "dev.berth.api.v1alpha1.RuleCount",
               "Pools that a rule keeps out. A pool counts for the first rule that it fails.",
               BERTH_FIELD(rule, "rule", "Name of the rule: Room, Taint.", {.always = true}),
               BERTH_FIELD(pools, "pools", "How many pools fail it.", {.always = true}),
               BERTH_FIELD(message, "message", "What that means."))

struct NearestPool {
  std::string pool;
  std::string rule;
  std::map<std::string, meta::Quantity> missing;
  bool operator==(const NearestPool&) const = default;
};
BERTH_DESCRIBE(
    NearestPool,
    "dev.berth.api.v1alpha1.NearestPool",
    "The pool that comes nearest to taking it.",
    BERTH_FIELD(pool, "pool", "Its name.", {.always = true}),
    BERTH_FIELD(rule, "rule", "The first rule that it fails.", {.always = true}),
    BERTH_FIELD(missing,
                "missing",
                "How much more room it would need. Where a pool counts per class this is "
                "\"class small\": 1, room for one more of it."))

struct RankedPool {
  std::string pool;
  int32_t score = 0;
  int32_t preference = 0;
  std::string reluctance;
  std::vector<std::string> volume_pools;
  bool operator==(const RankedPool&) const = default;
};
BERTH_DESCRIBE(RankedPool,
               "dev.berth.api.v1alpha1.RankedPool",
               "A pool that passes every rule.",
               BERTH_FIELD(pool, "pool", "Its name.", {.always = true}),
               BERTH_FIELD(score, "score", "The policy's score, 1 to 63.", {.always = true}),
               BERTH_FIELD(preference, "preference", "Points for preferences that it meets."),
               BERTH_FIELD(reluctance,
                           "reluctance",
                           "Why it comes after the others: PreferNoSchedule (a taint), Failing (it "
                           "kept failing what it accepted), Left (the machine was moved away)."),
               BERTH_FIELD(volume_pools,
                           "volumePools",
                           "Pools of the volumes that would be placed with the machine.",
                           {.list_type = "atomic"}))

struct PoolRefusal {
  std::string pool;
  std::string reason;
  std::string message;
  bool operator==(const PoolRefusal&) const = default;
};
BERTH_DESCRIBE(PoolRefusal,
               "dev.berth.api.v1alpha1.PoolRefusal",
               "A pool whose host was asked and said no.",
               BERTH_FIELD(pool, "pool", "Its name.", {.always = true}),
               BERTH_FIELD(reason, "reason", "One word.", {.always = true}),
               BERTH_FIELD(message, "message", "What the host said."))

struct MemberPlace {
  std::string name;
  std::string pool;
  std::vector<std::string> volume_pools;
  std::string message;
  bool operator==(const MemberPlace&) const = default;
};
BERTH_DESCRIBE(MemberPlace,
               "dev.berth.api.v1alpha1.MemberPlace",
               "A machine of a group, and the pool that it gets when all of them are placed.",
               BERTH_FIELD(name, "name", "The machine's name.", {.always = true}),
               BERTH_FIELD(pool, "pool", "The pool that it is on, or gets; empty: none."),
               BERTH_FIELD(volume_pools,
                           "volumePools",
                           "Pools of the volumes that would be placed with it.",
                           {.list_type = "atomic"}),
               BERTH_FIELD(message, "message", "What it waits for besides a pool."))

struct PlacementReviewStatus {
  std::string verdict;
  std::string message;
  std::string pool;
  std::string policy;
  int64_t pools = 0;
  int64_t fitting = 0;
  std::vector<RuleCount> failed;
  std::map<std::string, int64_t> scarce;
  std::optional<NearestPool> nearest;
  std::vector<RankedPool> ranked;
  std::vector<PoolRefusal> refusals;
  int64_t room = 0;
  bool room_is_more = false;
  std::optional<int32_t> wanted;
  std::vector<MemberPlace> members;
  bool operator==(const PlacementReviewStatus&) const = default;
};
BERTH_DESCRIBE(
    PlacementReviewStatus,
    "dev.berth.api.v1alpha1.PlacementReviewStatus",
    "The answer, as of the moment in which it was given. Nothing is held.",
    BERTH_FIELD(
        verdict,
        "verdict",
        "Placed: it is on a pool. Fits: it would be placed. FitsPartly: some of the copies, "
        "enough members of the group, or some of the pools of a reservation for all, would. "
        "NoPool: no pool takes it. Waits: something that it "
        "needs is missing. NotNeeded: it needs no pool.",
        {.values = {"Placed", "Fits", "FitsPartly", "NoPool", "Waits", "NotNeeded"}}),
    BERTH_FIELD(message, "message", "The answer in a sentence."),
    BERTH_FIELD(pool, "pool", "The pool that it is on, or would be placed on."),
    BERTH_FIELD(policy, "policy", "How the pools that fit are ranked."),
    BERTH_FIELD(pools, "pools", "How many pools of its kind there are."),
    BERTH_FIELD(fitting,
                "fitting",
                "How many of them pass every rule; of an object that has a place, as if it had "
                "none."),
    BERTH_FIELD(failed, "failed", "How many pools fail which rule.", {.list_type = "atomic"}),
    BERTH_FIELD(scarce,
                "scarce",
                "How many pools lack room, by resource, or by class where they count per class."),
    BERTH_FIELD(nearest, "nearest", "What is missing on the pool that comes nearest."),
    BERTH_FIELD(ranked, "ranked", "The best pools, best first.", {.list_type = "atomic"}),
    BERTH_FIELD(
        refusals, "refusals", "Hosts that said no in the last attempt.", {.list_type = "atomic"}),
    BERTH_FIELD(room,
                "room",
                "How many (more) copies would fit; of a MachineGroup, how many members have a pool "
                "or would get one at once."),
    BERTH_FIELD(room_is_more,
                "roomIsMore",
                "Counting stopped there: there is room for at least as many."),
    BERTH_FIELD(wanted,
                "wanted",
                "Of a MachineSet: how many machines it wants. Of a MachineGroup: how many members "
                "it has, those of the question counted."),
    BERTH_FIELD(members,
                "members",
                "Of a MachineGroup: who gets which pool; by name.",
                {.list_type = "atomic"}))

struct PlacementReview {
  meta::ObjectMeta metadata;
  PlacementReviewSpec spec;
  PlacementReviewStatus status;
};
BERTH_DESCRIBE(PlacementReview,
               "dev.berth.api.v1alpha1.PlacementReview",
               "Asks where something would be placed, and why it is or is not.",
               BERTH_FIELD(metadata, "metadata", "Its namespace is the object's."),
               BERTH_FIELD(spec, "spec", "The question.", {.always = true}),
               BERTH_FIELD(status, "status", "The answer."))

extern const meta::KindInfo kPlacementReviewKind;
inline const meta::KindInfo& BerthKind(meta::Tag<PlacementReview>) { return kPlacementReviewKind; }

}  // namespace berth::apis::berth_dev
