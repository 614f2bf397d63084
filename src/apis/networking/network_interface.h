// SPDX-License-Identifier: Apache-2.0
// NetworkInterface: connects one machine to one network.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apis/core/references.h"
#include "apis/networking/ip_source.h"
#include "apis/networking/virtual_ip.h"
#include "meta/ip.h"
#include "meta/kind.h"

namespace berth::apis::networking {

struct EphemeralVirtualIpSource {
  std::optional<VirtualIpTemplateSpec> virtual_ip_template;
};
BERTH_DESCRIBE(EphemeralVirtualIpSource,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.EphemeralVirtualIPSource",
               "A VirtualIP that is made for the interface.",
               BERTH_FIELD(virtual_ip_template,
                           "virtualIPTemplate",
                           "What the VirtualIP looks like."))

struct VirtualIpSource {
  std::optional<core::LocalObjectReference> virtual_ip_ref;
  std::optional<EphemeralVirtualIpSource> ephemeral;
};
BERTH_DESCRIBE(VirtualIpSource,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.VirtualIPSource",
               "A public address; exactly one of the fields is set.",
               BERTH_FIELD(virtual_ip_ref, "virtualIPRef", "This VirtualIP."),
               BERTH_FIELD(ephemeral, "ephemeral", "A VirtualIP made for the interface."))

struct NetworkInterfaceSpec {
  std::string provider_id;
  core::LocalObjectReference network_ref;
  std::optional<core::LocalUidReference> machine_ref;
  std::vector<std::string> ip_families;
  std::vector<IpSource> ips;
  std::vector<PrefixSource> prefixes;
  std::optional<VirtualIpSource> virtual_ip;
  std::map<std::string, std::string> attributes;
};
BERTH_DESCRIBE(
    NetworkInterfaceSpec,
    "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkInterfaceSpec",
    "How a machine is connected.",
    BERTH_FIELD(provider_id,
                "providerID",
                "Name of the interface where it was made; filled in by the system."),
    BERTH_FIELD(
        network_ref, "networkRef", "The network to connect to. Cannot change.", {.always = true}),
    BERTH_FIELD(machine_ref,
                "machineRef",
                "The machine that holds the interface; filled in by the system."),
    BERTH_FIELD(ip_families,
                "ipFamilies",
                "Families of the addresses, in their order; derived from ips when "
                "absent. Cannot change.",
                {.always = true, .values = {"IPv4", "IPv6"}}),
    BERTH_FIELD(ips, "ips", "The addresses, one for each family.", {.always = true}),
    BERTH_FIELD(prefixes, "prefixes", "Ranges that are routed to the interface."),
    BERTH_FIELD(virtual_ip, "virtualIP", "A public address for the interface."),
    BERTH_FIELD(attributes, "attributes", "Hints for the network's provider. Cannot change."))

// The type of a condition: False, with the reason, while addresses are not to be had.
inline constexpr std::string_view kAddressesReady = "AddressesReady";

struct NetworkInterfaceCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  WallTime last_transition_time;
  bool operator==(const NetworkInterfaceCondition&) const = default;
};
BERTH_DESCRIBE(
    NetworkInterfaceCondition,
    "dev.berth.api.v1alpha1.NetworkInterfaceCondition",
    "One aspect of the interface's condition.",
    BERTH_FIELD(type, "type", "What the condition is about: AddressesReady.", {.required = true}),
    BERTH_FIELD(status,
                "status",
                "True, False or Unknown.",
                {.required = true, .values = {"True", "False", "Unknown"}}),
    BERTH_FIELD(reason, "reason", "One word for programs.", {.always = true}),
    BERTH_FIELD(message, "message", "A sentence for people.", {.always = true}),
    BERTH_FIELD(last_transition_time, "lastTransitionTime", "When status last changed."))

struct NetworkInterfaceStatus {
  std::string state;
  WallTime last_state_transition_time;
  std::vector<meta::IpAddress> ips;
  std::vector<meta::IpPrefix> prefixes;
  std::optional<meta::IpAddress> virtual_ip;
  std::vector<NetworkInterfaceCondition> conditions;
};
BERTH_DESCRIBE(
    NetworkInterfaceStatus,
    "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkInterfaceStatus",
    "The interface as the network's provider reports it.",
    BERTH_FIELD(state,
                "state",
                "Pending, Available or Error.",
                {.values = {"Pending", "Available", "Error"}, .fallback = "\"Pending\""}),
    BERTH_FIELD(last_state_transition_time, "lastStateTransitionTime", "When state last changed."),
    BERTH_FIELD(ips, "ips", "Addresses in use."),
    BERTH_FIELD(prefixes, "prefixes", "Ranges that are routed here."),
    BERTH_FIELD(virtual_ip, "virtualIP", "The public address in use."),
    BERTH_FIELD(conditions, "conditions", "What keeps the interface from its addresses."))

struct NetworkInterface {
  meta::ObjectMeta metadata;
  NetworkInterfaceSpec spec;
  NetworkInterfaceStatus status;
};
BERTH_DESCRIBE(NetworkInterface,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkInterface",
               "Connects a machine to a network.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The connection wanted."),
               BERTH_FIELD(status, "status", "The connection as it is; written by the system."))

struct NetworkInterfaceTemplateSpec {
  meta::ObjectMeta metadata;
  NetworkInterfaceSpec spec;
};
BERTH_DESCRIBE(
    NetworkInterfaceTemplateSpec,
    "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.NetworkInterfaceTemplateSpec",
    "What a generated NetworkInterface looks like.",
    BERTH_FIELD(metadata, "metadata", "Labels and annotations of the NetworkInterface."),
    BERTH_FIELD(spec, "spec", "Spec of the NetworkInterface."))

extern const meta::KindInfo kNetworkInterfaceKind;
inline const meta::KindInfo& BerthKind(meta::Tag<NetworkInterface>) {
  return kNetworkInterfaceKind;
}

// Derives families from addresses and the other way round.
void SetNetworkInterfaceSpecDefaults(NetworkInterfaceSpec& spec);
void CheckNetworkInterfaceSpec(const NetworkInterfaceSpec& spec,
                               const meta::FieldPath& path,
                               meta::FieldErrors& errors);

}  // namespace berth::apis::networking
