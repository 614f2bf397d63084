// SPDX-License-Identifier: Apache-2.0
#include "apis/k8s/lease.h"

#include "apis/core/rules.h"

namespace berth::apis::k8s {
namespace {

void Validate(const Lease& object, meta::FieldErrors& errors) {
  const meta::FieldPath path = core::SpecPath();
  const LeaseSpec& spec = object.spec;
  if (spec.holder_identity && spec.holder_identity->empty()) {
    errors.Invalid(path.Child("holderIdentity"), "", "must not be empty");
  }
  if (spec.lease_duration_seconds && *spec.lease_duration_seconds <= 0) {
    errors.Invalid(path.Child("leaseDurationSeconds"),
                   std::to_string(*spec.lease_duration_seconds),
                   "must be greater than 0");
  }
  if (spec.lease_transitions && *spec.lease_transitions < 0) {
    errors.Invalid(path.Child("leaseTransitions"),
                   std::to_string(*spec.lease_transitions),
                   "must be greater than or equal to 0");
  }
}

std::string HolderCell(const Lease& object) { return object.spec.holder_identity.value_or(""); }

constexpr meta::Column kColumns[] = {
    {.name = "Holder", .doc = "Who holds the lease.", .cell = meta::Hook<&HolderCell>},
};

}  // namespace

constinit const meta::KindInfo kLeaseKind = {
    .group = "coordination.k8s.io",
    .version = "v1",
    .kind = "Lease",
    .plural = "leases",
    .singular = "lease",
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<Lease>(),
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
};

}  // namespace berth::apis::k8s
