// SPDX-License-Identifier: Apache-2.0
#include "apis/berth/machine_group.h"

#include <algorithm>

#include "apis/core/category.h"
#include "apis/core/rules.h"

namespace berth::apis::berth_dev {
namespace {

void Validate(const MachineGroup& object, meta::FieldErrors& errors) {
  const meta::FieldPath path = core::SpecPath();
  const int32_t members = object.spec.min_members;
  if (members < 0 || members > kGroupMembersMax) {
    errors.Invalid(path.Child("minMembers"),
                   int64_t{members},
                   "must be from 1 to " + std::to_string(kGroupMembersMax));
  }
  if (object.spec.timeout.empty()) return;
  const Result<Duration> timeout = ParseDuration(object.spec.timeout);
  if (!timeout.ok() || *timeout < kGroupTimeoutMin || *timeout > kGroupTimeoutMax) {
    errors.Invalid(path.Child("timeout"),
                   object.spec.timeout,
                   "must be a duration from 1s to 10m, such as 30s");
  }
}

void ValidateUpdate(const MachineGroup& now,
                    const MachineGroup& before,
                    meta::FieldErrors& errors) {
  core::CheckImmutable(
      now.spec.min_members, before.spec.min_members, core::SpecPath().Child("minMembers"), errors);
}

void ValidateStatusUpdate(const MachineGroup& now,
                          const MachineGroup& /*before*/,
                          meta::FieldErrors& errors) {
  const meta::FieldPath path = core::StatusPath();
  core::CheckConditions(now.status.conditions, path.Child("conditions"), errors);
  if (now.status.committed.size() > static_cast<size_t>(kGroupMembersMax)) {
    errors.TooMany(path.Child("committed"), now.status.committed.size(), kGroupMembersMax);
  }
}

std::string MinCell(const MachineGroup& object) { return std::to_string(object.spec.min_members); }
std::string MembersCell(const MachineGroup& object) {
  return std::to_string(object.status.members);
}
std::string BoundCell(const MachineGroup& object) { return std::to_string(object.status.bound); }
std::string PhaseCell(const MachineGroup& object) { return core::OrUnknown(object.status.phase); }

constexpr meta::Column kColumns[] = {
    {.name = "Min", .type = "integer", .doc = "How many at least.", .cell = meta::Hook<&MinCell>},
    {.name = "Members",
     .type = "integer",
     .doc = "How many there are.",
     .cell = meta::Hook<&MembersCell>},
    {.name = "Bound",
     .type = "integer",
     .doc = "How many have a pool.",
     .cell = meta::Hook<&BoundCell>},
    {.name = "Phase", .doc = "How far the group is.", .cell = meta::Hook<&PhaseCell>},
};

constexpr std::string_view kShortNames[] = {"mgrp"};

}  // namespace

Duration TimeoutOf(const MachineGroupSpec& spec) {
  const Result<Duration> timeout =
      ParseDuration(spec.timeout.empty() ? kGroupTimeout : std::string_view(spec.timeout));
  if (!timeout.ok()) return Duration::Seconds(30);
  return std::clamp(*timeout, kGroupTimeoutMin, kGroupTimeoutMax);
}

constinit const meta::KindInfo kMachineGroupKind = {
    .group = "berth.dev",
    .naming = meta::GroupNaming::kFixed,
    .version = "v1alpha1",
    .kind = "MachineGroup",
    .plural = "machinegroups",
    .singular = "machinegroup",
    .short_names = kShortNames,
    .categories = core::kShownByAll,
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<MachineGroup>(),
    .has_status = true,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::berth_dev
