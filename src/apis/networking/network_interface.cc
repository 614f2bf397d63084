// SPDX-License-Identifier: Apache-2.0
#include "apis/networking/network_interface.h"

#include "apis/core/category.h"
#include "apis/core/rules.h"
#include "base/strings.h"

namespace berth::apis::networking {
namespace {

void SetDefaults(NetworkInterface& object) { SetNetworkInterfaceSpecDefaults(object.spec); }

void CheckVirtualIp(const VirtualIpSource& source,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors) {
  core::CheckSources(int{source.virtual_ip_ref.has_value()} + int{source.ephemeral.has_value()},
                     path,
                     "virtualIPRef or ephemeral",
                     errors);
  if (source.virtual_ip_ref) {
    core::CheckLabelName(
        source.virtual_ip_ref->name, path.Child("virtualIPRef").Child("name"), errors);
  }
  if (!source.ephemeral) return;
  const meta::FieldPath at = path.Child("ephemeral").Child("virtualIPTemplate");
  if (!source.ephemeral->virtual_ip_template) {
    errors.Required(at);
    return;
  }
  const VirtualIpTemplateSpec& from = *source.ephemeral->virtual_ip_template;
  core::CheckTemplateMetadata(from.metadata, at.Child("metadata"), errors);
  core::CheckReference(from.spec.target_ref, at.Child("spec").Child("targetRef"), errors);
}

void Validate(const NetworkInterface& object, meta::FieldErrors& errors) {
  CheckNetworkInterfaceSpec(object.spec, core::SpecPath(), errors);
}

void ValidateUpdate(const NetworkInterface& now,
                    const NetworkInterface& before,
                    meta::FieldErrors& errors) {
  const meta::FieldPath spec = core::SpecPath();
  core::CheckImmutable(
      now.spec.network_ref, before.spec.network_ref, spec.Child("networkRef"), errors);
  core::CheckImmutable(
      now.spec.ip_families, before.spec.ip_families, spec.Child("ipFamilies"), errors);
  core::CheckImmutable(
      now.spec.attributes, before.spec.attributes, spec.Child("attributes"), errors);
}

std::string NetworkCell(const NetworkInterface& object) { return object.spec.network_ref.name; }
std::string MachineCell(const NetworkInterface& object) {
  return core::OrNone(object.spec.machine_ref ? object.spec.machine_ref->name : "");
}
std::string IpsCell(const NetworkInterface& object) {
  return core::OrNone(JoinIps(object.status.ips));
}
std::string PrefixesCell(const NetworkInterface& object) {
  std::vector<std::string> texts;
  for (const meta::IpPrefix& prefix : object.status.prefixes) texts.push_back(prefix.ToString());
  return core::OrNone(Join(texts, ","));
}
std::string VirtualIpCell(const NetworkInterface& object) {
  return core::OrNone(object.status.virtual_ip ? object.status.virtual_ip->ToString() : "");
}
std::string StateCell(const NetworkInterface& object) {
  return core::OrUnknown(object.status.state);
}

constexpr meta::Column kColumns[] = {
    {.name = "Network", .doc = "Network of the interface.", .cell = meta::Hook<&NetworkCell>},
    {.name = "Machine", .doc = "Machine with the interface.", .cell = meta::Hook<&MachineCell>},
    {.name = "IPs", .doc = "Addresses in use.", .cell = meta::Hook<&IpsCell>},
    {.name = "Prefixes", .doc = "Ranges routed to it.", .cell = meta::Hook<&PrefixesCell>},
    {.name = "VirtualIP", .doc = "Public address in use.", .cell = meta::Hook<&VirtualIpCell>},
    {.name = "State", .doc = "State of the interface.", .cell = meta::Hook<&StateCell>},
};
constexpr std::string_view kShortNames[] = {"nic"};
constexpr std::string_view kSelectors[] = {"spec.networkRef.name", "spec.machineRef.uid"};

}  // namespace

void SetNetworkInterfaceSpecDefaults(NetworkInterfaceSpec& spec) {
  if (spec.ip_families.empty()) spec.ip_families = FamiliesOf(spec.ips);
  SetIpSourceDefaults(spec.ips, spec.ip_families);
  for (PrefixSource& prefix : spec.prefixes) {
    if (prefix.ephemeral && prefix.ephemeral->prefix_template) {
      ipam::SetPrefixSpecDefaults(prefix.ephemeral->prefix_template->spec);
    }
  }
}

void CheckNetworkInterfaceSpec(const NetworkInterfaceSpec& spec,
                               const meta::FieldPath& path,
                               meta::FieldErrors& errors) {
  core::CheckReference(spec.network_ref, path.Child("networkRef"), errors);
  if (spec.machine_ref && !spec.machine_ref->name.empty()) {
    core::CheckLabelName(spec.machine_ref->name, path.Child("machineRef").Child("name"), errors);
  }
  CheckIpFamilies(spec.ip_families, path.Child("ipFamilies"), errors);
  CheckIpSources(spec.ips, spec.ip_families, path.Child("ips"), errors);
  CheckPrefixSources(spec.prefixes, path.Child("prefixes"), errors);
  if (spec.virtual_ip) CheckVirtualIp(*spec.virtual_ip, path.Child("virtualIP"), errors);
}

constinit const meta::KindInfo kNetworkInterfaceKind = {
    .group = "networking",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "NetworkInterface",
    .plural = "networkinterfaces",
    .singular = "networkinterface",
    .short_names = kShortNames,
    .categories = core::kShownByAll,
    .scope = meta::Scope::kNamespaced,
    .type = &meta::TypeInfoOf<NetworkInterface>(),
    .has_status = true,
    .field_selectors = kSelectors,
    .columns = kColumns,
    .set_defaults = meta::Hook<&SetDefaults>,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
};

}  // namespace berth::apis::networking
