// SPDX-License-Identifier: Apache-2.0
// Network: what network interfaces connect to. Networks that name each other are peers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apis/core/references.h"
#include "meta/ip.h"
#include "meta/kind.h"

namespace berth::apis::networking {

struct NetworkPeeringNetworkRef {
  std::string namespace_;
  std::string name;
  bool operator==(const NetworkPeeringNetworkRef&) const = default;
};
BERTH_DESCRIBE(NetworkPeeringNetworkRef,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkPeeringNetworkRef",
               "Names a network, also in another namespace.",
               BERTH_FIELD(namespace_, "namespace", "Its namespace; empty for the same one."),
               BERTH_FIELD(name, "name", "Its name.", {.required = true}))

struct PeeringPrefix {
  std::string name;
  std::optional<meta::IpPrefix> prefix;
  core::LocalObjectReference prefix_ref;
  bool operator==(const PeeringPrefix&) const = default;
};
BERTH_DESCRIBE(PeeringPrefix,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.PeeringPrefix",
               "A range that the peer may reach.",
               BERTH_FIELD(name, "name", "Unique within the network.", {.required = true}),
               BERTH_FIELD(prefix, "prefix", "The range itself."),
               BERTH_FIELD(prefix_ref, "prefixRef", "The Prefix with the range."))

struct NetworkPeering {
  std::string name;
  NetworkPeeringNetworkRef network_ref;
  std::vector<PeeringPrefix> prefixes;
  bool operator==(const NetworkPeering&) const = default;
};
BERTH_DESCRIBE(NetworkPeering,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkPeering",
               "A connection to another network; both sides must want it.",
               BERTH_FIELD(name, "name", "Unique within the network.", {.required = true}),
               BERTH_FIELD(network_ref, "networkRef", "The other network.", {.always = true}),
               BERTH_FIELD(prefixes, "prefixes", "Ranges that the peer may reach; empty: all."))

struct NetworkPeeringClaimRef {
  std::string namespace_;
  std::string name;
  std::string uid;
  bool operator==(const NetworkPeeringClaimRef&) const = default;
};
BERTH_DESCRIBE(NetworkPeeringClaimRef,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkPeeringClaimRef",
               "A network that peers with this one.",
               BERTH_FIELD(namespace_, "namespace", "Its namespace."),
               BERTH_FIELD(name, "name", "Its name.", {.required = true}),
               BERTH_FIELD(uid, "uid", "Its UID."))

struct NetworkSpec {
  std::string provider_id;
  std::vector<NetworkPeering> peerings;
  std::vector<NetworkPeeringClaimRef> incoming_peerings;
  bool operator==(const NetworkSpec&) const = default;
};
BERTH_DESCRIBE(NetworkSpec,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkSpec",
               "The network wanted.",
               BERTH_FIELD(provider_id,
                           "providerID",
                           "Name of the network at its provider. Set once."),
               BERTH_FIELD(peerings,
                           "peerings",
                           "Networks to connect with.",
                           {.merge_key = "name", .retain_keys = true}),
               BERTH_FIELD(incoming_peerings,
                           "incomingPeerings",
                           "Networks that are connected; filled in by the system.",
                           {.merge_key = "name", .retain_keys = true}))

struct PeeringPrefixStatus {
  std::string name;
  std::optional<meta::IpPrefix> prefix;
  bool operator==(const PeeringPrefixStatus&) const = default;
};
BERTH_DESCRIBE(PeeringPrefixStatus,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.PeeringPrefixStatus",
               "A range that the peer may reach, as it is.",
               BERTH_FIELD(name, "name", "Its name in the spec.", {.required = true}),
               BERTH_FIELD(prefix, "prefix", "The range."))

struct NetworkPeeringStatus {
  std::string name;
  std::string state;
  std::vector<PeeringPrefixStatus> prefixes;
  bool operator==(const NetworkPeeringStatus&) const = default;
};
BERTH_DESCRIBE(NetworkPeeringStatus,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkPeeringStatus",
               "A connection to another network, as it is.",
               BERTH_FIELD(name, "name", "Its name in the spec.", {.required = true}),
               BERTH_FIELD(state,
                           "state",
                           "Pending, Ready or Error.",
                           {.values = {"Pending", "Ready", "Error"}}),
               BERTH_FIELD(prefixes, "prefixes", "Ranges that the peer may reach."))

struct NetworkStatus {
  std::string state;
  std::vector<NetworkPeeringStatus> peerings;
  bool operator==(const NetworkStatus&) const = default;
};
BERTH_DESCRIBE(NetworkStatus,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkStatus",
               "The network as its provider reports it.",
               BERTH_FIELD(state,
                           "state",
                           "Pending, Available or Error.",
                           {.values = {"Pending", "Available", "Error"}}),
               BERTH_FIELD(peerings,
                           "peerings",
                           "Connections to other networks.",
                           {.merge_key = "name", .retain_keys = true}))

struct Network {
  meta::ObjectMeta metadata;
  NetworkSpec spec;
  NetworkStatus status;
};
BERTH_DESCRIBE(Network,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.Network",
               "What network interfaces connect to.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The network wanted."),
               BERTH_FIELD(status, "status", "The network as it is; written by the system."))

extern const meta::KindInfo kNetworkKind;
inline const meta::KindInfo& BerthKind(meta::Tag<Network>) { return kNetworkKind; }

}  // namespace berth::apis::networking
