// SPDX-License-Identifier: Apache-2.0
// NetworkPolicy: which traffic network interfaces may have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apis/core/object_selector.h"
#include "apis/core/references.h"
#include "meta/ip.h"
#include "meta/kind.h"
#include "meta/label_selector.h"

namespace berth::apis::networking {

inline constexpr std::string_view kPolicyIngress = "Ingress";
inline constexpr std::string_view kPolicyEgress = "Egress";

struct IpBlock {
  meta::IpPrefix cidr;
  std::vector<meta::IpPrefix> except;
  bool operator==(const IpBlock&) const = default;
};
BERTH_DESCRIBE(IpBlock,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.IPBlock",
               "A range of addresses with holes.",
               BERTH_FIELD(cidr, "cidr", "The range.", {.always = true}),
               BERTH_FIELD(except, "except", "Parts of the range that are left out."))

struct NetworkPolicyPeer {
  std::optional<core::ObjectSelector> object_selector;
  std::optional<IpBlock> ip_block;
  bool operator==(const NetworkPolicyPeer&) const = default;
};
BERTH_DESCRIBE(NetworkPolicyPeer,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkPolicyPeer",
               "The other side of traffic; exactly one of the fields is set.",
               BERTH_FIELD(object_selector,
                           "objectSelector",
                           "NetworkInterfaces, LoadBalancers or VirtualIPs by label."),
               BERTH_FIELD(ip_block, "ipBlock", "A range of addresses."))

struct NetworkPolicyPort {
  std::optional<std::string> protocol;
  int32_t port = 0;
  std::optional<int32_t> end_port;
  bool operator==(const NetworkPolicyPort&) const = default;
};
BERTH_DESCRIBE(NetworkPolicyPort,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkPolicyPort",
               "A port, or a range of ports.",
               BERTH_FIELD(protocol,
                           "protocol",
                           "TCP (also when absent), UDP or SCTP.",
                           {.values = {"TCP", "UDP", "SCTP"}}),
               BERTH_FIELD(port, "port", "The port, or the first one; absent: all ports."),
               BERTH_FIELD(end_port, "endPort", "The last port of a range."))

struct NetworkPolicyIngressRule {
  std::vector<NetworkPolicyPort> ports;
  std::vector<NetworkPolicyPeer> from;
  bool operator==(const NetworkPolicyIngressRule&) const = default;
};
BERTH_DESCRIBE(NetworkPolicyIngressRule,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkPolicyIngressRule",
               "Traffic that may come in.",
               BERTH_FIELD(ports, "ports", "To these ports; empty: to all."),
               BERTH_FIELD(from, "from", "From these peers; empty: from everywhere."))

struct NetworkPolicyEgressRule {
  std::vector<NetworkPolicyPort> ports;
  std::vector<NetworkPolicyPeer> to;
  bool operator==(const NetworkPolicyEgressRule&) const = default;
};
BERTH_DESCRIBE(NetworkPolicyEgressRule,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkPolicyEgressRule",
               "Traffic that may go out.",
               BERTH_FIELD(ports, "ports", "To these ports; empty: to all."),
               BERTH_FIELD(to, "to", "To these peers; empty: to everywhere."))

struct NetworkPolicySpec {
  core::LocalObjectReference network_ref;
  meta::LabelSelector network_interface_selector;
  std::vector<NetworkPolicyIngressRule> ingress;
  std::vector<NetworkPolicyEgressRule> egress;
  std::vector<std::string> policy_types;
  bool operator==(const NetworkPolicySpec&) const = default;
};
BERTH_DESCRIBE(NetworkPolicySpec,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkPolicySpec",
               "Whose traffic is limited, and to what.",
               BERTH_FIELD(network_ref,
                           "networkRef",
                           "The network of the interfaces. Cannot change.",
                           {.always = true}),
               BERTH_FIELD(network_interface_selector,
                           "networkInterfaceSelector",
                           "The interfaces, by label; empty selects all of the network.",
                           {.always = true}),
               BERTH_FIELD(ingress, "ingress", "What may come in; nothing else does."),
               BERTH_FIELD(egress, "egress", "What may go out; nothing else does."),
               BERTH_FIELD(policy_types,
                           "policyTypes",
                           "Directions that are limited; those with rules always are.",
                           {.values = {"Ingress", "Egress"}}))

struct NetworkPolicyCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  int64_t observed_generation = 0;
  WallTime last_transition_time;
  bool operator==(const NetworkPolicyCondition&) const = default;
};
BERTH_DESCRIBE(NetworkPolicyCondition,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkPolicyCondition",
               "One aspect of the policy's condition.",
               BERTH_FIELD(type, "type", "What the condition is about.", {.required = true}),
               BERTH_FIELD(status,
                           "status",
                           "True, False or Unknown.",
                           {.required = true, .values = {"True", "False", "Unknown"}}),
               BERTH_FIELD(reason, "reason", "One word for programs.", {.always = true}),
               BERTH_FIELD(message, "message", "A sentence for people.", {.always = true}),
               BERTH_FIELD(observed_generation,
                           "observedGeneration",
                           "Generation of the policy that the condition speaks of."),
               BERTH_FIELD(last_transition_time, "lastTransitionTime", "When status last changed."))

struct NetworkPolicyStatus {
  std::vector<NetworkPolicyCondition> conditions;
  bool operator==(const NetworkPolicyStatus&) const = default;
};
BERTH_DESCRIBE(NetworkPolicyStatus,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkPolicyStatus",
               "The policy as its provider reports it.",
               BERTH_FIELD(conditions, "conditions", "More about the policy, aspect by aspect."))

struct NetworkPolicy {
  meta::ObjectMeta metadata;
  NetworkPolicySpec spec;
  NetworkPolicyStatus status;
};
BERTH_DESCRIBE(NetworkPolicy,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkPolicy",
               "Which traffic network interfaces may have.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The policy wanted."),
               BERTH_FIELD(status, "status", "The policy as it is; written by the system."))

extern const meta::KindInfo kNetworkPolicyKind;
inline const meta::KindInfo& BerthKind(meta::Tag<NetworkPolicy>) { return kNetworkPolicyKind; }

}  // namespace berth::apis::networking
