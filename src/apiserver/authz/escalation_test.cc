// SPDX-License-Identifier: Apache-2.0
// Defends: nobody becomes more powerful by writing a role, a binding or a token, nor by pretending
// to be someone else.
#include "apiserver/authz/escalation.h"

#include <gtest/gtest.h>

#include "apis/k8s/secret.h"
#include "apiserver/authz/covers.h"
#include "apiserver/authz/impersonation.h"
#include "apiserver/authz/internal/test_scheme.h"
#include "pki/join_token.h"
#include "pki/token.h"

namespace berth::apiserver {
namespace {

using Rules = std::vector<PolicyRule>;

const PolicyRule kReadMachines{
    .verbs = {"get", "list"}, .api_groups = {"compute.ironcore.dev"}, .resources = {"machines"}};
const PolicyRule kEverything{.verbs = {"*"}, .api_groups = {"*"}, .resources = {"*"}};

TEST(Covers, ARightIsHeldOnlyByASingleRuleThatHoldsItWhole) {
  struct Case {
    std::string_view what;
    Rules held, wanted;
    size_t missing;
  };
  const PolicyRule a{.verbs = {"get"}, .api_groups = {"a"}, .resources = {"r"}};
  auto with = [&a](auto change) {
    PolicyRule rule = a;
    change(rule);
    return rule;
  };
  const PolicyRule b = with([](auto& r) { r.api_groups = {"b"}; });
  const Case table[] = {
      {"same", {a}, {a}, 0},
      {"nothing wanted", {}, {}, 0},
      {"nothing held", {}, {a}, 1},
      {"another group", {b}, {a}, 1},
      {"put together from two rules",
       {a, b},
       {with([](auto& r) { r.api_groups = {"a", "b"}; })},
       0},
      {"two rules do not make one right",
       {with([](auto& r) { r.verbs = {"list"}; }), with([](auto& r) { r.resources = {"x"}; })},
       {a},
       1},
      {"star verb", {with([](auto& r) { r.verbs = {"*"}; })}, {a}, 0},
      {"star wanted", {a}, {with([](auto& r) { r.verbs = {"*"}; })}, 1},
      {"all verbs are not the star",
       {with([](auto& r) { r.verbs = {"get", "list", "watch", "create"}; })},
       {with([](auto& r) { r.verbs = {"*"}; })},
       1},
      {"everything covers everything", {kEverything}, {kEverything}, 0},
      {"names within all", {a}, {with([](auto& r) { r.resource_names = {"x"}; })}, 0},
      {"all within names", {with([](auto& r) { r.resource_names = {"x"}; })}, {a}, 1},
      {"some of the names",
       {with([](auto& r) { r.resource_names = {"x"}; })},
       {with([](auto& r) { r.resource_names = {"x", "y"}; })},
       1},
      {"star subresource",
       {with([](auto& r) { r.resources = {"*/status"}; })},
       {with([](auto& r) { r.resources = {"r/status"}; })},
       0},
      {"resource without its subresource",
       {a},
       {with([](auto& r) { r.resources = {"r/status"}; })},
       1},
      {"star resource covers subresources",
       {with([](auto& r) { r.resources = {"*"}; })},
       {with([](auto& r) { r.resources = {"r/status"}; })},
       0},
      {"breakdown counts",
       {a},
       {{.verbs = {"get", "list"}, .api_groups = {"a", "b"}, .resources = {"r", "s"}}},
       7},
      {"paths",
       {{.verbs = {"get"}, .non_resource_urls = {"/metrics/*"}}},
       {{.verbs = {"get"}, .non_resource_urls = {"/metrics/a", "/metrics"}}},
       1},
      {"paths are no resources",
       {kEverything},
       {{.verbs = {"get"}, .non_resource_urls = {"/a"}}},
       1},
  };
  for (const Case& c : table) {
    auto missing = Uncovered(c.held, c.wanted);
    ASSERT_TRUE(missing.ok()) << c.what;
    EXPECT_EQ(missing->size(), c.missing) << c.what;
  }
}

TEST(Covers, ARoleThatSpellsOutTooMuchIsRefusedInsteadOfWorkedThrough) {
  PolicyRule huge;
  for (int i = 0; i < 3000; ++i) {
    huge.verbs.push_back("v" + std::to_string(i));
    huge.api_groups.push_back("g" + std::to_string(i));
    huge.resources.push_back("r" + std::to_string(i));
  }
  auto missing = Uncovered({kReadMachines}, {huge});
  ASSERT_FALSE(missing.ok());
  EXPECT_TRUE(missing.status().Is(Reason::kRequestTooLarge));
  EXPECT_TRUE(Uncovered({kEverything}, {huge}).value().empty());
}

class EscalationTest : public testing::Test {
 protected:
  void Give(const std::string& user, Rules rules, const std::string& namespace_ = "") {
    const PolicyKey key{namespace_, user + "-" + std::to_string(count_++)};
    authorizer_.SetRole(key, rules);
    authorizer_.SetBinding(key, {key, {{.kind = SubjectKind::kUser, .name = user}}});
  }
  static PolicyRule Verb(const std::string& verb, const std::string& resource) {
    return {.verbs = {verb}, .api_groups = {std::string(kRbacGroup)}, .resources = {resource}};
  }

