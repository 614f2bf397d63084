// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of Lease, roles and their bindings.
#include <gtest/gtest.h>

#include "apis/k8s/lease.h"
#include "apis/k8s/role.h"
#include "apis/k8s/role_binding.h"
#include "apis/testing/rules_of.h"

namespace berth::apis::k8s {
namespace {

using testing::CellOf;
using testing::Parse;

constexpr std::string_view kRules = R"({
    "metadata": {"name": "system:reader"},
    "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]})";

TEST(Role, HasRules) {
  testing::ExpectRules<Role>(
      Parse<Role>(kRules),
      {
          {"no verbs", [](auto& r) { r.rules[0].verbs.clear(); }, {"Required rules[0].verbs"}},
          {"no groups",
           [](auto& r) { r.rules[0].api_groups.clear(); },
           {"Required rules[0].apiGroups"}},
          {"no resources",
           [](auto& r) { r.rules[0].resources.clear(); },
           {"Required rules[0].resources"}},
          {"paths",
           [](auto& r) { r.rules[0] = {.verbs = {"get"}, .non_resource_urls = {"/healthz"}}; },
           {"Invalid rules[0].nonResourceURLs"}},
          {"no rules", [](auto& r) { r.rules.clear(); }, {}},
      });
}

TEST(ClusterRole, HasRules) {
  testing::ExpectRules<ClusterRole>(
      Parse<ClusterRole>(kRules),
      {
          {"paths",
           [](auto& r) { r.rules[0] = {.verbs = {"get"}, .non_resource_urls = {"/healthz"}}; },
           {}},
          {"paths and resources",
           [](auto& r) { r.rules[0].non_resource_urls = {"/healthz"}; },
           {"Invalid rules[0].nonResourceURLs"}},
          {"collects nothing",
           [](auto& r) { r.aggregation_rule.emplace(); },
           {"Required aggregationRule.clusterRoleSelectors"}},
          {"collects by a bad selector",
           [](auto& r) {
             r.aggregation_rule.emplace();
             r.aggregation_rule->cluster_role_selectors.push_back({{{"a b", "c"}}, {}});
           },
           {"Invalid aggregationRule.clusterRoleSelectors[0].matchLabels"}},
      });
}

TEST(Role, ShowsWhenItWasMade) {
  Role role = Parse<Role>(kRules);
  role.metadata.creation_timestamp = *ParseRfc3339("2026-01-01T00:00:00Z");
  EXPECT_EQ(CellOf(kRoleKind, "Name", &role), "system:reader");
  EXPECT_EQ(CellOf(kRoleKind, "Created At", &role), "2026-01-01T00:00:00Z");
}

constexpr std::string_view kBinding = R"({
    "metadata": {"name": "b", "namespace": "ns"},
    "subjects": [{"kind": "User", "name": "ann"}, {"kind": "Group", "name": "staff"},
                 {"kind": "ServiceAccount", "name": "bot", "namespace": "ns"}],
    "roleRef": {"kind": "ClusterRole", "name": "system:reader"}})";

template <class T>
class Binding : public ::testing::Test {};
using Bindings = ::testing::Types<RoleBinding, ClusterRoleBinding>;
TYPED_TEST_SUITE(Binding, Bindings);

TYPED_TEST(Binding, FillsInGroups) {
  const auto binding = testing::WithDefaults(Parse<TypeParam>(kBinding));
  EXPECT_EQ(binding.role_ref.api_group, kRbacGroup);
  EXPECT_EQ(binding.subjects[0].api_group, kRbacGroup);
  EXPECT_EQ(binding.subjects[1].api_group, kRbacGroup);
  EXPECT_EQ(binding.subjects[2].api_group, "");
}

