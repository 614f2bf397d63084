// SPDX-License-Identifier: Apache-2.0
#include "apis/k8s/priority_class.h"

#include "apis/core/rules.h"

namespace berth::apis::k8s {
namespace {

void Validate(const PriorityClass& object, meta::FieldErrors& errors) {
  if (object.value > kPriorityMax) {
    errors.Forbidden(meta::FieldPath("value"), "the limit is " + std::to_string(kPriorityMax));
  }
  if (object.metadata.name.starts_with(kSystemPriorityPrefix)) {
    errors.Forbidden(meta::FieldPath("metadata").Child("name"),
                     "names that begin with system- are the system's own");
  }
  const auto preemptible = object.metadata.annotations.find(std::string(kPreemptibleAnnotation));
  if (preemptible != object.metadata.annotations.end() && preemptible->second != "true" &&
      preemptible->second != "false") {
    errors.Invalid(meta::FieldPath("metadata").Child("annotations").Key(kPreemptibleAnnotation),
                   preemptible->second,
                   "must be \"true\" or \"false\"");
  }
}

void ValidateUpdate(const PriorityClass& now,
                    const PriorityClass& before,
                    meta::FieldErrors& errors) {
  core::CheckImmutable(now.value, before.value, meta::FieldPath("value"), errors);
  core::CheckImmutable(
      now.preemption_policy, before.preemption_policy, meta::FieldPath("preemptionPolicy"), errors);
}

std::string ValueCell(const PriorityClass& object) { return std::to_string(object.value); }
std::string DefaultCell(const PriorityClass& object) {
  return object.global_default ? "true" : "false";
}
std::string PreemptionCell(const PriorityClass& object) {
  return object.preemption_policy.empty() ? std::string(kPreemptLowerPriority)
                                          : object.preemption_policy;
}
std::string PreemptibleCell(const PriorityClass& object) {
  return IsPreemptible(object) ? "true" : "false";
}

constexpr meta::Column kColumns[] = {
    {.name = "Value",
     .type = "integer",
     .doc = "The more, the more important.",
     .cell = meta::Hook<&ValueCell>},
    {.name = "Global-Default",
     .type = "boolean",
     .doc = "Whether machines without a class get this one.",
     .cell = meta::Hook<&DefaultCell>},
    {.name = "PreemptionPolicy",
     .doc = "Whether less important machines are stopped for it.",
     .cell = meta::Hook<&PreemptionCell>},
    {.name = "Preemptible",
     .type = "boolean",
     .doc = "Whether its machines are stopped for more important ones.",
     .cell = meta::Hook<&PreemptibleCell>},
};

constexpr std::string_view kShortNames[] = {"pc"};

}  // namespace

bool IsPreemptible(const PriorityClass& object) {
  const auto found = object.metadata.annotations.find(std::string(kPreemptibleAnnotation));
  return found != object.metadata.annotations.end() && found->second == "true";
}

constinit const meta::KindInfo kPriorityClassKind = {
    .group = "scheduling.k8s.io",
    .version = "v1",
    .kind = "PriorityClass",
    .plural = "priorityclasses",
    .singular = "priorityclass",
    .short_names = kShortNames,
    .scope = meta::Scope::kCluster,
    .type = &meta::TypeInfoOf<PriorityClass>(),
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
};

}  // namespace berth::apis::k8s
