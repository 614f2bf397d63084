// SPDX-License-Identifier: Apache-2.0
// VirtualIP: a public address that can move from one network interface to another.
#pragma once

#include <optional>
#include <string>

#include "apis/core/references.h"
#include "meta/ip.h"
#include "meta/kind.h"

namespace berth::apis::networking {

inline constexpr std::string_view kPublic = "Public";
inline constexpr std::string_view kInternal = "Internal";  // LoadBalancer only
inline constexpr std::string_view kReclaimRetain = "Retain";
inline constexpr std::string_view kReclaimDelete = "Delete";

struct VirtualIpSpec {
  std::string type;
  std::string ip_family;
  std::optional<core::LocalUidReference> target_ref;
  bool operator==(const VirtualIpSpec&) const = default;
};
BERTH_DESCRIBE(VirtualIpSpec,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.VirtualIPSpec",
               "Which kind of address is wanted, and who uses it.",
               BERTH_FIELD(type, "type", "Public.", {.required = true, .values = {"Public"}}),
               BERTH_FIELD(ip_family,
                           "ipFamily",
                           "IPv4 or IPv6.",
                           {.required = true, .values = {"IPv4", "IPv6"}}),
               BERTH_FIELD(target_ref,
                           "targetRef",
                           "The NetworkInterface that uses the address. While it is set, the "
                           "VirtualIP cannot be deleted."))

struct VirtualIpStatus {
  std::optional<meta::IpAddress> ip;
};
BERTH_DESCRIBE(VirtualIpStatus,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.VirtualIPStatus",
               "The address that was found.",
               BERTH_FIELD(ip, "ip", "The address."))

struct VirtualIp {
  meta::ObjectMeta metadata;
  VirtualIpSpec spec;
  VirtualIpStatus status;
};
BERTH_DESCRIBE(VirtualIp,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.VirtualIP",
               "A public address that can move between network interfaces.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The address wanted."),
               BERTH_FIELD(status, "status", "The address as it is; written by the system."))

struct EphemeralVirtualIpSpec {
  std::string type;
  std::string ip_family;
  std::optional<core::LocalUidReference> target_ref;
  std::string reclaim_policy;
};
BERTH_DESCRIBE(EphemeralVirtualIpSpec,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.EphemeralVirtualIPSpec",
               "A VirtualIP that is made for a network interface.",
               BERTH_FIELD(type, "type", "Public.", {.required = true, .values = {"Public"}}),
               BERTH_FIELD(ip_family,
                           "ipFamily",
                           "IPv4 or IPv6.",
                           {.required = true, .values = {"IPv4", "IPv6"}}),
               BERTH_FIELD(target_ref, "targetRef", "Filled in by the system."),
               BERTH_FIELD(reclaim_policy,
                           "reclaimPolicy",
                           "Delete (also when empty): the VirtualIP goes with the interface. "
                           "Retain: it stays.",
                           {.values = {"Retain", "Delete"}}))

struct VirtualIpTemplateSpec {
  meta::ObjectMeta metadata;
  EphemeralVirtualIpSpec spec;
};
BERTH_DESCRIBE(VirtualIpTemplateSpec,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.VirtualIPTemplateSpec",
               "What a generated VirtualIP looks like.",
               BERTH_FIELD(metadata, "metadata", "Labels and annotations of the VirtualIP."),
               BERTH_FIELD(spec, "spec", "Spec of the VirtualIP."))

extern const meta::KindInfo kVirtualIpKind;
inline const meta::KindInfo& BerthKind(meta::Tag<VirtualIp>) { return kVirtualIpKind; }

}  // namespace berth::apis::networking
