// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of NetworkInterface and VirtualIP.
#include "apis/networking/network_interface.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::networking {
namespace {

using testing::CellOf;
using testing::Parse;

NetworkInterface Valid() {
  return Parse<NetworkInterface>(R"({
    "metadata": {"name": "nic", "namespace": "ns"},
    "spec": {
      "networkRef": {"name": "net"}, "machineRef": {"name": "m", "uid": "1"},
      "ipFamilies": ["IPv4", "IPv6"],
      "ips": [
        {"value": "10.0.0.1"},
        {"ephemeral": {"prefixTemplate": {"metadata": {"labels": {"a": "b"}},
          "spec": {"parentRef": {"name": "p"}}}}}],
      "prefixes": [{"value": "10.1.0.0/24"},
        {"ephemeral": {"prefixTemplate": {"spec": {
          "ipFamily": "IPv4", "prefixLength": 28, "parentRef": {"name": "p"}}}}}],
      "virtualIP": {"virtualIPRef": {"name": "vip"}}}})");
}

ipam::PrefixSpec& EphemeralIp(NetworkInterface& nic) {
  return nic.spec.ips[1].ephemeral->prefix_template->spec;
}

EphemeralVirtualIpSource Made(std::string reclaim_policy) {
  EphemeralVirtualIpSource source;
  source.virtual_ip_template.emplace();
  source.virtual_ip_template->spec = {
      .type = "Public", .ip_family = "IPv4", .reclaim_policy = std::move(reclaim_policy)};
  return source;
}

TEST(NetworkInterface, FillsInFamiliesAndLengths) {
  NetworkInterface nic = testing::WithDefaults(Valid());
  EXPECT_EQ(EphemeralIp(nic).ip_family, "IPv6");
  EXPECT_EQ(EphemeralIp(nic).prefix_length, 128);
  EXPECT_EQ(nic.status.state, "Pending");

  nic = Valid();
  nic.spec.ip_families.clear();
  EphemeralIp(nic).ip_family = "IPv4";
  nic = testing::WithDefaults(nic);
  EXPECT_EQ(nic.spec.ip_families, (std::vector<std::string>{"IPv4", "IPv4"}));
  EXPECT_EQ(EphemeralIp(nic).prefix_length, 32);
}

TEST(NetworkInterface, HasRules) {
  testing::ExpectRules<NetworkInterface>(
      Valid(),
      {
          {"no network",
           [](auto& nic) { nic.spec.network_ref.name = ""; },
           {"Required spec.networkRef"}},
          {"bad network",
           [](auto& nic) { nic.spec.network_ref.name = "A b"; },
           {"Invalid spec.networkRef.name"}},
          {"machine is no label",
           [](auto& nic) { nic.spec.machine_ref = {"a.b", "1"}; },
           {"Invalid spec.machineRef.name"}},
          {"machine without name",
           [](auto& nic) { nic.spec.machine_ref = {"", "1"}; },
           {"Required spec.machineRef.name"}},
          {"family twice",
           [](auto& nic) {
             nic.spec.ip_families = {"IPv4", "IPv4"};
             nic.spec.ips = {{.value = meta::IpAddress::Parse("10.0.0.1")},
                             {.value = meta::IpAddress::Parse("10.0.0.2")}};
           },
           {"Duplicate spec.ipFamilies[1]"}},
          {"unknown family",
           [](auto& nic) {
             nic.spec.ip_families = {"IPv5"};
             nic.spec.ips.resize(1);
           },
           {"Invalid spec.ips[0].value", "NotSupported spec.ipFamilies[0]"}},
          {"empty family",
           [](auto& nic) {
             nic.spec.ip_families = {""};
             nic.spec.ips.resize(1);
           },
           {"Required spec.ipFamilies[0]"}},
          {"nothing",
           [](auto& nic) {
             nic.spec.ip_families.clear();
             nic.spec.ips.clear();
           },
           {"Required spec.ipFamilies"}},
          {"too few addresses", [](auto& nic) { nic.spec.ips.pop_back(); }, {"Invalid spec.ips"}},
          {"no source", [](auto& nic) { nic.spec.ips[0].value.reset(); }, {"Required spec.ips[0]"}},
          {"two sources",
           [](auto& nic) { nic.spec.ips[1].value = meta::IpAddress::Parse("2001:db8::1"); },
           {"Forbidden spec.ips[1]"}},
          {"wrong family",
           [](auto& nic) { nic.spec.ips[0].value = meta::IpAddress::Parse("2001:db8::1"); },
           {"Invalid spec.ips[0].value"}},
          {"no template",
           [](auto& nic) { nic.spec.ips[1].ephemeral->prefix_template.reset(); },
           {"Required spec.ips[1].ephemeral.prefixTemplate"}},
          {"template of another family",
           [](auto& nic) {
             EphemeralIp(nic).ip_family = "IPv4";
             EphemeralIp(nic).prefix_length = 32;
           },
           {"Invalid spec.ips[1].ephemeral.prefixTemplate.spec.ipFamily"}},
          {"template of many addresses",
           [](auto& nic) { EphemeralIp(nic).prefix_length = 64; },
           {"Invalid spec.ips[1].ephemeral.prefixTemplate.spec.prefixLength"}},
          {"template range of many addresses",
           [](auto& nic) {
             EphemeralIp(nic).prefix_length = 0;
             EphemeralIp(nic).prefix = meta::IpPrefix::Parse("2001:db8::/64");
           },
           {"Invalid spec.ips[1].ephemeral.prefixTemplate.spec.prefix"}},
          {"template with a name",
           [](auto& nic) { nic.spec.ips[1].ephemeral->prefix_template->metadata.name = "n"; },
           {"Forbidden spec.ips[1].ephemeral.prefixTemplate.metadata.name"}},
      });
}

