// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of Prefix.
#include "apis/ipam/prefix.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::ipam {
namespace {

using testing::CellOf;
using testing::Parse;

meta::IpPrefix Range(std::string_view text) { return *meta::IpPrefix::Parse(text); }

Prefix Root() {
  return Parse<Prefix>(R"({"metadata": {"name": "r"}, "spec": {"prefix": "10.0.0.0/8"}})");
}
Prefix Child() {
  return Parse<Prefix>(R"({"metadata": {"name": "c"}, "spec": {
      "ipFamily": "IPv4", "prefixLength": 24, "parentSelector": {"matchLabels": {"a": "b"}}}})");
}

TEST(Prefix, TakesItsFamilyFromItsRange) {
  const Prefix prefix = testing::WithDefaults(Root());
  EXPECT_EQ(prefix.spec.ip_family, "IPv4");
  EXPECT_EQ(prefix.status.phase, "Pending");
  Prefix six = Root();
  six.spec.prefix = Range("2001:db8::/32");
  EXPECT_EQ(testing::WithDefaults(six).spec.ip_family, "IPv6");
}

TEST(Prefix, AsARootStatesItsRange) {
  testing::ExpectRules<Prefix>(
      Root(),
      {
          {"no range", [](auto& p) { p.spec.prefix.reset(); }, {"Required spec.prefix"}},
          {"a length", [](auto& p) { p.spec.prefix_length = 8; }, {"Forbidden spec.prefixLength"}},
          {"another family", [](auto& p) { p.spec.ip_family = "IPv6"; }, {"Invalid spec.prefix"}},
          {"unknown family",
           [](auto& p) { p.spec.ip_family = "IPv5"; },
           {"Invalid spec.prefix", "NotSupported spec.ipFamily"}},
          {"nothing",
           [](auto& p) { p.spec = {}; },
           {"Required spec.ipFamily", "Required spec.prefix"}},
      });
}

TEST(Prefix, AsAChildAsksForARangeOrALength) {
  testing::ExpectRules<Prefix>(
      Child(),
      {
          {"no length", [](auto& p) { p.spec.prefix_length = 0; }, {"Required spec.prefix"}},
          {"too long", [](auto& p) { p.spec.prefix_length = 33; }, {"Invalid spec.prefixLength"}},
          {"negative", [](auto& p) { p.spec.prefix_length = -1; }, {"Invalid spec.prefixLength"}},
          {"the range found", [](auto& p) { p.spec.prefix = Range("10.0.1.0/24"); }, {}},
          {"a range of another length",
           [](auto& p) { p.spec.prefix = Range("10.0.1.0/25"); },
           {"Invalid spec.prefixLength"}},
          {"no family", [](auto& p) { p.spec.ip_family = ""; }, {"Required spec.ipFamily"}},
          {"bad parent",
           [](auto& p) { p.spec.parent_ref = {"A b"}; },
           {"Invalid spec.parentRef.name"}},
          {"bad selector",
           [](auto& p) { p.spec.parent_selector->match_expressions = {{"a", "Like", {}}}; },
           {"Invalid spec.parentSelector.matchExpressions[0].operator"}},
      });
}

TEST(Prefix, KeepsWhatItGot) {
  testing::ExpectUpdateRules<Prefix>(
      Root(),
      {
          {"another range",
           [](auto& p) { p.spec.prefix = Range("11.0.0.0/8"); },
           {"Forbidden spec.prefix"}},
          {"a parent", [](auto& p) { p.spec.parent_ref = {"p"}; }, {"Forbidden spec.parentRef"}},
          {"a selector",
           [](auto& p) { p.spec.parent_selector.emplace(); },
           {"Forbidden spec.parentSelector"}},
      });
  testing::ExpectUpdateRules<Prefix>(
      Child(),
      {
          {"allocated",
           [](auto& p) {
             p.spec.parent_ref = {"p"};
             p.spec.prefix = Range("10.0.1.0/24");
           },
           {}},
          {"another length",
           [](auto& p) { p.spec.prefix_length = 25; },
           {"Forbidden spec.prefixLength"}},
          {"another family",
           [](auto& p) { p.spec.ip_family = "IPv6"; },
           {"Forbidden spec.ipFamily"}},
          {"another selector",
           [](auto& p) { p.spec.parent_selector->match_labels["a"] = "c"; },
           {"Forbidden spec.parentSelector"}},
      });
}

TEST(Prefix, IsAllocatedForGood) {
  Prefix allocated = Root();
  allocated.status.phase = "Allocated";
  testing::ExpectStatusRules<Prefix>(
      allocated,
      {
          {"back to pending",
           [](auto& p) { p.status.phase = "Pending"; },
           {"Forbidden status.phase"}},
          {"used",
           [](auto& p) { p.status.used = {Range("10.1.0.0/16"), Range("10.2.0.0/16")}; },
           {}},
          {"used outside",
           [](auto& p) { p.status.used = {Range("11.0.0.0/16")}; },
           {"Invalid status.used[0]"}},
          {"used in another family",
           [](auto& p) { p.status.used = {Range("2001:db8::/64")}; },
           {"Invalid status.used[0]"}},
          {"used twice",
           [](auto& p) { p.status.used = {Range("10.1.0.0/16"), Range("10.1.1.0/24")}; },
           {"Invalid status.used[1]"}},
      });
  testing::ExpectStatusRules<Prefix>(Child(),
                                     {
                                         {"allocated without range and parent",
                                          [](auto& p) { p.status.phase = "Allocated"; },
                                          {"Forbidden status.phase", "Forbidden status.phase"}},
                                         {"used while pending",
                                          [](auto& p) {
                                            p.spec.prefix = Range("10.0.1.0/24");
                                            p.status.used = {Range("10.0.1.0/25")};
                                          },
                                          {"Forbidden status.used"}},
                                     });
}

TEST(Prefix, ShowsRangeParentAndPhase) {
  const Prefix root = testing::WithDefaults(Root());
  EXPECT_EQ(CellOf(kPrefixKind, "Prefix", &root), "10.0.0.0/8");
  EXPECT_EQ(CellOf(kPrefixKind, "Parent", &root), "<none>");
  EXPECT_EQ(CellOf(kPrefixKind, "Phase", &root), "Pending");
  const Prefix child = Child();
  EXPECT_EQ(CellOf(kPrefixKind, "Prefix", &child), "<none>");
}

}  // namespace
}  // namespace berth::apis::ipam
