// SPDX-License-Identifier: Apache-2.0
// NATGateway: lets network interfaces without a public address reach the outside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apis/core/references.h"
#include "meta/ip.h"
#include "meta/kind.h"

namespace berth::apis::networking {

struct NatGatewaySpec {
  std::string type;
  std::string ip_family;
  core::LocalObjectReference network_ref;
  std::optional<int32_t> ports_per_network_interface;
  bool operator==(const NatGatewaySpec&) const = default;
};
BERTH_DESCRIBE(NatGatewaySpec,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NATGatewaySpec",
               "The gateway wanted.",
               BERTH_FIELD(type, "type", "Public.", {.required = true, .values = {"Public"}}),
               BERTH_FIELD(ip_family,
                           "ipFamily",
                           "IPv4 or IPv6.",
                           {.required = true, .values = {"IPv4", "IPv6"}}),
               BERTH_FIELD(network_ref,
                           "networkRef",
                           "The network that reaches the outside. Cannot change.",
                           {.always = true}),
               BERTH_FIELD(ports_per_network_interface,
                           "portsPerNetworkInterface",
                           "How many ports each network interface gets; a power of two.",
                           {.fallback = "2048"}))

struct NatGatewayStatus {
  std::vector<meta::IpAddress> ips;
  bool operator==(const NatGatewayStatus&) const = default;
};
BERTH_DESCRIBE(NatGatewayStatus,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NATGatewayStatus",
               "The gateway as its provider reports it.",
               BERTH_FIELD(ips, "ips", "Addresses in use."))

struct NatGateway {
  meta::ObjectMeta metadata;
  NatGatewaySpec spec;
  NatGatewayStatus status;
};
BERTH_DESCRIBE(NatGateway,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NATGateway",
               "Lets network interfaces without a public address reach the outside.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The gateway wanted."),
               BERTH_FIELD(status, "status", "The gateway as it is; written by the system."))

extern const meta::KindInfo kNatGatewayKind;
inline const meta::KindInfo& BerthKind(meta::Tag<NatGateway>) { return kNatGatewayKind; }

}  // namespace berth::apis::networking
