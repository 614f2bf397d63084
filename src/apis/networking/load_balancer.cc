// SPDX-License-Identifier: Apache-2.0
#include "apis/networking/load_balancer.h"

#include "apis/core/category.h"
#include "apis/core/rules.h"
#include "apis/networking/ports.h"
#include "apis/networking/virtual_ip.h"

namespace berth::apis::networking {
namespace {

void SetDefaults(LoadBalancer& object) {
  if (object.spec.type != kInternal) object.spec.ips.clear();
  SetIpSourceDefaults(object.spec.ips, object.spec.ip_families);
}

std::string_view ProtocolOf(const LoadBalancerPort& port) {
  return port.protocol ? std::string_view(*port.protocol) : kTcp;
}

bool Overlap(const LoadBalancerPort& a, const LoadBalancerPort& b) {
  return ProtocolOf(a) == ProtocolOf(b) && a.port <= b.end_port.value_or(b.port) &&
         b.port <= a.end_port.value_or(a.port);
}

void CheckPorts(const std::vector<LoadBalancerPort>& ports,
                const meta::FieldPath& path,
                meta::FieldErrors& errors) {
  for (size_t i = 0; i < ports.size(); ++i) {
    CheckPortRange(ports[i].port, ports[i].end_port, path.Index(i), errors);
    for (size_t j = 0; j < i; ++j) {
      if (!Overlap(ports[i], ports[j])) continue;
      errors.Forbidden(path.Index(i), "overlaps with " + path.Index(j).text());
      break;
    }
  }
}

void Validate(const LoadBalancer& object, meta::FieldErrors& errors) {
  const LoadBalancerSpec& spec = object.spec;
  const meta::FieldPath path = core::SpecPath();
  CheckIpFamilies(spec.ip_families, path.Child("ipFamilies"), errors);
  if (spec.type == kInternal) {
    CheckIpSources(spec.ips, spec.ip_families, path.Child("ips"), errors);
  }
  core::CheckReference(spec.network_ref, path.Child("networkRef"), errors);
  core::CheckSelector(
      spec.network_interface_selector, path.Child("networkInterfaceSelector"), errors);
  CheckPorts(spec.ports, path.Child("ports"), errors);
}

void ValidateUpdate(const LoadBalancer& now,
                    const LoadBalancer& before,
                    meta::FieldErrors& errors) {
  core::CheckImmutable(
      now.spec.network_ref, before.spec.network_ref, core::SpecPath().Child("networkRef"), errors);
}

std::string IpsCell(const LoadBalancer& object) { return core::OrNone(JoinIps(object.status.ips)); }

constexpr meta::Column kColumns[] = {
    {.name = "IPs", .doc = "Addresses in use.", .cell = meta::Hook<&IpsCell>},
};
constexpr std::string_view kShortNames[] = {"lb"};

}  // namespace

constinit const meta::KindInfo kLoadBalancerKind = {
    .group = "networking",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "LoadBalancer",
    .plural = "loadbalancers",
    .singular = "loadbalancer",
    .short_names = kShortNames,
    .categories = core::kShownByAll,
    .scope = meta::Scope::kNamespaced,
    .name_rule = meta::NameRule::kDnsLabel,
    .type = &meta::TypeInfoOf<LoadBalancer>(),
    .has_status = true,
    .columns = kColumns,
    .set_defaults = meta::Hook<&SetDefaults>,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
};

}  // namespace berth::apis::networking
