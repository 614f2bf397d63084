// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of PrefixAllocation.
#include "apis/ipam/prefix_allocation.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::ipam {
namespace {

using testing::CellOf;
using testing::Parse;

meta::IpPrefix Range(std::string_view text) { return *meta::IpPrefix::Parse(text); }

PrefixAllocation ByLength() {
  return Parse<PrefixAllocation>(R"({"metadata": {"name": "a"}, "spec": {
      "ipFamily": "IPv4", "prefixLength": 24, "prefixRef": {"name": "p"}}})");
}

TEST(PrefixAllocation, AsksForOneThing) {
  testing::ExpectRules<PrefixAllocation>(
      ByLength(),
      {
          {"both",
           [](auto& a) { a.spec.prefix = Range("10.0.0.0/24"); },
           {"Forbidden spec.prefixLength"}},
          {"neither", [](auto& a) { a.spec.prefix_length = 0; }, {"Required spec.prefix"}},
          {"a range alone, with its family",
           [](auto& a) {
             a.spec.prefix_length = 0;
             a.spec.ip_family = "";
             a.spec.prefix = Range("10.0.0.0/24");
           },
           {}},
          {"another family",
           [](auto& a) {
             a.spec.prefix_length = 0;
             a.spec.prefix = Range("2001:db8::/64");
           },
           {"Invalid spec.prefix"}},
          {"no family", [](auto& a) { a.spec.ip_family = ""; }, {"Required spec.ipFamily"}},
          {"too long", [](auto& a) { a.spec.prefix_length = 33; }, {"Invalid spec.prefixLength"}},
          {"from nowhere", [](auto& a) { a.spec.prefix_ref.reset(); }, {"Required spec.prefixRef"}},
          {"by selector",
           [](auto& a) {
             a.spec.prefix_ref.reset();
             a.spec.prefix_selector.emplace();
           },
           {}},
          {"bad reference",
           [](auto& a) { a.spec.prefix_ref = {"A b"}; },
           {"Invalid spec.prefixRef.name"}},
      });
}

TEST(PrefixAllocation, ChangesOnlyBySettingItsPrefix) {
  PrefixAllocation open = ByLength();
  open.spec.prefix_ref.reset();
  open.spec.prefix_selector.emplace();
  testing::ExpectUpdateRules<PrefixAllocation>(
      open,
      {
          {"scheduled", [](auto& a) { a.spec.prefix_ref = {"p"}; }, {}},
          {"length", [](auto& a) { a.spec.prefix_length = 25; }, {"Forbidden spec.prefixLength"}},
          {"family", [](auto& a) { a.spec.ip_family = "IPv6"; }, {"Forbidden spec.ipFamily"}},
          {"range",
           [](auto& a) { a.spec.prefix = Range("10.0.0.0/24"); },
           {"Forbidden spec.prefix"}},
          {"selector",
           [](auto& a) { a.spec.prefix_selector->match_labels["a"] = "b"; },
           {"Forbidden spec.prefixSelector"}},
      });
  testing::ExpectUpdateRules<PrefixAllocation>(ByLength(),
                                               {{"another prefix",
                                                 [](auto& a) { a.spec.prefix_ref = {"q"}; },
                                                 {"Forbidden spec.prefixRef"}}});
}

TEST(PrefixAllocation, EndsAllocatedOrFailed) {
  testing::ExpectStatusRules<PrefixAllocation>(
      ByLength(),
      {
          {"allocated",
           [](auto& a) {
             a.status.phase = "Allocated";
             a.status.prefix = Range("10.0.1.0/24");
           },
           {}},
          {"failed", [](auto& a) { a.status.phase = "Failed"; }, {}},
          {"allocated without range",
           [](auto& a) { a.status.phase = "Allocated"; },
           {"Required status.prefix"}},
          {"another length",
           [](auto& a) {
             a.status.phase = "Allocated";
             a.status.prefix = Range("10.0.1.0/25");
           },
           {"Invalid status.prefix"}},
          {"a range while pending",
           [](auto& a) { a.status.prefix = Range("10.0.1.0/24"); },
           {"Forbidden status.prefix"}},
          {"allocated from nowhere",
           [](auto& a) {
             a.spec.prefix_ref.reset();
             a.status.phase = "Allocated";
             a.status.prefix = Range("10.0.1.0/24");
           },
           {"Forbidden status.phase"}},
      });
  PrefixAllocation allocated = ByLength();
  allocated.status.phase = "Allocated";
  allocated.status.prefix = Range("10.0.1.0/24");
  testing::ExpectStatusRules<PrefixAllocation>(
      allocated,
      {
          {"another range",
           [](auto& a) { a.status.prefix = Range("10.0.2.0/24"); },
           {"Forbidden status.prefix"}},
          {"failed after all",
           [](auto& a) {
             a.status.phase = "Failed";
             a.status.prefix.reset();
           },
           {"Forbidden status.phase", "Forbidden status.prefix"}},
      });
}

TEST(PrefixAllocation, ShowsRequestAndResult) {
  PrefixAllocation allocation = testing::WithDefaults(ByLength());
  EXPECT_EQ(CellOf(kPrefixAllocationKind, "Prefix", &allocation), "p");
  EXPECT_EQ(CellOf(kPrefixAllocationKind, "Request", &allocation), "/24");
  EXPECT_EQ(CellOf(kPrefixAllocationKind, "State", &allocation), "Pending");
  EXPECT_EQ(CellOf(kPrefixAllocationKind, "Result", &allocation), "<none>");
  allocation.status.prefix = Range("10.0.1.0/24");
  EXPECT_EQ(CellOf(kPrefixAllocationKind, "Result", &allocation), "10.0.1.0/24");
}

}  // namespace
}  // namespace berth::apis::ipam
