// SPDX-License-Identifier: Apache-2.0
// MachineGroup: machines that are placed all together or not at all.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "meta/kind.h"

namespace berth::apis::berth_dev {

inline constexpr std::string_view kGroupPending = "Pending";
inline constexpr std::string_view kGroupCommitted = "Committed";
inline constexpr std::string_view kGroupBound = "Bound";

// Members of one group: a plan for all of them has to fit into the group's status.
inline constexpr int32_t kGroupMembersMax = 5000;

inline constexpr std::string_view kGroupTimeout = "30s";
inline constexpr Duration kGroupTimeoutMin = Duration::Seconds(1);
inline constexpr Duration kGroupTimeoutMax = Duration::Minutes(10);

struct MachineGroupSpec {
  int32_t min_members = 0;
  std::string timeout;
};
BERTH_DESCRIBE(MachineGroupSpec,
               "dev.berth.api.v1alpha1.MachineGroupSpec",
               "Which machines belong together. Members name the group in "
               "spec.placement.groupRef.",
               BERTH_FIELD(min_members,
                           "minMembers",
                           "None of the members gets a pool before this many have one together; at "
                           "least 1.",
                           {.required = true}),
               BERTH_FIELD(timeout,
                           "timeout",
                           "For how long hosts keep room for members while others are still asked, "
                           "such as 30s; then all of it is given back and tried again later.",
                           {.fallback = "\"30s\""}))

struct MachineGroupCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  WallTime last_transition_time;
  bool operator==(const MachineGroupCondition&) const = default;
};
BERTH_DESCRIBE(MachineGroupCondition,
               "dev.berth.api.v1alpha1.MachineGroupCondition",
               "One aspect of the group's condition.",
               BERTH_FIELD(type, "type", "What it is about: Scheduled.", {.required = true}),
               BERTH_FIELD(status,
                           "status",
                           "True, False or Unknown.",
                           {.required = true, .values = {"True", "False", "Unknown"}}),
               BERTH_FIELD(reason, "reason", "One word for programs.", {.always = true}),
               BERTH_FIELD(message, "message", "A sentence for people.", {.always = true}),
               BERTH_FIELD(last_transition_time, "lastTransitionTime", "When status last changed."))

struct MachineGroupStatus {
  std::string phase;
  int32_t members = 0;
  int32_t bound = 0;
  std::map<std::string, std::string> committed;
  std::vector<MachineGroupCondition> conditions;
  bool operator==(const MachineGroupStatus&) const = default;
};
BERTH_DESCRIBE(
    MachineGroupStatus,
    "dev.berth.api.v1alpha1.MachineGroupStatus",
    "How far the group is.",
    BERTH_FIELD(phase,
                "phase",
                "Pending: members or room are missing. Committed: every member has its "
                "pool, and they are bound one by one. Bound: enough members have a pool.",
                {.values = {"Pending", "Committed", "Bound"}}),
    BERTH_FIELD(members, "members", "How many members there are.", {.always = true}),
    BERTH_FIELD(bound, "bound", "How many of them have a pool.", {.always = true}),
    BERTH_FIELD(committed,
                "committed",
                "The plan of a group that is too large for one commit: UID of the member "
                "to name of its pool. Whoever schedules carries it out."),
    BERTH_FIELD(conditions, "conditions", "More about the group, aspect by aspect."))

struct MachineGroup {
  meta::ObjectMeta metadata;
  MachineGroupSpec spec;
  MachineGroupStatus status;
};
BERTH_DESCRIBE(MachineGroup,
               "dev.berth.api.v1alpha1.MachineGroup",
               "Machines that are placed all together or not at all.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "Which machines belong together."),
               BERTH_FIELD(status, "status", "How far the group is; written by the system."))

extern const meta::KindInfo kMachineGroupKind;
inline const meta::KindInfo& BerthKind(meta::Tag<MachineGroup>) { return kMachineGroupKind; }

// spec.timeout, with what absent means.
Duration TimeoutOf(const MachineGroupSpec& spec);

}  // namespace berth::apis::berth_dev
