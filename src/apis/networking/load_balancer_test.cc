// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of LoadBalancer, LoadBalancerRouting and NATGateway.
#include "apis/networking/load_balancer.h"

#include <gtest/gtest.h>

#include "apis/networking/load_balancer_routing.h"
#include "apis/networking/nat_gateway.h"
#include "apis/testing/rules_of.h"

namespace berth::apis::networking {
namespace {

using testing::CellOf;
using testing::Parse;

LoadBalancer Valid() {
  return Parse<LoadBalancer>(R"({
    "metadata": {"name": "lb", "namespace": "ns"},
    "spec": {
      "type": "Internal", "ipFamilies": ["IPv4"], "networkRef": {"name": "net"},
      "ips": [{"ephemeral": {"prefixTemplate": {"spec": {"parentRef": {"name": "p"}}}}}],
      "networkInterfaceSelector": {"matchLabels": {"app": "web"}},
      "ports": [{"port": 80}, {"port": 80, "protocol": "UDP"},
                {"port": 8000, "endPort": 9000, "protocol": "TCP"}]}})");
}

TEST(LoadBalancer, FillsInAddressesAndDropsThoseOfPublicOnes) {
  LoadBalancer internal = testing::WithDefaults(Valid());
  EXPECT_EQ(internal.spec.ips[0].ephemeral->prefix_template->spec.prefix_length, 32);
  LoadBalancer open = Valid();
  open.spec.type = "Public";
  EXPECT_TRUE(testing::WithDefaults(open).spec.ips.empty());
}

TEST(LoadBalancer, HasRules) {
  testing::ExpectRules<LoadBalancer>(
      Valid(),
      {
          {"public", [](auto& lb) { lb.spec.type = "Public"; }, {}},
          {"unknown type", [](auto& lb) { lb.spec.type = "Private"; }, {"NotSupported spec.type"}},
          {"no type", [](auto& lb) { lb.spec.type = ""; }, {"Required spec.type"}},
          {"no family",
           [](auto& lb) {
             lb.spec.type = "Public";
             lb.spec.ip_families.clear();
           },
           {"Required spec.ipFamilies"}},
          {"internal without address", [](auto& lb) { lb.spec.ips.clear(); }, {"Invalid spec.ips"}},
          {"no network",
           [](auto& lb) { lb.spec.network_ref.name = ""; },
           {"Required spec.networkRef"}},
          {"bad selector",
           [](auto& lb) { lb.spec.network_interface_selector->match_labels = {{"a b", "c"}}; },
           {"Invalid spec.networkInterfaceSelector.matchLabels"}},
          {"no selector", [](auto& lb) { lb.spec.network_interface_selector.reset(); }, {}},
          {"first port too small",
           [](auto& lb) { lb.spec.ports[0].port = 0; },
           {"Invalid spec.ports[0].port"}},
          {"first port too large",
           [](auto& lb) { lb.spec.ports[0].port = 65536; },
           {"Invalid spec.ports[0].port"}},
          {"end before beginning",
           [](auto& lb) { lb.spec.ports[2].end_port = 7999; },
           {"Invalid spec.ports[2].endPort"}},
          {"end too large",
           [](auto& lb) { lb.spec.ports[2].end_port = 70000; },
           {"Invalid spec.ports[2].endPort"}},
          {"unknown protocol",
           [](auto& lb) { lb.spec.ports[0].protocol = "ICMP"; },
           {"NotSupported spec.ports[0].protocol"}},
          {"overlap, absent protocol is TCP",
           [](auto& lb) { lb.spec.ports[0].port = 8500; },
           {"Forbidden spec.ports[2]"}},
          {"no overlap between protocols", [](auto& lb) { lb.spec.ports[1].port = 8500; }, {}},
      });
}

TEST(LoadBalancer, KeepsItsNetwork) {
  testing::ExpectUpdateRules<LoadBalancer>(
      Valid(),
      {
          {"network",
           [](auto& lb) { lb.spec.network_ref.name = "other"; },
           {"Forbidden spec.networkRef"}},
          {"ports", [](auto& lb) { lb.spec.ports.clear(); }, {}},
      });
}

TEST(LoadBalancer, ShowsItsAddresses) {
  LoadBalancer balancer = Valid();
  EXPECT_EQ(CellOf(kLoadBalancerKind, "IPs", &balancer), "<none>");
  balancer.status.ips = {*meta::IpAddress::Parse("10.0.0.1"), *meta::IpAddress::Parse("::1")};
  EXPECT_EQ(CellOf(kLoadBalancerKind, "IPs", &balancer), "10.0.0.1,::1");
}

LoadBalancerRouting Routing() {
  return Parse<LoadBalancerRouting>(R"({
    "metadata": {"name": "lb"}, "networkRef": {"name": "net", "uid": "1"},
    "destinations": [
      {"ip": "10.0.0.1", "targetRef": {"uid": "2", "name": "nic", "providerID": "x"}},
      {"ip": "10.0.0.2"}]})");
}

