// SPDX-License-Identifier: Apache-2.0
// Defends: the default roles give what their names promise and nothing more, and completing them
// keeps what an operator has added.
#include "apiserver/authz/default_roles.h"

#include <gtest/gtest.h>

#include "apiserver/authz/covers.h"
#include "apiserver/authz/escalation.h"
#include "apiserver/authz/internal/test_scheme.h"

namespace berth::apiserver {
namespace {

class DefaultRolesTest : public testing::Test {
 protected:
  DefaultRolesTest() {
    for (const auto& role : DefaultRoles(TestScheme())) {
      authorizer_.SetRole({"", role.name}, role.rules);
    }
    for (const auto& binding : DefaultBindings()) {
      authorizer_.SetBinding({"", binding.name}, {{"", binding.name}, binding.subjects});
    }
    for (const char* role : {"admin", "edit", "view"}) {
      authorizer_.SetBinding({"blue", role},
                             {{"", role}, {{.kind = SubjectKind::kUser, .name = role}}});
    }
  }
  bool May(const char* user, const RequestInfo& request) {
    return authorizer_.Allows(Someone(user), request);
  }
  Authorizer authorizer_{TestScheme()};
};

struct Promise {
  RequestInfo request;
  bool view, edit, admin;
};

TEST_F(DefaultRolesTest, GiveWhatTheirNamesPromise) {
  const std::string compute = "compute.OpenKCM.dev";
  const std::string rbac(kRbacGroup);
  const Promise table[] = {
      {Asking("list", compute, "machines", "blue"), true, true, true},
      {Asking("get", compute, "machines", "blue", "m", "status"), true, true, true},
      {Asking("create", compute, "machines", "blue"), false, true, true},
      {Asking("deletecollection", "storage.ironcore.dev", "volumes", "blue"), false, true, true},
      {Asking("update", compute, "machines", "blue", "m", "scale"), false, true, true},
      {Asking("update", compute, "machines", "blue", "m", "status"), false, false, false},
      {Asking("get", "", "secrets", "blue", "s"), false, true, true},
      {Asking("list", "", "secrets", "blue"), false, true, true},
      {Asking("create", "", "secrets", "blue"), false, true, true},
      {Asking("get", "core.ironcore.dev", "resourcequotas", "blue", "q"), true, true, true},
      {Asking("update", "core.ironcore.dev", "resourcequotas", "blue", "q"), false, false, false},
      {Asking("get", rbac, "roles", "blue", "r"), false, false, true},
      {Asking("create", rbac, "rolebindings", "blue"), false, false, true},
      {Asking("bind", rbac, "clusterroles", "blue", "cluster-admin"), false, false, false},
      {Asking("escalate", rbac, "roles", "blue", "r"), false, false, false},
      {Asking("create", rbac, "clusterrolebindings"), false, false, false},
      {Asking("list", compute, "machines", "red"), false, false, false},
      {Asking("list", compute, "machines"), false, false, false},
      {Asking("impersonate", "", "users", "", "x"), false, false, false},
      {AskingPath("get", "/metrics"), false, false, false},
      {AskingPath("get", "/version"), true, true, true},
      {AskingPath("get", "/apis/compute.ironcore.dev"), true, true, true},
      {Asking("create", "authorization.k8s.io", "selfsubjectaccessreviews"), true, true, true},
      {Asking("create", "authorization.k8s.io", "subjectaccessreviews"), false, false, false},
  };
  for (const auto& [request, view, edit, admin] : table) {
    const std::string what = request.verb + " " + request.resource + " " + request.path;
    EXPECT_EQ(May("view", request), view) << what;
    EXPECT_EQ(May("edit", request), edit) << what;
    EXPECT_EQ(May("admin", request), admin) << what;
    EXPECT_TRUE(authorizer_.Allows(Someone("r", {"system:masters"}), request)) << what;
  }
}

TEST_F(DefaultRolesTest, AnonymousSeesHealthAndVersionOnly) {
  Identity anonymous{.user = "system:anonymous", .groups = {"system:unauthenticated"}};
  for (const char* path : {"/livez", "/readyz", "/healthz", "/version", "/livez/ping"}) {
    EXPECT_TRUE(authorizer_.Allows(anonymous, AskingPath("get", path))) << path;
    EXPECT_FALSE(authorizer_.Allows(anonymous, AskingPath("post", path))) << path;
  }
  for (const char* path : {"/api", "/apis", "/metrics", "/openapi/v2", "/"}) {
    EXPECT_FALSE(authorizer_.Allows(anonymous, AskingPath("get", path))) << path;
  }
  EXPECT_FALSE(authorizer_.Allows(anonymous, Asking("list", "", "secrets")));
}

TEST_F(DefaultRolesTest, EachRoleHoldsTheOneBelow) {
  auto rules = [this](const char* name) { return *authorizer_.FindRole({"", name}); };
  EXPECT_TRUE(Uncovered(rules("edit"), rules("view"))->empty());
  EXPECT_TRUE(Uncovered(rules("admin"), rules("edit"))->empty());
  EXPECT_TRUE(Uncovered(rules("cluster-admin"), rules("admin"))->empty());
  EXPECT_FALSE(Uncovered(rules("view"), rules("edit"))->empty());
  EXPECT_FALSE(Uncovered(rules("edit"), rules("admin"))->empty());
}

TEST_F(DefaultRolesTest, AnAdminMayHandOutItsOwnRoleButNotMore) {
  auto bind = [this](const char* role) {
    return CheckBindingWrite(authorizer_, Someone("admin"), {"blue", "b"}, {{"", role}, {}});
  };
  EXPECT_TRUE(bind("admin").ok());
  EXPECT_TRUE(bind("view").ok());
  EXPECT_FALSE(bind("cluster-admin").ok());
  EXPECT_FALSE(bind("system:monitoring").ok());
}

TEST_F(DefaultRolesTest, CompletingAddsWhatIsMissingAndKeepsTheRest) {
  const PolicyRule ours{
      .verbs = {"get"}, .api_groups = {"compute.ironcore.dev"}, .resources = {"a"}};
  const PolicyRule theirs{.verbs = {"get"}, .api_groups = {"example.org"}, .resources = {"b"}};
  PolicyRule alias = ours;
  alias.api_groups = {"compute.openkcm.dev"};
  EXPECT_EQ(CompleteRules({theirs, ours}, {ours}, TestScheme()), std::nullopt);
  EXPECT_EQ(CompleteRules({alias}, {ours}, TestScheme()), std::nullopt);
  EXPECT_EQ(CompleteRules({theirs}, {ours}, TestScheme()), (std::vector{theirs, ours}));
  EXPECT_EQ(CompleteRules({}, {ours}, TestScheme()), std::vector{ours});
  for (const auto& role : DefaultRoles(TestScheme())) {
    EXPECT_EQ(CompleteRules(role.rules, role.rules, TestScheme()), std::nullopt) << role.name;
  }
}

}  // namespace
}  // namespace berth::apiserver
