// SPDX-License-Identifier: Apache-2.0
// LoadBalancer: spreads connections over the network interfaces of one network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apis/core/references.h"
#include "apis/networking/ip_source.h"
#include "meta/ip.h"
#include "meta/kind.h"
#include "meta/label_selector.h"

namespace berth::apis::networking {

inline constexpr std::string_view kTcp = "TCP";

struct LoadBalancerPort {
  std::optional<std::string> protocol;
  int32_t port = 0;
  std::optional<int32_t> end_port;
  bool operator==(const LoadBalancerPort&) const = default;
};
BERTH_DESCRIBE(LoadBalancerPort,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.LoadBalancerPort",
               "A port, or a range of ports, that is open.",
               BERTH_FIELD(protocol,
                           "protocol",
                           "TCP (also when absent), UDP or SCTP.",
                           {.values = {"TCP", "UDP", "SCTP"}}),
               BERTH_FIELD(port, "port", "The port, or the first one.", {.always = true}),
               BERTH_FIELD(end_port, "endPort", "The last port of a range."))

struct LoadBalancerSpec {
  std::string type;
  std::vector<std::string> ip_families;
  std::vector<IpSource> ips;
  core::LocalObjectReference network_ref;
  std::optional<meta::LabelSelector> network_interface_selector;
  std::vector<LoadBalancerPort> ports;
};
BERTH_DESCRIBE(LoadBalancerSpec,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.LoadBalancerSpec",
               "The load balancer wanted.",
               BERTH_FIELD(type,
                           "type",
                           "Public: reachable from outside. Internal: from its network only.",
                           {.required = true, .values = {"Public", "Internal"}}),
               BERTH_FIELD(ip_families,
                           "ipFamilies",
                           "Families of its addresses.",
                           {.always = true, .values = {"IPv4", "IPv6"}}),
               BERTH_FIELD(ips,
                           "ips",
                           "Addresses of an internal load balancer, one for each family; ignored "
                           "for a public one."),
               BERTH_FIELD(network_ref,
                           "networkRef",
                           "The network of the targets. Cannot change.",
                           {.always = true}),
               BERTH_FIELD(network_interface_selector,
                           "networkInterfaceSelector",
                           "Which network interfaces are targets, by label; absent: someone else "
                           "writes the routing."),
               BERTH_FIELD(ports, "ports", "Ports that are open."))

struct LoadBalancerStatus {
  std::vector<meta::IpAddress> ips;
  bool operator==(const LoadBalancerStatus&) const = default;
};
BERTH_DESCRIBE(LoadBalancerStatus,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.LoadBalancerStatus",
               "The load balancer as its provider reports it.",
               BERTH_FIELD(ips, "ips", "Addresses in use."))

struct LoadBalancer {
  meta::ObjectMeta metadata;
  LoadBalancerSpec spec;
  LoadBalancerStatus status;
};
BERTH_DESCRIBE(LoadBalancer,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.LoadBalancer",
               "Spreads connections over network interfaces.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The load balancer wanted."),
               BERTH_FIELD(status, "status", "The load balancer as it is; written by the system."))

extern const meta::KindInfo kLoadBalancerKind;
inline const meta::KindInfo& BerthKind(meta::Tag<LoadBalancer>) { return kLoadBalancerKind; }

}  // namespace berth::apis::networking
