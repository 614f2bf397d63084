// SPDX-License-Identifier: Apache-2.0
#include "apis/ipam/prefix.h"

#include "apis/core/rules.h"
#include "base/strings.h"

namespace berth::apis::ipam {
namespace {

constexpr int kIpv4Bits = 32;
constexpr int kIpv6Bits = 128;

bool IsRoot(const PrefixSpec& spec) { return !spec.parent_ref && !spec.parent_selector; }

void CheckLength(const PrefixSpec& spec, const meta::FieldPath& path, meta::FieldErrors& errors) {
  const int bits = spec.ip_family == core::kIpv4 ? kIpv4Bits : kIpv6Bits;
  if (spec.prefix_length < 0 || spec.prefix_length > bits) {
    errors.Invalid(path.Child("prefixLength"),
                   std::to_string(spec.prefix_length),
                   "must be between 1 and " + std::to_string(bits) + ", inclusive");
  } else if (spec.prefix_length != 0 && spec.prefix &&
             spec.prefix->length() != spec.prefix_length) {
    errors.Invalid(path.Child("prefixLength"),
                   std::to_string(spec.prefix_length),
                   "must agree with prefix " + spec.prefix->ToString());
  }
}

void SetDefaults(Prefix& object) { SetPrefixSpecDefaults(object.spec); }

void Validate(const Prefix& object, meta::FieldErrors& errors) {
  CheckPrefixSpec(object.spec, core::SpecPath(), errors);
}

void ValidateUpdate(const Prefix& now, const Prefix& before, meta::FieldErrors& errors) {
  const meta::FieldPath spec = core::SpecPath();
  core::CheckImmutable(now.spec.ip_family, before.spec.ip_family, spec.Child("ipFamily"), errors);
  core::CheckImmutable(
      now.spec.parent_selector, before.spec.parent_selector, spec.Child("parentSelector"), errors);
  core::CheckSetOnce(now.spec.prefix, before.spec.prefix, spec.Child("prefix"), errors);
  core::CheckSetOnce(
      now.spec.prefix_length, before.spec.prefix_length, spec.Child("prefixLength"), errors);
  if (IsRoot(before.spec)) {
    core::CheckImmutable(
        now.spec.parent_ref, before.spec.parent_ref, spec.Child("parentRef"), errors);
  } else {
    core::CheckSetOnce(
        now.spec.parent_ref, before.spec.parent_ref, spec.Child("parentRef"), errors);
  }
}

void CheckUsed(const Prefix& object, meta::FieldErrors& errors) {
  const auto& used = object.status.used;
  for (size_t i = 0; i < used.size(); ++i) {
    const meta::FieldPath at = core::StatusPath().Child("used").Index(i);
    if (!object.spec.prefix || !object.spec.prefix->Contains(used[i])) {
      errors.Invalid(at, used[i].ToString(), "must lie inside spec.prefix");
    }
    for (size_t j = 0; j < i; ++j) {
      if (!used[i].Overlaps(used[j])) continue;
      errors.Invalid(at, used[i].ToString(), "must not overlap with " + used[j].ToString());
      break;
    }
  }
}

void ValidateStatusUpdate(const Prefix& now, const Prefix& before, meta::FieldErrors& errors) {
  const meta::FieldPath phase = core::StatusPath().Child("phase");
  const bool is_allocated = now.status.phase == kPhaseAllocated;
  if (before.status.phase == kPhaseAllocated && !is_allocated) {
    errors.Forbidden(phase, "an allocated prefix stays allocated");
  }
  if (is_allocated && !now.spec.prefix) {
    errors.Forbidden(phase, "a prefix without spec.prefix is not allocated");
  }
  if (is_allocated && now.spec.parent_selector && !now.spec.parent_ref) {
    errors.Forbidden(phase, "a prefix with a selector and without spec.parentRef is not allocated");
  }
  if (!is_allocated && !now.status.used.empty()) {
    errors.Forbidden(core::StatusPath().Child("used"), "must be empty until allocated");
  }
  CheckUsed(now, errors);
}

std::string PrefixCell(const Prefix& object) {
  return core::OrNone(object.spec.prefix ? object.spec.prefix->ToString() : "");
}
std::string ParentCell(const Prefix& object) { return core::ReferenceCell(object.spec.parent_ref); }
std::string PhaseCell(const Prefix& object) { return core::OrUnknown(object.status.phase); }

constexpr meta::Column kColumns[] = {
    {.name = "Prefix", .doc = "The range.", .cell = meta::Hook<&PrefixCell>},
    {.name = "Parent", .doc = "Where the range is from.", .cell = meta::Hook<&ParentCell>},
    {.name = "Phase", .doc = "Whether the range is reserved.", .cell = meta::Hook<&PhaseCell>},
};

}  // namespace

std::string_view FamilyOf(const meta::IpPrefix& prefix) {
  return meta::IpFamilyName(prefix.family());
}
std::string_view FamilyOf(const meta::IpAddress& address) {
  return meta::IpFamilyName(address.family());
}

void SetPrefixSpecDefaults(PrefixSpec& spec) {
  if (spec.ip_family.empty() && spec.prefix) spec.ip_family = FamilyOf(*spec.prefix);
}

void CheckPrefixSpec(const PrefixSpec& spec,
                     const meta::FieldPath& path,
                     meta::FieldErrors& errors) {
  if (spec.ip_family.empty()) errors.Required(path.Child("ipFamily"));
  if (spec.prefix && !spec.ip_family.empty() && FamilyOf(*spec.prefix) != spec.ip_family) {
    errors.Invalid(
        path.Child("prefix"), spec.prefix->ToString(), "must be of the family " + spec.ip_family);
  }
  core::CheckReference(spec.parent_ref, path.Child("parentRef"), errors);
  core::CheckSelector(spec.parent_selector, path.Child("parentSelector"), errors);
  if (IsRoot(spec)) {
    if (!spec.prefix) {
      errors.Required(path.Child("prefix"),
                      "must be given where neither parentRef nor parentSelector is");
    }
    if (spec.prefix_length != 0) {
      errors.Forbidden(path.Child("prefixLength"),
                       "must not be given without parentRef or parentSelector");
    }
    return;
  }
  if (!spec.prefix && spec.prefix_length == 0) {
    errors.Required(path.Child("prefix"), "prefix or prefixLength must be given");
  }
  CheckLength(spec, path, errors);
}

void CheckPrefixTemplate(const PrefixTemplateSpec& prefix_template,
                         const meta::FieldPath& path,
                         meta::FieldErrors& errors) {
  core::CheckTemplateMetadata(prefix_template.metadata, path.Child("metadata"), errors);
  CheckPrefixSpec(prefix_template.spec, path.Child("spec"), errors);
}

constinit const meta::KindInfo kPrefixKind = {
    .group = "ipam",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "Prefix",
    .plural = "prefixes",
    .singular = "prefix",
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<Prefix>(),
    .has_status = true,
    .columns = kColumns,
    .set_defaults = meta::Hook<&SetDefaults>,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::ipam