TYPED_TEST(Binding, HasRules) {
  testing::ExpectRules<TypeParam>(
      Parse<TypeParam>(kBinding),
      {
          {"no role", [](auto& b) { b.role_ref.name = ""; }, {"Required roleRef.name"}},
          {"bad role", [](auto& b) { b.role_ref.name = "a/b"; }, {"Invalid roleRef.name"}},
          {"unknown kind of role",
           [](auto& b) { b.role_ref.kind = "Rule"; },
           {"NotSupported roleRef.kind"}},
          {"role of another group",
           [](auto& b) { b.role_ref.api_group = "x"; },
           {"NotSupported roleRef.apiGroup"}},
          {"unknown kind of subject",
           [](auto& b) { b.subjects[0].kind = "Robot"; },
           {"NotSupported subjects[0].kind"}},
          {"no kind of subject",
           [](auto& b) { b.subjects[0].kind = ""; },
           {"Required subjects[0].kind"}},
          {"no name", [](auto& b) { b.subjects[0].name = ""; }, {"Required subjects[0].name"}},
          {"user of another group",
           [](auto& b) { b.subjects[0].api_group = "x"; },
           {"NotSupported subjects[0].apiGroup"}},
          {"account of a group",
           [](auto& b) { b.subjects[2].api_group = "x"; },
           {"NotSupported subjects[2].apiGroup"}},
          {"account with a bad name",
           [](auto& b) { b.subjects[2].name = "A b"; },
           {"Invalid subjects[2].name"}},
          {"nobody", [](auto& b) { b.subjects.clear(); }, {}},
      });
}

TYPED_TEST(Binding, KeepsItsRole) {
  testing::ExpectUpdateRules<TypeParam>(
      Parse<TypeParam>(kBinding),
      {
          {"another role", [](auto& b) { b.role_ref.name = "admin"; }, {"Invalid roleRef"}},
          {"other people", [](auto& b) { b.subjects.clear(); }, {}},
      });
}

TYPED_TEST(Binding, ShowsRoleAndPeople) {
  const auto binding = Parse<TypeParam>(kBinding);
  const meta::KindInfo& kind = BerthKind(meta::Tag<TypeParam>{});
  EXPECT_EQ(CellOf(kind, "Role", &binding), "ClusterRole/system:reader");
  EXPECT_EQ(CellOf(kind, "Users", &binding), "ann");
  EXPECT_EQ(CellOf(kind, "Groups", &binding), "staff");
  EXPECT_EQ(CellOf(kind, "ServiceAccounts", &binding), "ns/bot");
}

TEST(RoleBinding, MayNameARoleAndAnAccountAtHome) {
  testing::ExpectRules<RoleBinding>(
      Parse<RoleBinding>(kBinding),
      {
          {"role", [](auto& b) { b.role_ref.kind = "Role"; }, {}},
          {"account", [](auto& b) { b.subjects[2].namespace_ = ""; }, {}},
      });
  testing::ExpectRules<ClusterRoleBinding>(
      Parse<ClusterRoleBinding>(kBinding),
      {
          {"role", [](auto& b) { b.role_ref.kind = "Role"; }, {"NotSupported roleRef.kind"}},
          {"account",
           [](auto& b) { b.subjects[2].namespace_ = ""; },
           {"Required subjects[2].namespace"}},
      });
}

TEST(Lease, HasRules) {
  const Lease lease = Parse<Lease>(R"({
      "metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15,
      "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:01.5Z",
      "leaseTransitions": 0}})");
  testing::ExpectRules<Lease>(lease,
                              {
                                  {"nobody's", [](auto& l) { l.spec = {}; }, {}},
                                  {"empty holder",
                                   [](auto& l) { l.spec.holder_identity = ""; },
                                   {"Invalid spec.holderIdentity"}},
                                  {"no duration",
                                   [](auto& l) { l.spec.lease_duration_seconds = 0; },
                                   {"Invalid spec.leaseDurationSeconds"}},
                                  {"negative transitions",
                                   [](auto& l) { l.spec.lease_transitions = -1; },
                                   {"Invalid spec.leaseTransitions"}},
                              });
  EXPECT_EQ(CellOf(kLeaseKind, "Holder", &lease), "a");
}

}  // namespace
}  // namespace berth::apis::k8s
