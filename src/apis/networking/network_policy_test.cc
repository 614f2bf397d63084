// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of NetworkPolicy.
#include "apis/networking/network_policy.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::networking {
namespace {

using testing::CellOf;
using testing::Parse;

NetworkPolicy Valid() {
  return Parse<NetworkPolicy>(R"({
    "metadata": {"name": "p", "namespace": "ns"},
    "spec": {
      "networkRef": {"name": "net"},
      "networkInterfaceSelector": {"matchLabels": {"app": "db"}},
      "ingress": [{
        "ports": [{"port": 5432}, {"protocol": "UDP"}],
        "from": [{"objectSelector": {"kind": "NetworkInterface", "matchLabels": {"app": "web"}}},
                 {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}],
      "egress": [{"to": [{"ipBlock": {"cidr": "2001:db8::/32"}}]}]}})");
}

TEST(NetworkPolicy, LimitsTheDirectionsThatHaveRules) {
  using Types = std::vector<std::string>;
  EXPECT_EQ(testing::WithDefaults(Valid()).spec.policy_types, (Types{"Ingress", "Egress"}));
  NetworkPolicy policy = Valid();
  policy.spec.ingress.clear();
  EXPECT_EQ(testing::WithDefaults(policy).spec.policy_types, (Types{"Egress"}));
  policy.spec.policy_types = {"Ingress"};
  EXPECT_EQ(testing::WithDefaults(policy).spec.policy_types, (Types{"Ingress", "Egress"}));
}

TEST(NetworkPolicy, HasRules) {
  testing::ExpectRules<NetworkPolicy>(
      Valid(),
      {
          {"no network",
           [](auto& p) { p.spec.network_ref.name = ""; },
           {"Required spec.networkRef"}},
          {"every interface", [](auto& p) { p.spec.network_interface_selector = {}; }, {}},
          {"bad selector",
           [](auto& p) { p.spec.network_interface_selector.match_expressions = {{"a", "In", {}}}; },
           {"Required spec.networkInterfaceSelector.matchExpressions[0].values"}},
          {"no direction",
           [](auto& p) {
             p.spec.ingress.clear();
             p.spec.egress.clear();
             p.spec.policy_types.clear();
           },
           {"Required spec.policyTypes"}},
          {"direction twice",
           [](auto& p) { p.spec.policy_types = {"Ingress", "Egress", "Ingress"}; },
           {"Duplicate spec.policyTypes[2]"}},
          {"unknown direction",
           [](auto& p) { p.spec.policy_types.push_back("Sideways"); },
           {"NotSupported spec.policyTypes[2]"}},
          {"empty direction",
           [](auto& p) { p.spec.policy_types.push_back(""); },
           {"Required spec.policyTypes[2]"}},
          {"bad port",
           [](auto& p) { p.spec.ingress[0].ports[0].port = 70000; },
           {"Invalid spec.ingress[0].ports[0].port"}},
          {"end without beginning",
           [](auto& p) { p.spec.ingress[0].ports[1].end_port = 80; },
           {"Invalid spec.ingress[0].ports[1].port"}},
          {"end before beginning",
           [](auto& p) { p.spec.egress[0].ports = {{.port = 80, .end_port = 79}}; },
           {"Invalid spec.egress[0].ports[0].endPort"}},
          {"unknown protocol",
           [](auto& p) { p.spec.ingress[0].ports[0].protocol = "ICMP"; },
           {"NotSupported spec.ingress[0].ports[0].protocol"}},
          {"peer without source",
           [](auto& p) { p.spec.ingress[0].from[0].object_selector.reset(); },
           {"Required spec.ingress[0].from[0]"}},
          {"peer with two sources",
           [](auto& p) { p.spec.ingress[0].from[1].object_selector = {{"VirtualIP", {}}}; },
           {"Forbidden spec.ingress[0].from[1]"}},
          {"peer of another kind",
           [](auto& p) { p.spec.ingress[0].from[0].object_selector->kind = "Machine"; },
           {"NotSupported spec.ingress[0].from[0].objectSelector.kind"}},
          {"peer without kind",
           [](auto& p) { p.spec.ingress[0].from[0].object_selector->kind = ""; },
           {"Required spec.ingress[0].from[0].objectSelector.kind"}},
          {"bad peer selector",
           [](auto& p) {
             p.spec.ingress[0].from[0].object_selector->selector.match_labels = {{"a b", ""}};
           },
           {"Invalid spec.ingress[0].from[0].objectSelector.matchLabels"}},
          {"no range",
           [](auto& p) { p.spec.egress[0].to[0].ip_block->cidr = {}; },
           {"Required spec.egress[0].to[0].ipBlock.cidr"}},
          {"hole outside the range",
           [](auto& p) {
             p.spec.ingress[0].from[1].ip_block->except = {*meta::IpPrefix::Parse("11.0.0.0/16")};
           },
           {"Invalid spec.ingress[0].from[1].ipBlock.except[0]"}},
      });
}

TEST(NetworkPolicy, KeepsItsNetwork) {
  testing::ExpectUpdateRules<NetworkPolicy>(
      Valid(),
      {
          {"network",
           [](auto& p) { p.spec.network_ref.name = "other"; },
           {"Forbidden spec.networkRef"}},
          {"rules", [](auto& p) { p.spec.ingress.clear(); }, {}},
      });
  testing::ExpectStatusRules<NetworkPolicy>(
      Valid(),
      {{"condition twice",
        [](auto& p) { p.status.conditions = {{.type = "A"}, {.type = "A"}}; },
        {"Duplicate status.conditions[1].type"}}});
}

TEST(NetworkPolicy, ShowsNetworkAndSelector) {
  NetworkPolicy policy = Valid();
  EXPECT_EQ(CellOf(kNetworkPolicyKind, "Network", &policy), "net");
  EXPECT_EQ(CellOf(kNetworkPolicyKind, "Nic-Selector", &policy), "app=db");
  policy.spec.network_interface_selector = {};
  EXPECT_EQ(CellOf(kNetworkPolicyKind, "Nic-Selector", &policy), "<none>");
}

}  // namespace
}  // namespace berth::apis::networking
