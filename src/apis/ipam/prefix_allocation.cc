// SPDX-License-Identifier: Apache-2.0
#include "apis/ipam/prefix_allocation.h"

#include "apis/core/rules.h"
#include "apis/ipam/prefix.h"

namespace berth::apis::ipam {
namespace {

constexpr int kIpv4Bits = 32;
constexpr int kIpv6Bits = 128;

void SetDefaults(PrefixAllocation& object) {
  PrefixAllocationSpec& spec = object.spec;
  if (spec.ip_family.empty() && spec.prefix) spec.ip_family = FamilyOf(*spec.prefix);
}

void CheckRange(const PrefixAllocationSpec& spec,
                const meta::FieldPath& path,
                meta::FieldErrors& errors) {
  if (spec.prefix && FamilyOf(*spec.prefix) != spec.ip_family && !spec.ip_family.empty()) {
    errors.Invalid(
        path.Child("prefix"), spec.prefix->ToString(), "must be of the family " + spec.ip_family);
  }
  const int bits = spec.ip_family == core::kIpv4 ? kIpv4Bits : kIpv6Bits;
  if (spec.prefix_length < 0 || spec.prefix_length > bits) {
    errors.Invalid(path.Child("prefixLength"),
                   std::to_string(spec.prefix_length),
                   "must be between 1 and " + std::to_string(bits) + ", inclusive");
  }
  if (spec.prefix && spec.prefix_length != 0) {
    errors.Forbidden(path.Child("prefixLength"), "must not be given together with prefix");
  }
  if (!spec.prefix && spec.prefix_length == 0) {
    errors.Required(path.Child("prefix"), "prefix or prefixLength must be given");
  }
}

void Validate(const PrefixAllocation& object, meta::FieldErrors& errors) {
  const PrefixAllocationSpec& spec = object.spec;
  const meta::FieldPath path = core::SpecPath();
  if (spec.ip_family.empty()) errors.Required(path.Child("ipFamily"));
  CheckRange(spec, path, errors);
  core::CheckReference(spec.prefix_ref, path.Child("prefixRef"), errors);
  core::CheckSelector(spec.prefix_selector, path.Child("prefixSelector"), errors);
  if (!spec.prefix_ref && !spec.prefix_selector) {
    errors.Required(path.Child("prefixRef"), "prefixRef or prefixSelector must be given");
  }
}

void ValidateUpdate(const PrefixAllocation& now,
                    const PrefixAllocation& before,
                    meta::FieldErrors& errors) {
  const meta::FieldPath spec = core::SpecPath();
  core::CheckImmutable(now.spec.ip_family, before.spec.ip_family, spec.Child("ipFamily"), errors);
  core::CheckImmutable(now.spec.prefix, before.spec.prefix, spec.Child("prefix"), errors);
  core::CheckImmutable(
      now.spec.prefix_length, before.spec.prefix_length, spec.Child("prefixLength"), errors);
  core::CheckSetOnce(now.spec.prefix_ref, before.spec.prefix_ref, spec.Child("prefixRef"), errors);
  core::CheckImmutable(
      now.spec.prefix_selector, before.spec.prefix_selector, spec.Child("prefixSelector"), errors);
}

// The range that was found is the one that was asked for.
void CheckResult(const PrefixAllocation& object, meta::FieldErrors& errors) {
  const meta::FieldPath path = core::StatusPath().Child("prefix");
  const auto& result = object.status.prefix;
  if (object.status.phase != kPhaseAllocated) {
    if (result) errors.Forbidden(path, "must be empty until allocated");
    return;
  }
  if (!object.spec.prefix_ref) {
    errors.Forbidden(core::StatusPath().Child("phase"),
                     "an allocation without spec.prefixRef is not allocated");
  }
  if (!result) {
    errors.Required(path, "must be given when allocated");
    return;
  }
  const PrefixAllocationSpec& spec = object.spec;
  const bool fits =
      spec.prefix ? *result == *spec.prefix
                  : FamilyOf(*result) == spec.ip_family && result->length() == spec.prefix_length;
  if (!fits) errors.Invalid(path, result->ToString(), "must be the range asked for in spec");
}

void ValidateStatusUpdate(const PrefixAllocation& now,
                          const PrefixAllocation& before,
                          meta::FieldErrors& errors) {
  const std::string& old_phase = before.status.phase;
  const bool was_final = old_phase == kPhaseAllocated || old_phase == kPhaseFailed;
  if (was_final && now.status.phase != old_phase) {
    errors.Forbidden(core::StatusPath().Child("phase"), "stays " + old_phase);
  }
  if (was_final && now.status.prefix != before.status.prefix) {
    errors.Forbidden(core::StatusPath().Child("prefix"), core::kFieldIsSetOnce);
  }
  CheckResult(now, errors);
}

std::string PrefixCell(const PrefixAllocation& object) {
  return core::ReferenceCell(object.spec.prefix_ref);
}
std::string RequestCell(const PrefixAllocation& object) {
  if (object.spec.prefix) return object.spec.prefix->ToString();
  return "/" + std::to_string(object.spec.prefix_length);
}
std::string StateCell(const PrefixAllocation& object) {
  return core::OrUnknown(object.status.phase);
}
std::string ResultCell(const PrefixAllocation& object) {
  return core::OrNone(object.status.prefix ? object.status.prefix->ToString() : "");
}

constexpr meta::Column kColumns[] = {
    {.name = "Prefix", .doc = "Where the range is from.", .cell = meta::Hook<&PrefixCell>},
    {.name = "Request", .doc = "What was asked for.", .cell = meta::Hook<&RequestCell>},
    {.name = "State", .doc = "Whether a range was found.", .cell = meta::Hook<&StateCell>},
    {.name = "Result", .doc = "The range that was found.", .cell = meta::Hook<&ResultCell>},
};

}  // namespace

constinit const meta::KindInfo kPrefixAllocationKind = {
    .group = "ipam",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "PrefixAllocation",
    .plural = "prefixallocations",
    .singular = "prefixallocation",
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<PrefixAllocation>(),
    .has_status = true,
    .columns = kColumns,
    .set_defaults = meta::Hook<&SetDefaults>,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::ipam
