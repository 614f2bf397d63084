// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/strings.h"
#include "pki/certificate_authority.h"

namespace berth::pki {
namespace {

// The address in its shortest spelling, nullopt for a name.
std::optional<std::string> NormalAddress(std::string_view text) {
  const std::string zero_terminated(text);
  std::array<unsigned char, 16> bytes{};
  std::array<char, INET6_ADDRSTRLEN> out{};
  for (int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, zero_terminated.c_str(), bytes.data()) == 1) {
      return inet_ntop(family, bytes.data(), out.data(), out.size());
    }
  }
  return std::nullopt;
}

void SortUnique(std::vector<std::string>& list) {
  std::ranges::sort(list);
  list.erase(std::ranges::unique(list).begin(), list.end());
}

bool IsWildcard(const std::string& address) { return address == "0.0.0.0" || address == "::"; }

}  // namespace

ServerNames ServerNamesFor(std::string_view listen_host,
                           std::string_view hostname,
                           const std::vector<std::string>& extra) {
  std::vector<std::string> all = {"localhost", "127.0.0.1", "::1"};
  all.emplace_back(listen_host);
  all.emplace_back(hostname);
  all.insert(all.end(), extra.begin(), extra.end());
  ServerNames names;
  for (std::string_view name : all) {
    if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
    if (name.empty()) continue;
    auto address = NormalAddress(name);
    if (!address) names.dns_names.push_back(ToLower(name));
    if (address && !IsWildcard(*address)) names.addresses.push_back(*std::move(address));
  }
  SortUnique(names.dns_names);
  SortUnique(names.addresses);
  return names;
}

std::vector<std::string> HostAddresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (at->ifa_addr->sa_family == AF_INET) {
      const auto* v4 = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
      addresses.emplace_back(inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size()));
    } else if (at->ifa_addr->sa_family == AF_INET6) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(at->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) continue;
      addresses.emplace_back(inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size()));
    }
  }
  freeifaddrs(list);
  SortUnique(addresses);
  return addresses;
}

}  // namespace berth::pki
