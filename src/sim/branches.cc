// SPDX-License-Identifier: Apache-2.0
#include "sim/branches.h"

namespace berth::sim {
namespace {

constexpr std::array<std::string_view, kBranches> kNames = {
    "seq01.scheduler-died-after-offer",
    "seq02.scheduler-died-after-accept",
    "seq03.scheduler-died-in-commit",
    "seq04.bind-outcome-unknown",
    "seq05.bind-after-hold-expired",
    "seq06.old-leader-binds",
    "seq07.changed-before-bind",
    "seq08.cordoned-before-bind",
    "seq09.poollet-died-with-hold",
    "seq10.poollet-died-in-write",
    "seq11.poollet-died-after-write",
    "seq12.poollet-died-in-create",
    "seq13.runtime-died-in-create",
    "seq14.gateway-died-after-bind",
    "seq15.late-accept",
    "seq16.partition-after-bind",
    "seq17.returned-after-move",
    "seq18.returned-during-move",
    "seq19.pool-reborn",
    "seq20.restored",
    "seq21.died-in-group",
    "seq22.died-in-preemption",
};

}  // namespace

std::string_view NameOf(Branch branch) { return kNames[static_cast<size_t>(branch)]; }

}  // namespace berth::sim
