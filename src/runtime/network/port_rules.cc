// SPDX-License-Identifier: Apache-2.0
#include "runtime/network/port_rules.h"

#include <fmt/core.h>

#include <vector>

#include "base/check.h"
#include "base/strings.h"

namespace berth::runtime {
namespace {

// Before anything else that looks at bridged frames.
constexpr int kPriority = -300;

std::string SetOf(const std::vector<std::string>& values) {
  return "{ " + Join(values, ", ") + " }";
}

std::vector<std::string> Texts(std::span<const meta::IpAddress> addresses) {
  std::vector<std::string> texts;
  for (const meta::IpAddress& address : addresses) texts.push_back(address.ToString());
  return texts;
}

// The target of an announcement is compared as a number: what this nft has no name for.
std::vector<std::string> Numbers(std::span<const meta::IpAddress> addresses) {
  std::vector<std::string> numbers;
  for (const meta::IpAddress& address : addresses) {
    std::string bytes;
    PutAddress(bytes, address);
    numbers.push_back("0x" + HexEncode(bytes));
  }
  return numbers;
}

std::string RulesOf4(const NetworkPort& port) {
  if (port.ips4.empty()) return "";
  const std::string mac = ToText(port.mac);
  const std::string ips = SetOf(Texts(port.ips4));
  const std::string arp =
      "    ether type arp arp htype 1 arp ptype 0x0800 arp hlen 6 arp plen 4 arp saddr ether " +
      mac;
  return arp + " arp operation { request, reply } arp saddr ip " + ips + " accept\n" +  //
         arp + " arp operation request arp saddr ip 0.0.0.0 accept\n" +                 // a probe
         "    ether type ip udp sport 67 drop\n"
         "    ether type ip udp dport 67 drop\n"
         "    ether type ip ip saddr " +
         ips + " accept\n";
}

std::string RulesOf6(const NetworkPort& port) {
  if (port.ips6.empty()) return "";
  std::vector<meta::IpAddress> own = port.ips6;
  own.push_back(LinkLocalOf(port.mac));
  return "    ether type ip6 icmpv6 type { nd-router-advert, nd-redirect } drop\n"
         "    ether type ip6 udp sport 547 drop\n"
         "    ether type ip6 udp dport 547 drop\n"
         "    ether type ip6 ip6 saddr fe80::/10 exthdr frag exists drop\n"
         "    ether type ip6 icmpv6 type nd-neighbor-advert @th,64,128 != " +
         SetOf(Numbers(own)) +
         " drop\n"
         "    ether type ip6 ip6 saddr :: icmpv6 type { nd-neighbor-solicit, mld-listener-report, "
         "mld2-listener-report } accept\n"
         "    ether type ip6 ip6 saddr " +
         SetOf(Texts(own)) + " accept\n";
}

std::string ChainOf(const NetworkPort& port) {
  return "  chain " + port.tap + " {\n    ether saddr != " + ToText(port.mac) + " drop\n" +
         RulesOf4(port) + RulesOf6(port) + "    drop\n  }\n";
}

}  // namespace

std::string PortRules(const NetworkOwner& owner, std::span<const NetworkPort> ports) {
  CHECK(ports.size() <= kPortsMax) << ports.size() << " ports";
  const std::string table = "table bridge " + owner.table();
  std::string text = "add " + table + "\ndelete " + table + "\n";
  if (ports.empty()) return text;
  std::vector<std::string> taps;
  std::vector<std::string> verdicts;
  text += table + " {\n";
  for (const NetworkPort& port : ports) {
    text += ChainOf(port);
    taps.push_back('"' + port.tap + '"');
    verdicts.push_back('"' + port.tap + "\" : goto " + port.tap);
  }
  text += "  set taps { type ifname; elements = " + SetOf(taps) + "; }\n";
  text += "  map ports { type ifname : verdict; elements = " + SetOf(verdicts) + "; }\n";
  text += fmt::format(
      "  chain from_guests {{\n"
      "    type filter hook prerouting priority {0}; policy accept;\n"
      "    iifname vmap @ports\n"
      "  }}\n"
      "  chain to_host {{\n"
      "    type filter hook input priority {0}; policy accept;\n"
      "    iifname @taps drop\n"
      "  }}\n"
      "}}\n",
      kPriority);
  return text;
}

}  // namespace berth::runtime
