// SPDX-License-Identifier: Apache-2.0
// Defends the rules and columns of Network.
#include "apis/networking/network.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::networking {
namespace {

using testing::CellOf;
using testing::Parse;

Network Valid() {
  return Parse<Network>(R"({
    "metadata": {"name": "net", "namespace": "ns"},
    "spec": {
      "peerings": [
        {"name": "a", "networkRef": {"name": "other"},
         "prefixes": [{"name": "p1", "prefix": "10.0.0.0/24"}, {"name": "p2"},
                      {"name": "p3", "prefixRef": {"name": "x"}}]},
        {"name": "b", "networkRef": {"name": "net", "namespace": "elsewhere"}}],
      "incomingPeerings": [{"name": "other", "uid": "1"}]}})");
}

TEST(Network, HasRules) {
  testing::ExpectRules<Network>(
      Valid(),
      {
          {"peering without name",
           [](auto& n) { n.spec.peerings[0].name = ""; },
           {"Required spec.peerings[0].name"}},
          {"peering twice",
           [](auto& n) { n.spec.peerings[1].name = "a"; },
           {"Duplicate spec.peerings[1].name"}},
          {"peering without network",
           [](auto& n) { n.spec.peerings[0].network_ref.name = ""; },
           {"Required spec.peerings[0].networkRef.name"}},
          {"bad namespace",
           [](auto& n) { n.spec.peerings[0].network_ref.namespace_ = "a.b"; },
           {"Invalid spec.peerings[0].networkRef.namespace"}},
          {"network twice, once with its namespace",
           [](auto& n) { n.spec.peerings[1].network_ref = {"ns", "other"}; },
           {"Duplicate spec.peerings[1].networkRef"}},
          {"itself",
           [](auto& n) { n.spec.peerings[0].network_ref = {"", "net"}; },
           {"Forbidden spec.peerings[0].networkRef"}},
          {"itself, with its namespace",
           [](auto& n) { n.spec.peerings[0].network_ref = {"ns", "net"}; },
           {"Forbidden spec.peerings[0].networkRef"}},
          {"prefix without name",
           [](auto& n) { n.spec.peerings[0].prefixes[0].name = ""; },
           {"Required spec.peerings[0].prefixes[0].name"}},
          {"prefix name twice in the network",
           [](auto& n) { n.spec.peerings[1].prefixes = {{.name = "p1"}}; },
           {"Duplicate spec.peerings[1].prefixes[0].name"}},
          {"prefix twice",
           [](auto& n) { n.spec.peerings[0].prefixes[1].prefix_ref = {"x"}; },
           {"Duplicate spec.peerings[0].prefixes[2].prefixRef.name"}},
          {"claim twice",
           [](auto& n) { n.spec.incoming_peerings.push_back({"ns", "other", "2"}); },
           {"Duplicate spec.incomingPeerings[1]"}},
          {"claim by itself",
           [](auto& n) { n.spec.incoming_peerings = {{"", "net", ""}}; },
           {"Forbidden spec.incomingPeerings[0]"}},
          {"claim without name",
           [](auto& n) { n.spec.incoming_peerings = {{"", "", "1"}}; },
           {"Required spec.incomingPeerings[0].name"}},
      });
}

TEST(Network, GetsItsProviderOnce) {
  testing::ExpectUpdateRules<Network>(
      Valid(),
      {
          {"provided", [](auto& n) { n.spec.provider_id = "ironcore-net://a"; }, {}},
          {"other peers", [](auto& n) { n.spec.peerings.clear(); }, {}},
      });
  Network provided = Valid();
  provided.spec.provider_id = "a";
  testing::ExpectUpdateRules<Network>(
      provided,
      {
          {"another", [](auto& n) { n.spec.provider_id = "b"; }, {"Forbidden spec.providerID"}},
          {"none", [](auto& n) { n.spec.provider_id = ""; }, {"Forbidden spec.providerID"}},
      });
}

TEST(Network, ValidatesItsStatus) {
  testing::ExpectStatusRules<Network>(
      Valid(),
      {{"peering twice",
        [](auto& n) { n.status.peerings = {{.name = "a"}, {.name = "a"}}; },
        {"Duplicate status.peerings[1].name"}}});
}

TEST(Network, ShowsStateAndProvider) {
  const Network network = Valid();
  EXPECT_EQ(CellOf(kNetworkKind, "State", &network), "<unknown>");
  EXPECT_EQ(CellOf(kNetworkKind, "ProviderID", &network), "<none>");
}

}  // namespace
}  // namespace berth::apis::networking
