// SPDX-License-Identifier: Apache-2.0
#include "apis/networking/nat_gateway.h"

#include <bit>

#include "apis/core/category.h"
#include "apis/core/rules.h"
#include "apis/networking/ip_source.h"

namespace berth::apis::networking {
namespace {

constexpr int32_t kPortsMax = 65536;

void Validate(const NatGateway& object, meta::FieldErrors& errors) {
  const meta::FieldPath spec = core::SpecPath();
  core::CheckReference(object.spec.network_ref, spec.Child("networkRef"), errors);
  if (!object.spec.ports_per_network_interface) return;
  const int32_t ports = *object.spec.ports_per_network_interface;
  if (ports < 1 || ports > kPortsMax || !std::has_single_bit(static_cast<uint32_t>(ports))) {
    errors.Invalid(spec.Child("portsPerNetworkInterface"),
                   std::to_string(ports),
                   "must be a power of two between 1 and " + std::to_string(kPortsMax));
  }
}

void ValidateUpdate(const NatGateway& now, const NatGateway& before, meta::FieldErrors& errors) {
  core::CheckImmutable(
      now.spec.network_ref, before.spec.network_ref, core::SpecPath().Child("networkRef"), errors);
}

std::string IpsCell(const NatGateway& object) { return core::OrNone(JoinIps(object.status.ips)); }

constexpr meta::Column kColumns[] = {
    {.name = "IPs", .doc = "Addresses in use.", .cell = meta::Hook<&IpsCell>},
};
constexpr std::string_view kShortNames[] = {"ngw"};

}  // namespace

constinit const meta::KindInfo kNatGatewayKind = {
    .group = "networking",
    .naming = meta::GroupNaming::kDomain,
    .version = "v1alpha1",
    .kind = "NATGateway",
    .plural = "natgateways",
    .singular = "natgateway",
    .short_names = kShortNames,
    .categories = core::kShownByAll,
    .scope = meta::Scope::kNamespaced,
    .name_rule = meta::NameRule::kDnsLabel,
    .type = &meta::TypeInfoOf<NatGateway>(),
    .has_status = true,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
};

}  // namespace berth::apis::networking
