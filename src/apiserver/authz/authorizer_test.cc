// SPDX-License-Identifier: Apache-2.0
// Defends: RBAC means what it means in Kubernetes, follows every change of policy, and says so in
// its words.
#include "apiserver/authz/authorizer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>

#include "apiserver/authz/default_roles.h"
#include "apiserver/authz/internal/test_scheme.h"

namespace berth::apiserver {
namespace {

constexpr const char* kCompute = "compute.ironcore.dev";

Subject User(std::string name) { return {.kind = SubjectKind::kUser, .name = std::move(name)}; }
Subject Group(std::string name) { return {.kind = SubjectKind::kGroup, .name = std::move(name)}; }

class AuthorizerTest : public testing::Test {
 protected:
  // Gives ann one rule in the whole cluster.
  void Grant(PolicyRule rule) {
    authorizer_.SetRole({"", "role"}, {std::move(rule)});
    authorizer_.SetBinding({"", "binding"}, {{"", "role"}, {User("ann")}});
  }
  bool Ann(const RequestInfo& request) { return authorizer_.Allows(Someone("ann"), request); }

  Authorizer authorizer_{TestScheme()};
};

TEST_F(AuthorizerTest, DeniesWithoutPolicy) {
  EXPECT_FALSE(Ann(Asking("get", "", "secrets", "default", "x")));
  EXPECT_FALSE(Ann(AskingPath("get", "/metrics")));
}

TEST_F(AuthorizerTest, MastersMayDoEverything) {
  Identity root = Someone("root", {"system:masters"});
  EXPECT_TRUE(authorizer_.Allows(root, Asking("delete", "", "secrets", "default", "x")));
  EXPECT_TRUE(authorizer_.Allows(root, AskingPath("get", "/metrics")));
  EXPECT_TRUE(authorizer_.Decide(root, AskingPath("get", "/metrics")).allowed);
}

TEST_F(AuthorizerTest, MatchesVerbsGroupsAndNames) {
  Grant({.verbs = {"get", "frobnicate"},
         .api_groups = {"", kCompute},
         .resources = {"machines", "secrets"},
         .resource_names = {"a", "b"}});
  EXPECT_TRUE(Ann(Asking("get", kCompute, "machines", "d", "a")));
  EXPECT_TRUE(Ann(Asking("get", "", "secrets", "", "b")));
  EXPECT_TRUE(Ann(Asking("frobnicate", "", "secrets", "", "b")));
  EXPECT_FALSE(Ann(Asking("list", kCompute, "machines", "d", "a")));
  EXPECT_FALSE(Ann(Asking("watch", "", "secrets", "", "b")));
  EXPECT_FALSE(Ann(Asking("other", "", "secrets", "", "b")));
  EXPECT_FALSE(Ann(Asking("get", kCompute, "machines", "d", "c")));
  EXPECT_FALSE(Ann(Asking("get", kCompute, "machines", "d")));
  EXPECT_FALSE(Ann(Asking("get", "storage.ironcore.dev", "machines", "d", "a")));
  EXPECT_FALSE(Ann(Asking("get", kCompute, "volumes", "d", "a")));
}

TEST_F(AuthorizerTest, MatchesSubresourcesOnlyWhereNamed) {
  struct Case {
    std::string allowed;
    bool plain, status, other_status, scale;
  };
  for (const Case& c : {Case{"machines", true, false, false, false},
                        Case{"machines/status", false, true, false, false},
                        Case{"*/status", false, true, true, false},
                        Case{"*", true, true, true, true},
                        Case{"machines/*", false, false, false, false},
                        Case{"/status", false, false, false, false},
                        Case{"status", false, false, false, false},
                        Case{"xmachines/status", false, false, false, false}}) {
    Grant({.verbs = {"get"}, .api_groups = {"*"}, .resources = {c.allowed}});
    EXPECT_EQ(Ann(Asking("get", kCompute, "machines", "d", "m")), c.plain) << c.allowed;
    EXPECT_EQ(Ann(Asking("get", kCompute, "machines", "d", "m", "status")), c.status) << c.allowed;
    EXPECT_EQ(Ann(Asking("get", kCompute, "volumes", "d", "m", "status")), c.other_status)
        << c.allowed;
    EXPECT_EQ(Ann(Asking("get", kCompute, "machines", "d", "m", "scale")), c.scale) << c.allowed;
  }
}

TEST_F(AuthorizerTest, MatchesPathsWithATrailingStar) {
  struct Case {
    std::string url;
    bool metrics, deep, api;
  };
  for (const Case& c : {Case{"/metrics", true, false, false},
                        Case{"/metrics/*", false, true, false},
                        Case{"/metrics*", true, true, false},
                        Case{"*", true, true, true},
                        Case{"/", false, false, false},
                        Case{"/*", true, true, true}}) {
    Grant({.verbs = {"get"}, .non_resource_urls = {c.url}});
    EXPECT_EQ(Ann(AskingPath("get", "/metrics")), c.metrics) << c.url;
    EXPECT_EQ(Ann(AskingPath("get", "/metrics/a/b")), c.deep) << c.url;
    EXPECT_EQ(Ann(AskingPath("get", "/api")), c.api) << c.url;
    EXPECT_FALSE(Ann(AskingPath("post", "/metrics"))) << c.url;
    EXPECT_FALSE(Ann(Asking("get", "", "secrets"))) << c.url;
  }
}

TEST_F(AuthorizerTest, ResourceRulesNeverGrantPathsNorTheReverse) {
  Grant({.verbs = {"*"}, .api_groups = {"*"}, .resources = {"*"}});
  EXPECT_FALSE(Ann(AskingPath("get", "/metrics")));
  EXPECT_TRUE(Ann(Asking("anything", "any.group", "any", "any", "any", "any")));
}

TEST_F(AuthorizerTest, ARoleBindingGrantsInItsNamespaceOnly) {
  PolicyRule rule{
      .verbs = {"get"}, .api_groups = {"*"}, .resources = {"*"}, .non_resource_urls = {"*"}};
  authorizer_.SetRole({"", "reader"}, {rule});
  authorizer_.SetRole({"blue", "reader"}, {rule});
  for (const PolicyKey& role : {PolicyKey{"", "reader"}, PolicyKey{"blue", "reader"}}) {
    authorizer_.SetBinding({"blue", "b"}, {role, {Group("dev")}});
    Identity ann = Someone("ann", {"dev"});
    EXPECT_TRUE(authorizer_.Allows(ann, Asking("get", "", "secrets", "blue", "x")));
    EXPECT_FALSE(authorizer_.Allows(ann, Asking("get", "", "secrets", "red", "x")));
    EXPECT_FALSE(authorizer_.Allows(ann, Asking("get", "", "secrets")));
    EXPECT_FALSE(authorizer_.Allows(ann, Asking("get", "", "namespaces", "", "blue")));
    EXPECT_FALSE(authorizer_.Allows(ann, AskingPath("get", "/metrics")));
    EXPECT_FALSE(authorizer_.Allows(Someone("bob"), Asking("get", "", "secrets", "blue", "x")));
    EXPECT_FALSE(authorizer_.Allows(Someone("dev"), Asking("get", "", "secrets", "blue", "x")))
        << "a user is not a group of the same name";
  }
}

TEST_F(AuthorizerTest, ServiceAccountsNeverMatch) {
  authorizer_.SetRole({"", "r"}, {{.verbs = {"*"}, .api_groups = {"*"}, .resources = {"*"}}});
  authorizer_.SetBinding({"", "b"},
                         {{"", "r"}, {{SubjectKind::kServiceAccount, "robot", "default"}}});
  for (const char* name : {"robot", "system:serviceaccount:default:robot", "default/robot"}) {
    EXPECT_FALSE(authorizer_.Allows(Someone(name, {name}), Asking("get", "", "secrets")));
  }
}

TEST_F(AuthorizerTest, FollowsEveryChangeInAnyOrder) {
  const RequestInfo get = Asking("get", "", "secrets", "d", "x");
  const RequestInfo list = Asking("list", "", "secrets", "d");
  // The binding may arrive before its role.
  authorizer_.SetBinding({"d", "b"}, {{"d", "r"}, {User("ann"), User("ann"), Group("dev")}});
  EXPECT_FALSE(Ann(get));
  authorizer_.SetRole({"d", "r"},
                      {{.verbs = {"get"}, .api_groups = {""}, .resources = {"secrets"}}});
  EXPECT_TRUE(Ann(get));
  authorizer_.SetRole({"d", "r"},
                      {{.verbs = {"list"}, .api_groups = {""}, .resources = {"secrets"}}});
  EXPECT_FALSE(Ann(get));
  EXPECT_TRUE(Ann(list));
  authorizer_.RemoveRole({"d", "r"});
  EXPECT_FALSE(Ann(list));
  EXPECT_EQ(authorizer_.FindRole({"d", "r"}), nullptr);
  authorizer_.SetRole({"d", "r"},
                      {{.verbs = {"get"}, .api_groups = {""}, .resources = {"secrets"}}});
  EXPECT_TRUE(Ann(get));
  authorizer_.SetBinding({"d", "b"}, {{"d", "r"}, {User("bob")}});
  EXPECT_FALSE(Ann(get));
  EXPECT_TRUE(authorizer_.Allows(Someone("bob"), get));
  authorizer_.RemoveBinding({"d", "b"});
  EXPECT_FALSE(authorizer_.Allows(Someone("bob"), get));
  authorizer_.RemoveBinding({"d", "b"});
  authorizer_.RemoveRole({"nothing", "there"});
}

TEST_F(AuthorizerTest, AliasDomainsInAnySpellingGrantTheSame) {
  for (const char* ruled : {"compute.ironcore.dev",
                            "compute.OpenKCM.dev",
                            "compute.openkcm.dev",
                            "compute.OPENKCM.DEV",
                            "Compute.IronCore.Dev"}) {
    Grant({.verbs = {"get"}, .api_groups = {ruled}, .resources = {"machines"}});
    for (const char* asked :
         {"compute.ironcore.dev", "compute.OpenKCM.dev", "compute.openkcm.DEV"}) {
      EXPECT_TRUE(Ann(Asking("get", asked, "machines", "d", "m"))) << ruled << " " << asked;
    }
    for (const char* asked : {"storage.OpenKCM.dev", "compute.example.org", "compute", ""}) {
      EXPECT_FALSE(Ann(Asking("get", asked, "machines", "d", "m"))) << ruled << " " << asked;
    }
  }
}

TEST_F(AuthorizerTest, SaysWhyItAllows) {
  Grant({.verbs = {"get"}, .api_groups = {"*"}, .resources = {"*"}});
  EXPECT_EQ(authorizer_.Decide(Someone("ann"), Asking("get", "", "secrets")).reason,
            "RBAC: allowed by ClusterRoleBinding \"binding\" of ClusterRole \"role\" to User "
            "\"ann\"");
  authorizer_.SetRole({"d", "r"}, {{.verbs = {"list"}, .api_groups = {"*"}, .resources = {"*"}}});
  authorizer_.SetBinding({"d", "b"}, {{"d", "r"}, {Group("dev")}});
  EXPECT_EQ(authorizer_.Decide(Someone("bob", {"dev"}), Asking("list", "", "secrets", "d")).reason,
            "RBAC: allowed by RoleBinding \"b/d\" of Role \"r\" to Group \"dev\"");
}

TEST_F(AuthorizerTest, DeniesInKubernetesWords) {
  const std::pair<RequestInfo, std::string_view> table[] = {
      {Asking("list", kCompute, "machines", "default"),
       R"(machines.compute.ironcore.dev is forbidden: User "x" cannot list resource "machines" in API group "compute.ironcore.dev" in the namespace "default")"},
      {Asking("get", "", "secrets", "default", "s"),
       R"(secrets "s" is forbidden: User "x" cannot get resource "secrets" in API group "" in the namespace "default")"},
      {Asking("update", kCompute, "machinepools", "", "p", "status"),
       R"(machinepools.compute.ironcore.dev "p" is forbidden: User "x" cannot update resource "machinepools/status" in API group "compute.ironcore.dev" at the cluster scope)"},
      {AskingPath("get", "/metrics"), R"(forbidden: User "x" cannot get path "/metrics")"},
  };
  for (const auto& [request, message] : table) {
    Status status = authorizer_.Check(Someone("x"), request);
    EXPECT_TRUE(status.Is(Reason::kForbidden));
    EXPECT_EQ(status.message(), message);
    EXPECT_EQ(status.object().kind, request.resource);
  }
}

// Measured, not asserted: a user of three groups in a cluster with many bindings.
TEST_F(AuthorizerTest, CostOfACheckIsPrinted) {
  for (const auto& role : DefaultRoles(TestScheme())) {
    authorizer_.SetRole({"", role.name}, role.rules);
  }
  for (const auto& binding : DefaultBindings()) {
    authorizer_.SetBinding({"", binding.name}, {{"", binding.name}, binding.subjects});
  }
  for (int i = 0; i < 2000; ++i) {
    const std::string ns = "ns-" + std::to_string(i % 500);
    authorizer_.SetBinding({ns, "b-" + std::to_string(i)},
                           {{"", "edit"}, {Group("team-" + std::to_string(i % 50))}});
  }
  Identity ann = Someone("ann", {"team-7", "team-8", "ops"});
  const RequestInfo allowed = Asking("create", kCompute, "machines", "ns-7");
  const RequestInfo denied = Asking("create", kCompute, "machines", "ns-9");
  ASSERT_TRUE(authorizer_.Allows(ann, allowed));
  ASSERT_FALSE(authorizer_.Allows(ann, denied));
  for (const auto* request : {&allowed, &denied}) {
    constexpr int kRounds = 20'000;
    int count = 0;
    const std::clock_t begin = std::clock();
    for (int i = 0; i < kRounds; ++i) count += authorizer_.Allows(ann, *request) ? 1 : 0;
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    printf("%s: %.3f us\n", count > 0 ? "allowed" : "denied", seconds * 1e6 / kRounds);
  }
}

}  // namespace
}  // namespace berth::apiserver