TEST(NetworkInterface, HasRulesForPrefixesAndVirtualIp) {
  testing::ExpectRules<NetworkInterface>(
      Valid(),
      {
          {"no source",
           [](auto& nic) { nic.spec.prefixes[0].value.reset(); },
           {"Required spec.prefixes[0]"}},
          {"two sources",
           [](auto& nic) { nic.spec.prefixes[1].value = meta::IpPrefix::Parse("10.0.0.0/8"); },
           {"Forbidden spec.prefixes[1]"}},
          {"no template",
           [](auto& nic) { nic.spec.prefixes[1].ephemeral->prefix_template.reset(); },
           {"Required spec.prefixes[1].ephemeral.prefixTemplate"}},
          {"no virtual IP at all", [](auto& nic) { nic.spec.virtual_ip.reset(); }, {}},
          {"virtual IP without source",
           [](auto& nic) { nic.spec.virtual_ip->virtual_ip_ref.reset(); },
           {"Required spec.virtualIP"}},
          {"virtual IP is no label",
           [](auto& nic) { nic.spec.virtual_ip->virtual_ip_ref = {"a.b"}; },
           {"Invalid spec.virtualIP.virtualIPRef.name"}},
          {"virtual IP with two sources",
           [](auto& nic) { nic.spec.virtual_ip->ephemeral = Made(""); },
           {"Forbidden spec.virtualIP"}},
          {"made without template",
           [](auto& nic) {
             nic.spec.virtual_ip->virtual_ip_ref.reset();
             nic.spec.virtual_ip->ephemeral.emplace();
           },
           {"Required spec.virtualIP.ephemeral.virtualIPTemplate"}},
          {"made with an unknown policy and a name",
           [](auto& nic) {
             nic.spec.virtual_ip->virtual_ip_ref.reset();
             nic.spec.virtual_ip->ephemeral = Made("Lose");
             nic.spec.virtual_ip->ephemeral->virtual_ip_template->metadata.name = "n";
           },
           {"Forbidden spec.virtualIP.ephemeral.virtualIPTemplate.metadata.name",
            "NotSupported spec.virtualIP.ephemeral.virtualIPTemplate.spec.reclaimPolicy"}},
      });
}

TEST(NetworkInterface, KeepsNetworkFamiliesAndAttributes) {
  testing::ExpectUpdateRules<NetworkInterface>(
      Valid(),
      {
          {"network",
           [](auto& nic) { nic.spec.network_ref.name = "other"; },
           {"Forbidden spec.networkRef"}},
          {"families",
           [](auto& nic) { nic.spec.ip_families = {"IPv6", "IPv4"}; },
           {"Forbidden spec.ipFamilies"}},
          {"attributes",
           [](auto& nic) { nic.spec.attributes["a"] = "b"; },
           {"Forbidden spec.attributes"}},
          {"the rest",
           [](auto& nic) {
             nic.spec.provider_id = "x";
             nic.spec.machine_ref.reset();
             nic.spec.prefixes.clear();
             nic.spec.virtual_ip.reset();
             nic.spec.ips[0].value = meta::IpAddress::Parse("10.0.0.9");
           },
           {}},
      });
}

