// SPDX-License-Identifier: Apache-2.0
#include "apis/core/taints.h"

#include "apis/core/rules.h"

namespace berth::apis::core {

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (toleration.operator_ == kTolerateExists) {
    return toleration.key.empty() ? !IsRestrictedTaint(taint.key) : toleration.key == taint.key;
  }
  if (!toleration.operator_.empty() && toleration.operator_ != kTolerateEqual) return false;
  // An empty key means "every key" only together with Exists.
  return !toleration.key.empty() && toleration.key == taint.key && toleration.value == taint.value;
}

const Taint* FindUntolerated(std::span<const Toleration> tolerations,
                             std::span<const Taint> taints) {
  for (const Taint& taint : taints) {
    if (taint.effect == kPreferNoSchedule) continue;
    bool is_tolerated = false;
    for (const Toleration& toleration : tolerations) {
      is_tolerated = is_tolerated || Tolerates(toleration, taint);
    }
    if (!is_tolerated) return &taint;
  }
  return nullptr;
}

void CheckTaints(std::span<const Taint> taints,
                 const meta::FieldPath& path,
                 meta::FieldErrors& errors) {
  UniqueNames unique;
  for (size_t i = 0; i < taints.size(); ++i) {
    const Taint& taint = taints[i];
    const meta::FieldPath at = path.Index(i);
    if (!taint.key.empty()) CheckLabelKey(taint.key, at.Child("key"), errors);
    CheckLabelValue(taint.value, at.Child("value"), errors);
    unique.Check(taint.key + ":" + taint.effect, at, errors);
  }
}

void CheckTolerations(std::span<const Toleration> tolerations,
                      const meta::FieldPath& path,
                      meta::FieldErrors& errors) {
  for (size_t i = 0; i < tolerations.size(); ++i) {
    const Toleration& toleration = tolerations[i];
    const meta::FieldPath at = path.Index(i);
    if (!toleration.key.empty()) {
      CheckLabelKey(toleration.key, at.Child("key"), errors);
    } else if (toleration.operator_ != kTolerateExists) {
      errors.Invalid(at.Child("operator"),
                     toleration.operator_,
                     "operator must be Exists when `key` is empty, which means \"match all "
                     "values and all keys\"");
    }
    if (toleration.operator_ == kTolerateExists && !toleration.value.empty()) {
      errors.Invalid(
          at.Child("value"), toleration.value, "value must be empty when `operator` is 'Exists'");
    } else {
      CheckLabelValue(toleration.value, at.Child("value"), errors);
    }
    if (toleration.toleration_seconds && toleration.effect != kNoExecute) {
      errors.Invalid(
          at.Child("effect"), toleration.effect, "must be NoExecute with `tolerationSeconds`");
    }
  }
}

}  // namespace berth::apis::core
