// SPDX-License-Identifier: Apache-2.0
#include "image/registry/address_rules.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "meta/ip.h"

namespace berth::image {
namespace {

// RFC 6890 and its successors, as far as something may answer there.
constexpr std::array<std::string_view, 21> kNotPublic = {
    "0.0.0.0/8",       "10.0.0.0/8",     "100.64.0.0/10", "127.0.0.0/8",    "169.254.0.0/16",
    "172.16.0.0/12",   "192.0.0.0/24",   "192.0.2.0/24",  "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",   "240.0.0.0/4",    "::/96",
    "::ffff:0:0/96",   "64:ff9b::/32",   "2002::/16",     "fc00::/7",       "fe80::/10",
    "ff00::/8"};

}  // namespace

bool IsPublicAddress(std::string_view address) {
  const auto parsed = meta::IpAddress::Parse(address);
  if (!parsed.has_value()) return false;
  return std::ranges::none_of(kNotPublic, [&parsed](std::string_view text) {
    const auto prefix = meta::IpPrefix::Parse(text);
    return !prefix.has_value() || prefix->Contains(*parsed);
  });
}

Status AddressRules::Check(std::string_view host, std::string_view address) const {
  if (trusted.contains(host) || IsPublicAddress(address)) return OkStatus();
  return Forbidden("registry " + Quote(host) + " has the address " + std::string(address) +
                   " of a private network, which this host's --registry does not name");
}

}  // namespace berth::image