TEST(NetworkInterface, ShowsItsAddresses) {
  NetworkInterface nic = Valid();
  EXPECT_EQ(CellOf(kNetworkInterfaceKind, "Network", &nic), "net");
  EXPECT_EQ(CellOf(kNetworkInterfaceKind, "Machine", &nic), "m");
  EXPECT_EQ(CellOf(kNetworkInterfaceKind, "IPs", &nic), "<none>");
  EXPECT_EQ(CellOf(kNetworkInterfaceKind, "VirtualIP", &nic), "<none>");
  EXPECT_EQ(CellOf(kNetworkInterfaceKind, "State", &nic), "<unknown>");
  nic.status = Parse<NetworkInterface>(R"({
      "spec": {"networkRef": {}, "ipFamilies": [], "ips": []},
      "status": {"ips": ["10.0.0.1", "2001:db8::1"], "prefixes": ["10.1.0.0/24"],
                 "virtualIP": "1.2.3.4"}})")
                   .status;
  EXPECT_EQ(CellOf(kNetworkInterfaceKind, "IPs", &nic), "10.0.0.1,2001:db8::1");
  EXPECT_EQ(CellOf(kNetworkInterfaceKind, "Prefixes", &nic), "10.1.0.0/24");
  EXPECT_EQ(CellOf(kNetworkInterfaceKind, "VirtualIP", &nic), "1.2.3.4");
}

VirtualIp ValidVirtualIp() {
  return Parse<VirtualIp>(
      R"({"metadata": {"name": "v"}, "spec": {"type": "Public", "ipFamily": "IPv4"}})");
}

TEST(VirtualIp, HasRules) {
  testing::ExpectRules<VirtualIp>(
      ValidVirtualIp(),
      {
          {"no type", [](auto& v) { v.spec.type = ""; }, {"Required spec.type"}},
          {"unknown type", [](auto& v) { v.spec.type = "Internal"; }, {"NotSupported spec.type"}},
          {"no family", [](auto& v) { v.spec.ip_family = ""; }, {"Required spec.ipFamily"}},
          {"bad target",
           [](auto& v) { v.spec.target_ref = {"A b", "1"}; },
           {"Invalid spec.targetRef.name"}},
      });
  testing::ExpectUpdateRules<VirtualIp>(
      ValidVirtualIp(),
      {
          {"target", [](auto& v) { v.spec.target_ref = {"nic", "1"}; }, {}},
          {"family", [](auto& v) { v.spec.ip_family = "IPv6"; }, {"Forbidden spec.ipFamily"}},
          {"type", [](auto& v) { v.spec.type = "Other"; }, {"Forbidden spec.type"}},
      });
  testing::ExpectStatusRules<VirtualIp>(
      ValidVirtualIp(),
      {
          {"address", [](auto& v) { v.status.ip = meta::IpAddress::Parse("1.2.3.4"); }, {}},
          {"address of another family",
           [](auto& v) { v.status.ip = meta::IpAddress::Parse("2001:db8::1"); },
           {"Invalid status.ip"}},
      });
}

TEST(VirtualIp, StaysWhileItIsUsed) {
  VirtualIp object = ValidVirtualIp();
  EXPECT_EQ(kVirtualIpKind.refuse_delete(&object), "");
  object.spec.target_ref = {"nic", "1"};
  EXPECT_EQ(kVirtualIpKind.refuse_delete(&object),
            "still used by networkinterface nic (spec.targetRef is set)");
}

TEST(VirtualIp, ShowsItsAddress) {
  VirtualIp object = ValidVirtualIp();
  EXPECT_EQ(CellOf(kVirtualIpKind, "ExternalIP", &object), "None");
  object.status.ip = meta::IpAddress::Parse("1.2.3.4");
  EXPECT_EQ(CellOf(kVirtualIpKind, "ExternalIP", &object), "1.2.3.4");
}

}  // namespace
}  // namespace berth::apis::networking
