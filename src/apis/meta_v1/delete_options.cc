// SPDX-License-Identifier: Apache-2.0
#include "apis/meta_v1/delete_options.h"

namespace berth::apis::meta_v1 {

void CheckDeleteOptions(const DeleteOptions& options, meta::FieldErrors& errors) {
  const meta::FieldPath policy("propagationPolicy");
  if (options.propagation_policy) {
    const std::string& value = *options.propagation_policy;
    if (value != kPropagationOrphan && value != kPropagationBackground &&
        value != kPropagationForeground) {
      errors.NotSupported(
          policy, value, {kPropagationForeground, kPropagationBackground, kPropagationOrphan});
    }
    if (options.orphan_dependents) {
      errors.Invalid(policy, value, "orphanDependents and deletionPropagation cannot be both set");
    }
  }
  if (options.grace_period_seconds && *options.grace_period_seconds < 0) {
    errors.Invalid(meta::FieldPath("gracePeriodSeconds"),
                   std::to_string(*options.grace_period_seconds),
                   "must be greater than or equal to 0");
  }
  const meta::FieldPath dry_run("dryRun");
  for (const std::string& value : options.dry_run) {
    if (value != kDryRunAll) errors.NotSupported(dry_run, value, {kDryRunAll});
  }
}

}  // namespace berth::apis::meta_v1
