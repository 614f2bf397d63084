// SPDX-License-Identifier: Apache-2.0
// Where a network interface or load balancer gets its addresses from: given, or made for it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apis/ipam/prefix.h"
#include "meta/ip.h"

namespace berth::apis::networking {

struct EphemeralPrefixSource {
  std::optional<ipam::PrefixTemplateSpec> prefix_template;
};
BERTH_DESCRIBE(EphemeralPrefixSource,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.EphemeralPrefixSource",
               "A Prefix that is made for its user and goes with it.",
               BERTH_FIELD(prefix_template, "prefixTemplate", "What the Prefix looks like."))

struct IpSource {
  std::optional<meta::IpAddress> value;
  std::optional<EphemeralPrefixSource> ephemeral;
};
BERTH_DESCRIBE(IpSource,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.IPSource",
               "One IP address; exactly one of the fields is set.",
               BERTH_FIELD(value, "value", "This address."),
               BERTH_FIELD(ephemeral, "ephemeral", "An address out of a Prefix made for it."))

struct PrefixSource {
  std::optional<meta::IpPrefix> value;
  std::optional<EphemeralPrefixSource> ephemeral;
};
BERTH_DESCRIBE(PrefixSource,
               "com.github.ironcore-dev.ironcore.api.networking.v1alpha1.PrefixSource",
               "One range of IP addresses; exactly one of the fields is set.",
               BERTH_FIELD(value, "value", "This range."),
               BERTH_FIELD(ephemeral, "ephemeral", "A range out of a Prefix made for it."))

// Families: each IPv4 or IPv6, none twice, at least one.
void CheckIpFamilies(std::span<const std::string> families,
                     const meta::FieldPath& path,
                     meta::FieldErrors& errors);

// Gives ephemeral prefixes the family at the same index (the longest single-address length where
// neither prefix nor length is given).
void SetIpSourceDefaults(std::vector<IpSource>& ips, const std::vector<std::string>& families);
// The families that the sources themselves show; empty as soon as one shows none.
std::vector<std::string> FamiliesOf(const std::vector<IpSource>& ips);

// Exactly one source each, of the family at the same index; ephemeral prefixes are one address.
void CheckIpSources(std::span<const IpSource> ips,
                    std::span<const std::string> families,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors);
void CheckPrefixSources(std::span<const PrefixSource> prefixes,
                        const meta::FieldPath& path,
                        meta::FieldErrors& errors);

// "10.0.0.1,2001:db8::1" for tables.
std::string JoinIps(std::span<const meta::IpAddress> ips);

}  // namespace berth::apis::networking