  Authorizer authorizer_{TestScheme()};
  int count_ = 0;
};

TEST_F(EscalationTest, ARoleMayHoldWhatItsWriterHolds) {
  Give("ann", {kReadMachines}, "blue");
  Identity ann = Someone("ann");
  EXPECT_TRUE(CheckRoleWrite(authorizer_, ann, {"blue", "r"}, {.rules = {kReadMachines}}).ok());
  PolicyRule alias = kReadMachines;
  alias.api_groups = {"compute.OpenKCM.dev"};
  EXPECT_TRUE(CheckRoleWrite(authorizer_, ann, {"blue", "r"}, {.rules = {alias}}).ok());
  EXPECT_FALSE(CheckRoleWrite(authorizer_, ann, {"red", "r"}, {.rules = {kReadMachines}}).ok());
  EXPECT_FALSE(CheckRoleWrite(authorizer_, ann, {"", "r"}, {.rules = {kReadMachines}}).ok());
  EXPECT_FALSE(CheckRoleWrite(authorizer_, ann, {"blue", "r"}, {.rules = {kEverything}}).ok());
  EXPECT_TRUE(CheckRoleWrite(authorizer_, ann, {"blue", "r"}, {.rules = {}}).ok());
}

TEST_F(EscalationTest, TheMessageNamesWhatIsMissing) {
  PolicyRule wanted = kReadMachines;
  wanted.verbs = {"delete"};
  Status status =
      CheckRoleWrite(authorizer_, Someone("ann", {"dev"}), {"blue", "r"}, {.rules = {wanted}});
  EXPECT_TRUE(status.Is(Reason::kForbidden));
  EXPECT_EQ(status.message(),
            "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"ann\" (groups=[\"dev\" "
            "\"system:authenticated\"]) is attempting to grant RBAC permissions not currently "
            "held:\n{APIGroups:[\"compute.ironcore.dev\"], Resources:[\"machines\"], "
            "Verbs:[\"delete\"]}");
}

TEST_F(EscalationTest, EscalateAndMastersPass) {
  Give("ann", {Verb("escalate", "roles")}, "blue");
  EXPECT_TRUE(
      CheckRoleWrite(authorizer_, Someone("ann"), {"blue", "r"}, {.rules = {kEverything}}).ok());
  EXPECT_FALSE(
      CheckRoleWrite(authorizer_, Someone("ann"), {"red", "r"}, {.rules = {kEverything}}).ok());
  EXPECT_FALSE(
      CheckRoleWrite(authorizer_, Someone("ann"), {"", "r"}, {.rules = {kEverything}}).ok());
  Identity root = Someone("root", {"system:masters"});
  EXPECT_TRUE(CheckRoleWrite(authorizer_, root, {"", "r"}, {.rules = {kEverything}}).ok());
}

TEST_F(EscalationTest, ABindingMayGiveWhatItsWriterHolds) {
  authorizer_.SetRole({"", "all"}, {kEverything});
  authorizer_.SetRole({"", "read"}, {kReadMachines});
  Give("ann", {kReadMachines}, "blue");
  Identity ann = Someone("ann");
  EXPECT_TRUE(CheckBindingWrite(authorizer_, ann, {"blue", "b"}, {{"", "read"}, {}}).ok());
  EXPECT_FALSE(CheckBindingWrite(authorizer_, ann, {"", "b"}, {{"", "read"}, {}}).ok());
  EXPECT_FALSE(CheckBindingWrite(authorizer_, ann, {"red", "b"}, {{"", "read"}, {}}).ok());
  EXPECT_FALSE(CheckBindingWrite(authorizer_, ann, {"blue", "b"}, {{"", "all"}, {}}).ok());
  EXPECT_TRUE(CheckBindingWrite(authorizer_, ann, {"blue", "b"}, {{"", "missing"}, {}})
                  .Is(Reason::kNotFound));
}

TEST_F(EscalationTest, BindCountsWhereTheBindingIs) {
  authorizer_.SetRole({"", "all"}, {kEverything});
  PolicyRule bind = Verb("bind", "clusterroles");
  bind.resource_names = {"all", "missing"};
  Give("ann", {bind}, "blue");
  Identity ann = Someone("ann");
  EXPECT_TRUE(CheckBindingWrite(authorizer_, ann, {"blue", "b"}, {{"", "all"}, {}}).ok());
  EXPECT_TRUE(CheckBindingWrite(authorizer_, ann, {"blue", "b"}, {{"", "missing"}, {}}).ok());
  EXPECT_FALSE(CheckBindingWrite(authorizer_, ann, {"red", "b"}, {{"", "all"}, {}}).ok());
  EXPECT_FALSE(CheckBindingWrite(authorizer_, ann, {"", "b"}, {{"", "all"}, {}}).ok());
  authorizer_.SetRole({"blue", "all"}, {kEverything});
  EXPECT_FALSE(CheckBindingWrite(authorizer_, ann, {"blue", "b"}, {{"blue", "all"}, {}}).ok())
      << "the right to bind a ClusterRole is not the right to bind a Role of the same name";
}

TEST_F(EscalationTest, ATokenStandsOnlyForWhomItsWriterMayImpersonate) {
  auto token =
      pki::MakeToken(pki::SystemEntropy(), "bob", {"dev", "ops"}, std::nullopt, WallTime()).value();
  auto check = [&](const Identity& who) {
    return CheckTokenWrite(authorizer_, who, token.secret.name, token.secret.data);
  };
  // May write every Secret, which must not be enough.
  Give("ann", {{.verbs = {"*"}, .api_groups = {""}, .resources = {"secrets"}}});
  Status status = check(Someone("ann"));
  EXPECT_TRUE(status.Is(Reason::kForbidden));
  EXPECT_EQ(status.message(),
            "users \"bob\" is forbidden: User \"ann\" cannot impersonate resource \"users\" in API "
            "group \"\" at the cluster scope");
  PolicyRule users{.verbs = {"impersonate"}, .api_groups = {""}, .resources = {"users"}};
  Give("ann", {users});
  EXPECT_FALSE(check(Someone("ann")).ok()) << "groups count too";
  PolicyRule groups{.verbs = {"impersonate"},
                    .api_groups = {""},
                    .resources = {"groups"},
                    .resource_names = {"dev"}};
  Give("ann", {groups});
  EXPECT_FALSE(check(Someone("ann")).ok()) << "every group";
  groups.resource_names = {"ops"};
  Give("ann", {groups});
  EXPECT_TRUE(check(Someone("ann")).ok());
  EXPECT_TRUE(check(Someone("root", {"system:masters"})).ok());
}

TEST_F(EscalationTest, ADamagedTokenIsRefusedForEveryoneWithoutShowingItsHash) {
  auto token = pki::MakeToken(pki::SystemEntropy(), "bob", {}, std::nullopt, WallTime()).value();
  token.secret.data["user"] = "";
  Status status = CheckTokenWrite(
      authorizer_, Someone("root", {"system:masters"}), token.secret.name, token.secret.data);
  EXPECT_TRUE(status.Is(Reason::kBadRequest));
  EXPECT_EQ(status.message().find(token.secret.data["hash"]), std::string::npos);
}

TEST_F(EscalationTest, AJoinTokenNeedsMoreThanTheRightToWriteEverySecret) {
  apis::k8s::Secret secret;
  secret.metadata.namespace_ = "berth-system";
  secret.metadata.name = "join-token-bcdfghjkmn";
  secret.type = pki::kJoinTokenSecretType;
  const meta::Object token = meta::Object::Of(apis::k8s::kSecretKind, std::move(secret));
  PolicyRule rule{.verbs = {"create", "delete", "get", "patch", "update", "administrate"},
                  .api_groups = {""},
                  .resources = {"secrets"}};
  Give("ann", {rule});
  const Status status = CheckPrivilegedWrite(authorizer_, Someone("ann"), nullptr, token);
  EXPECT_TRUE(status.Is(Reason::kForbidden));
  EXPECT_EQ(status.message(),
            "secrets \"join-token-bcdfghjkmn\" is forbidden: User \"ann\" cannot administer "
            "resource \"secrets\" in API group \"\" in the namespace \"berth-system\"");
  EXPECT_FALSE(CheckPrivilegedWrite(authorizer_, Someone("ann"), &token, token).ok());
  rule.verbs = {"administer"};
  Give("bob", {rule}, "blue");
  EXPECT_FALSE(CheckPrivilegedWrite(authorizer_, Someone("bob"), nullptr, token).ok());
  Give("bob", {rule}, "berth-system");
  EXPECT_TRUE(CheckPrivilegedWrite(authorizer_, Someone("bob"), nullptr, token).ok());
  EXPECT_TRUE(
      CheckPrivilegedWrite(authorizer_, Someone("root", {"system:masters"}), nullptr, token).ok());
}

class ImpersonationTest : public EscalationTest {
 protected:
  using Headers = std::vector<net::Header>;
  Result<std::optional<Identity>> As(const Headers& headers) {
    return Impersonate(authorizer_, Someone("ann"), headers);
  }
};

TEST_F(ImpersonationTest, WithoutHeadersNothingChanges) {
  auto identity = As({{"Accept", "*/*"}, {"X-Impersonate-User", "bob"}});
  ASSERT_TRUE(identity.ok());
  EXPECT_FALSE(identity->has_value());
}

TEST_F(ImpersonationTest, WithoutTheRightEveryHeaderIsRefused) {
  for (const Headers& headers :
       {Headers{{"Impersonate-User", "bob"}},
        Headers{{"impersonate-user", "ann"}},
        Headers{{"IMPERSONATE-USER", "bob"}, {"Impersonate-Group", "dev"}}}) {
    EXPECT_TRUE(As(headers).status().Is(Reason::kForbidden));
  }
}

TEST_F(ImpersonationTest, EveryPartNeedsItsRight) {
  auto core = [](const char* resource) {
    return PolicyRule{.verbs = {"impersonate"}, .api_groups = {""}, .resources = {resource}};
  };
  auto authentication = [](const char* resource) {
    return PolicyRule{
        .verbs = {"impersonate"}, .api_groups = {"authentication.k8s.io"}, .resources = {resource}};
  };
  const Headers user = {{"Impersonate-User", "bob"}};
  Headers group = user;
  group.push_back({"Impersonate-Group", "dev"});
  Headers uid = user;
  uid.push_back({"Impersonate-Uid", "1"});
  Headers extra = user;
  extra.push_back({"Impersonate-Extra-Acme%2fScope", "x"});
  Give("ann", {core("users")});
  EXPECT_TRUE(As(user).ok());
  EXPECT_FALSE(As(group).ok());
  EXPECT_FALSE(As(uid).ok());
  EXPECT_FALSE(As(extra).ok());
  Give("ann", {core("groups"), authentication("uids"), authentication("userextras/acme/scope")});
  EXPECT_EQ(As(group).value()->groups, (std::vector<std::string>{"dev", "system:authenticated"}));
  EXPECT_EQ(As(uid).value()->uid, "1");
  EXPECT_EQ(As(extra).value()->extra.at("acme/scope"), std::vector<std::string>{"x"});
}

TEST_F(ImpersonationTest, MalformedHeadersAreRefusedEvenForMasters) {
  Identity root = Someone("root", {"system:masters"});
  for (const Headers& headers : {Headers{{"Impersonate-Group", "dev"}},
                                 Headers{{"Impersonate-User", ""}},
                                 Headers{{"Impersonate-User", "a"}, {"Impersonate-User", "b"}},
                                 Headers{{"Impersonate-User", "a"}, {"Impersonate-Nothing", "b"}},
                                 Headers{{"Impersonate-User", "a"}, {"Impersonate-Extra-", "b"}}}) {
    EXPECT_TRUE(Impersonate(authorizer_, root, headers).status().Is(Reason::kBadRequest));
  }
}

TEST_F(ImpersonationTest, TheAnonymousUserStaysUnauthenticated) {
  Identity root = Someone("root", {"system:masters"});
  const Headers headers = {{"Impersonate-User", "system:anonymous"}};
  EXPECT_EQ(Impersonate(authorizer_, root, headers).value()->groups,
            std::vector<std::string>{"system:unauthenticated"});
}

}  // namespace
}  // namespace berth::apiserver
