// SPDX-License-Identifier: Apache-2.0
// Taints keep work away from a pool; tolerations say which of them a piece of work accepts.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meta/field_errors.h"
#include "meta/type.h"

namespace berth::apis::core {

inline constexpr std::string_view kNoSchedule = "NoSchedule";
inline constexpr std::string_view kPreferNoSchedule = "PreferNoSchedule";
inline constexpr std::string_view kNoExecute = "NoExecute";

inline constexpr std::string_view kTolerateEqual = "Equal";
inline constexpr std::string_view kTolerateExists = "Exists";

// Taints of this domain are tolerated by their name alone, and naming one is a right: the verb
// `tolerate` on the taint, which RBAC knows by what follows the slash (ADR 0051).
inline constexpr std::string_view kRestrictedTaintPrefix = "restricted.berth.dev/";
inline bool IsRestrictedTaint(std::string_view key) {
  return key.starts_with(kRestrictedTaintPrefix);
}

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
  WallTime time_added;
  bool operator==(const Taint&) const = default;
};
BERTH_DESCRIBE(Taint,
               "com.github.ironcore-dev.ironcore.api.common.v1alpha1.Taint",
               "A mark on a pool that keeps away work which does not tolerate it.",
               BERTH_FIELD(key, "key", "What the mark is about; a label key.", {.required = true}),
               BERTH_FIELD(value, "value", "More about the mark; a label value."),
               BERTH_FIELD(effect,
                           "effect",
                           "NoSchedule: nothing new comes. PreferNoSchedule: better somewhere "
                           "else. NoExecute: nothing new comes, and what is there must go.",
                           {.required = true,
                            .values = {"NoSchedule", "PreferNoSchedule", "NoExecute"}}),
               BERTH_FIELD(time_added,
                           "timeAdded",
                           "Since when a NoExecute taint is there; set by the server if absent."))

struct Toleration {
  std::string key;
  std::string operator_;
  std::string value;
  std::string effect;
  std::optional<int64_t> toleration_seconds;
  auto operator<=>(const Toleration&) const = default;
};
BERTH_DESCRIBE(Toleration,
               "com.github.ironcore-dev.ironcore.api.common.v1alpha1.Toleration",
               "Accepts the taints that it matches.",
               BERTH_FIELD(key,
                           "key",
                           "Key of the taint; empty, with Exists, matches every key but those of "
                           "restricted.berth.dev."),
               BERTH_FIELD(operator_,
                           "operator",
                           "Equal (also when empty): the values must be the same. Exists: any "
                           "value will do.",
                           {.values = {"Equal", "Exists"}}),
               BERTH_FIELD(value, "value", "Value of the taint, for Equal."),
               BERTH_FIELD(effect,
                           "effect",
                           "Effect of the taint; empty matches every effect.",
                           {.values = {"NoSchedule", "PreferNoSchedule", "NoExecute"}}),
               BERTH_FIELD(toleration_seconds,
                           "tolerationSeconds",
                           "Only with NoExecute: how long to stay once the taint is there; absent: "
                           "for ever."))

// A restricted taint is tolerated by its key only.
bool Tolerates(const Toleration& toleration, const Taint& taint);
// The first taint that none of the tolerations accepts, or null. PreferNoSchedule never keeps
// anything away and is skipped.
const Taint* FindUntolerated(std::span<const Toleration> tolerations,
                             std::span<const Taint> taints);
inline bool TolerateTaints(std::span<const Toleration> tolerations, std::span<const Taint> taints) {
  return FindUntolerated(tolerations, taints) == nullptr;
}

// Key and value syntax, and each (key, effect) at most once. Effects and operators are checked by
// the description above.
void CheckTaints(std::span<const Taint> taints,
                 const meta::FieldPath& path,
                 meta::FieldErrors& errors);
void CheckTolerations(std::span<const Toleration> tolerations,
                      const meta::FieldPath& path,
                      meta::FieldErrors& errors);

}  // namespace berth::apis::core
