// SPDX-License-Identifier: Apache-2.0
#include "apis/networking/virtual_ip.h"

#include "apis/core/category.h"
#include "apis/core/rules.h"

namespace berth::apis::networking {
namespace {

void Validate(const VirtualIp& object, meta::FieldErrors& errors) {
  core::CheckReference(object.spec.target_ref, core::SpecPath().Child("targetRef"), errors);
}

void ValidateUpdate(const VirtualIp& now, const VirtualIp& before, meta::FieldErrors& errors) {
  const meta::FieldPath spec = core::SpecPath();
  core::CheckImmutable(now.spec.type, before.spec.type, spec.Child("type"), errors);
  core::CheckImmutable(now.spec.ip_family, before.spec.ip_family, spec.Child("ipFamily"), errors);
}

void ValidateStatusUpdate(const VirtualIp& now,
                          const VirtualIp& /*before*/,
                          meta::FieldErrors& errors) {
  if (now.status.ip && meta::IpFamilyName(now.status.ip->family()) != now.spec.ip_family) {
    errors.Invalid(core::StatusPath().Child("ip"),
                   now.status.ip->ToString(),
                   "must be of the family " + now.spec.ip_family);
  }
}

std::string RefuseDelete(const VirtualIp& object) {
  if (!object.spec.target_ref) return "";
  return "still used by networkinterface " + object.spec.target_ref->name +
         " (spec.targetRef is set)";
}

std::string IpCell(const VirtualIp& object) {
  return object.status.ip ? object.status.ip->ToString() : "None";
}

constexpr meta::Column kColumns[] = {
    {.name = "ExternalIP", .doc = "The address.", .cell = meta::Hook<&IpCell>},
};
constexpr std::string_view kShortNames[] = {"vip"};

}  // namespace

constinit const meta::KindInfo kVirtualIpKind = {
    .group = "networking",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "VirtualIP",
    .plural = "virtualips",
    .singular = "virtualip",
    .short_names = kShortNames,
    .categories = core::kShownByAll,
    .scope = meta::Scope::kNamespaced,
    .name_rule = meta::NameRule::kDnsLabel,
    .type = &meta::TypeInfoOf<VirtualIp>(),
    .has_status = true,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
    .refuse_delete = meta::Hook<&RefuseDelete>,
};

}  // namespace berth::apis::networking