TEST(LoadBalancerRouting, HasRules) {
  testing::ExpectRules<LoadBalancerRouting>(
      Routing(),
      {
          {"no network", [](auto& r) { r.network_ref.name = ""; }, {"Required networkRef.name"}},
          {"bad network", [](auto& r) { r.network_ref.name = "A b"; }, {"Invalid networkRef.name"}},
          {"no address",
           [](auto& r) { r.destinations[1].ip = {}; },
           {"Required destinations[1].ip"}},
          {"no target name",
           [](auto& r) { r.destinations[0].target_ref->name = ""; },
           {"Required destinations[0].targetRef.name"}},
          {"no target UID",
           [](auto& r) { r.destinations[0].target_ref->uid = ""; },
           {"Required destinations[0].targetRef.uid"}},
          {"no targets", [](auto& r) { r.destinations.clear(); }, {}},
      });
}

TEST(LoadBalancerRouting, ShowsThreeTargets) {
  LoadBalancerRouting routing = Routing();
  EXPECT_EQ(CellOf(kLoadBalancerRoutingKind, "Targets", &routing), "10.0.0.1,10.0.0.2");
  routing.destinations.resize(5, routing.destinations[0]);
  EXPECT_EQ(CellOf(kLoadBalancerRoutingKind, "Targets", &routing),
            "10.0.0.1,10.0.0.2,10.0.0.1 + 2 more...");
  routing.destinations.clear();
  EXPECT_EQ(CellOf(kLoadBalancerRoutingKind, "Targets", &routing), "<none>");
}

NatGateway Gateway() {
  return Parse<NatGateway>(R"({"metadata": {"name": "ngw"}, "spec": {
      "type": "Public", "ipFamily": "IPv4", "networkRef": {"name": "net"}}})");
}

TEST(NatGateway, GivesEachInterface2048Ports) {
  EXPECT_EQ(testing::WithDefaults(Gateway()).spec.ports_per_network_interface, 2048);
}

TEST(NatGateway, HasRules) {
  testing::ExpectRules<NatGateway>(
      Gateway(),
      {
          {"no network",
           [](auto& g) { g.spec.network_ref.name = ""; },
           {"Required spec.networkRef"}},
          {"unknown type", [](auto& g) { g.spec.type = "Internal"; }, {"NotSupported spec.type"}},
          {"no family", [](auto& g) { g.spec.ip_family = ""; }, {"Required spec.ipFamily"}},
          {"no power of two",
           [](auto& g) { g.spec.ports_per_network_interface = 1000; },
           {"Invalid spec.portsPerNetworkInterface"}},
          {"none",
           [](auto& g) { g.spec.ports_per_network_interface = 0; },
           {"Invalid spec.portsPerNetworkInterface"}},
          {"negative",
           [](auto& g) { g.spec.ports_per_network_interface = -2048; },
           {"Invalid spec.portsPerNetworkInterface"}},
          {"one", [](auto& g) { g.spec.ports_per_network_interface = 1; }, {}},
      });
  testing::ExpectUpdateRules<NatGateway>(Gateway(),
                                         {{"network",
                                           [](auto& g) { g.spec.network_ref.name = "other"; },
                                           {"Forbidden spec.networkRef"}}});
}

}  // namespace
}  // namespace berth::apis::networking
