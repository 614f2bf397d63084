// SPDX-License-Identifier: Apache-2.0
// Defends: policy objects mean what they say, default policy completes what is there without taking
// anything away, reviews answer like the Authorizer, and the guard on writes looks at every kind
// that could give rights.
#include "apiserver/authz/policy_objects.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "apis/k8s/access_review.h"
#include "apis/k8s/role.h"
#include "apis/k8s/role_binding.h"
#include "apis/k8s/secret.h"
#include "apis/registry.h"
#include "apiserver/authz/default_roles.h"
#include "apiserver/authz/escalation.h"
#include "apiserver/authz/internal/test_scheme.h"
#include "apiserver/authz/reviews.h"
#include "pki/token.h"

namespace berth::apiserver {
namespace {

namespace k8s = apis::k8s;

const meta::Scheme& RealScheme() {
  static const meta::Scheme scheme(apis::AllKinds(), {"ironcore.dev", "OpenKCM.dev"});
  return scheme;
}

const PolicyRule kReadSecrets{.verbs = {"get"}, .api_groups = {""}, .resources = {"secrets"}};

meta::Object MakeRole(std::string namespace_, std::string name, std::vector<PolicyRule> rules) {
  k8s::Role role;
  role.metadata.namespace_ = std::move(namespace_);
  role.metadata.name = std::move(name);
  role.rules = std::move(rules);
  return meta::Object::Of(k8s::kRoleKind, std::move(role));
}

meta::Object MakeClusterRole(std::string name, std::vector<PolicyRule> rules) {
  k8s::ClusterRole role;
  role.metadata.name = std::move(name);
  role.rules = std::move(rules);
  return meta::Object::Of(k8s::kClusterRoleKind, std::move(role));
}

meta::Object MakeBinding(std::string namespace_, std::string role_kind, std::string role) {
  k8s::RoleBinding binding;
  binding.metadata.namespace_ = std::move(namespace_);
  binding.metadata.name = "b";
  binding.role_ref = {.kind = std::move(role_kind), .name = std::move(role)};
  binding.subjects = {{.kind = "User", .name = "ann"},
                      {.kind = "Group", .name = "dev"},
                      {.kind = "ServiceAccount", .name = "robot", .namespace_ = "d"},
                      {.kind = "Alien", .name = "bob"}};
  return meta::Object::Of(k8s::kRoleBindingKind, std::move(binding));
}

class PolicyObjectsTest : public testing::Test {
 protected:
  Authorizer authorizer_{RealScheme()};
  const Identity root_ = Someone("root", {"system:masters"});
  const RequestInfo get_secret_ = Asking("get", "", "secrets", "d", "x");
};

TEST_F(PolicyObjectsTest, EventsBuildAndTakeDownPolicy) {
  const meta::Object role = MakeRole("d", "r", {kReadSecrets});
  const meta::Object binding = MakeBinding("d", "Role", "r");
  OnPolicyChanged(authorizer_, binding);
  OnPolicyChanged(authorizer_, role);
  EXPECT_TRUE(authorizer_.Allows(Someone("ann"), get_secret_));
  EXPECT_TRUE(authorizer_.Allows(Someone("x", {"dev"}), get_secret_));
  EXPECT_FALSE(authorizer_.Allows(Someone("robot"), get_secret_));
  EXPECT_FALSE(authorizer_.Allows(Someone("bob", {"bob"}), get_secret_));
  OnPolicyDeleted(authorizer_, role);
  EXPECT_FALSE(authorizer_.Allows(Someone("ann"), get_secret_));
  OnPolicyChanged(authorizer_, MakeClusterRole("r", {kReadSecrets}));
  EXPECT_FALSE(authorizer_.Allows(Someone("ann"), get_secret_)) << "a Role is not a ClusterRole";
  OnPolicyChanged(authorizer_, MakeBinding("d", "ClusterRole", "r"));
  EXPECT_TRUE(authorizer_.Allows(Someone("ann"), get_secret_));
  OnPolicyDeleted(authorizer_, binding);
  EXPECT_FALSE(authorizer_.Allows(Someone("ann"), get_secret_));
}

TEST_F(PolicyObjectsTest, AnAggregatingRoleGrantsWhatItSelectsThroughEveryChange) {
  auto labelled = [](const char* name, const char* label, std::vector<PolicyRule> rules) {
    meta::Object role = MakeClusterRole(name, std::move(rules));
    role.metadata().labels[label] = "true";
    return role;
  };
  auto aggregating = [](meta::Object role, const char* label) {
    role.as<k8s::ClusterRole>().aggregation_rule.emplace();
    role.as<k8s::ClusterRole>().aggregation_rule->cluster_role_selectors = {
        {.match_labels = {{label, "true"}}}};
    return role;
  };
  auto may = [&] { return authorizer_.Allows(Someone("ann"), get_secret_); };
  OnPolicyChanged(authorizer_, aggregating(MakeClusterRole("top", {}), "to-top"));
  OnPolicyChanged(authorizer_, MakeBinding("d", "ClusterRole", "top"));
  EXPECT_FALSE(may());
  OnPolicyChanged(authorizer_, labelled("leaf", "to-top", {kReadSecrets}));
  EXPECT_TRUE(may());
  OnPolicyChanged(authorizer_, labelled("leaf", "elsewhere", {kReadSecrets}));
  EXPECT_FALSE(may());
  // Through a second step, and in a circle.
  OnPolicyChanged(authorizer_, aggregating(labelled("middle", "to-top", {}), "elsewhere"));
  EXPECT_TRUE(may());
  OnPolicyChanged(authorizer_,
                  aggregating(labelled("leaf", "elsewhere", {kReadSecrets}), "to-top"));
  EXPECT_TRUE(may());
  OnPolicyDeleted(authorizer_, MakeClusterRole("middle", {}));
  EXPECT_FALSE(may());
  OnPolicyChanged(authorizer_, labelled("leaf", "to-top", {kReadSecrets}));
  EXPECT_TRUE(may());
  OnPolicyChanged(authorizer_, MakeClusterRole("top", {}));
  EXPECT_FALSE(may());
}

TEST_F(PolicyObjectsTest, DefaultPolicyIsCompleteOnceApplied) {
  auto policy = DefaultPolicy(RealScheme());
  EXPECT_EQ(policy.size(), DefaultRoles(RealScheme()).size() + DefaultBindings().size());
  for (const auto& object : policy) {
    EXPECT_FALSE(CompletePolicy(RealScheme(), object, object).has_value());
    EXPECT_EQ(object.metadata().annotations.at(std::string(kAutoUpdateAnnotation)), "true");
    OnPolicyChanged(authorizer_, object);
  }
  EXPECT_TRUE(authorizer_.Allows(Someone("x"), AskingPath("get", "/apis")));
  EXPECT_FALSE(authorizer_.Allows(Someone("x"), get_secret_));
}

TEST_F(PolicyObjectsTest, EveryServedKindIsInTheRolesItBelongsTo) {
  for (const auto& object : DefaultPolicy(RealScheme())) OnPolicyChanged(authorizer_, object);
  for (const char* role : {"view", "edit", "admin"}) {
    authorizer_.SetBinding({"", role}, {{"", role}, {{.kind = SubjectKind::kUser, .name = role}}});
  }
  for (const meta::KindInfo* kind : RealScheme().kinds()) {
    if (kind->storage != meta::Storage::kStored) continue;
    const std::string group = RealScheme().GroupOf(*kind);
    const std::string plural(kind->plural);
    const bool is_rbac = group == kRbacGroup;
    const bool is_secret = plural == "secrets";
    const bool is_quota = plural == "resourcequotas";
    const bool is_namespaced = kind->scope == meta::Scope::kNamespaced;
    auto may = [&](const char* user, const char* verb) {
      return authorizer_.Allows(Someone(user), Asking(verb, group, plural, "d", "x"));
    };
    EXPECT_EQ(may("view", "get"), !is_rbac && !is_secret) << plural;
    EXPECT_EQ(may("view", "create"), false) << plural;
    EXPECT_EQ(may("edit", "get"), !is_rbac) << plural;
    EXPECT_EQ(may("edit", "create"), is_namespaced && !is_rbac && !is_quota) << plural;
    EXPECT_EQ(may("admin", "delete"), is_namespaced && !is_quota) << plural;
  }
}

TEST_F(PolicyObjectsTest, CompletingKeepsWhatTheOperatorAdded) {
  auto policy = DefaultPolicy(RealScheme());
  const meta::Object& wanted = policy.front();
  meta::Object current = MakeClusterRole(wanted.metadata().name, {kReadSecrets});
  current.metadata().labels["mine"] = "yes";
  current.metadata().resource_version = "7";
  auto completed = CompletePolicy(RealScheme(), current, wanted);
  ASSERT_TRUE(completed.has_value());
  const auto& rules = completed->as<k8s::ClusterRole>().rules;
  EXPECT_EQ(rules.front(), kReadSecrets);
  EXPECT_GT(rules.size(), 1U);
  EXPECT_EQ(completed->metadata().labels.at("mine"), "yes");
  EXPECT_EQ(completed->metadata().resource_version, "7");
  EXPECT_FALSE(CompletePolicy(RealScheme(), *completed, wanted).has_value());
  current.metadata().annotations[std::string(kAutoUpdateAnnotation)] = "false";
  EXPECT_FALSE(CompletePolicy(RealScheme(), current, wanted).has_value());
}

TEST_F(PolicyObjectsTest, CompletingABindingAddsSubjectsButNeverChangesItsRole) {
  auto policy = DefaultPolicy(RealScheme());
  const meta::Object& wanted = policy.back();
  meta::Object current = wanted;
  current.as<k8s::ClusterRoleBinding>().subjects = {{.kind = "User", .name = "ann"}};
  auto completed = CompletePolicy(RealScheme(), current, wanted);
  ASSERT_TRUE(completed.has_value());
  EXPECT_EQ(completed->as<k8s::ClusterRoleBinding>().subjects.size(), 2U);
  current.as<k8s::ClusterRoleBinding>().role_ref.name = "view";
  EXPECT_FALSE(CompletePolicy(RealScheme(), current, wanted).has_value());
}

TEST_F(PolicyObjectsTest, TheGuardLooksAtEveryKindThatCouldGiveRights) {
  auto token =
      pki::MakeToken(pki::SystemEntropy(), "bob", {"system:masters"}, std::nullopt, WallTime())
          .value();
  k8s::Secret secret;
  secret.metadata.name = token.secret.name;
  secret.metadata.namespace_ = "berth-system";
  secret.type = "berth.dev/token";
  for (const auto& [key, value] : token.secret.data) secret.data[key].bytes = value;
  // The user is hidden where a client may write it as text.
  secret.string_data["user"] = "carl";
  k8s::ClusterRole aggregating;
  aggregating.metadata.name = "agg";
  aggregating.aggregation_rule.emplace();
  aggregating.aggregation_rule->cluster_role_selectors = {{}};
  k8s::ClusterRoleBinding cluster_binding;
  cluster_binding.metadata.name = "cb";
  cluster_binding.role_ref = {.kind = "ClusterRole", .name = "r"};
  OnPolicyChanged(authorizer_, MakeClusterRole("r", {kReadSecrets}));
  const std::vector<meta::Object> objects = {
      MakeRole("d", "r", {kReadSecrets}),
      MakeClusterRole("r", {kReadSecrets}),
      MakeBinding("d", "ClusterRole", "r"),
      meta::Object::Of(k8s::kClusterRoleBindingKind, cluster_binding),
      meta::Object::Of(k8s::kClusterRoleKind, aggregating),
      meta::Object::Of(k8s::kSecretKind, secret)};
  const Identity ann = Someone("ann");
  for (const auto& object : objects) {
    SCOPED_TRACE(object.kind().kind);
    EXPECT_TRUE(CheckPrivilegedWrite(authorizer_, ann, nullptr, object).Is(Reason::kForbidden));
    EXPECT_TRUE(CheckPrivilegedWrite(authorizer_, root_, nullptr, object).ok());
    // A change of labels is enough to need the rights: aggregation goes by them.
    meta::Object relabelled = object;
    relabelled.metadata().labels["a"] = "b";
    EXPECT_FALSE(CheckPrivilegedWrite(authorizer_, ann, &object, relabelled).ok());
    meta::Object released = object;
    released.metadata().finalizers = {"x"};
    EXPECT_TRUE(CheckPrivilegedWrite(authorizer_, ann, &released, object).ok());
  }
  Status status = CheckPrivilegedWrite(authorizer_, ann, nullptr, objects.back());
  EXPECT_NE(status.message().find("users \"carl\""), std::string::npos) << status;
}

TEST_F(PolicyObjectsTest, TheGuardLeavesOtherObjectsAlone) {
  k8s::Secret secret;
  secret.metadata.name = "s";
  secret.type = "Opaque";
  EXPECT_TRUE(CheckPrivilegedWrite(authorizer_,
                                   Someone("ann"),
                                   nullptr,
                                   meta::Object::Of(k8s::kSecretKind, std::move(secret)))
                  .ok());
}

TEST_F(PolicyObjectsTest, ReviewsAnswerForTheRightSubject) {
  OnPolicyChanged(
      authorizer_,
      MakeRole(
          "d",
          "r",
          {{.verbs = {"get"}, .api_groups = {"compute.ironcore.dev"}, .resources = {"machines"}}}));
  OnPolicyChanged(authorizer_, MakeBinding("d", "Role", "r"));
  const k8s::ResourceAttributes asked{
      .namespace_ = "d", .verb = "get", .group = "Compute.OpenKCM.dev", .resource = "machines"};

  k8s::SelfSubjectAccessReview self;
  self.spec.resource_attributes = asked;
  auto object = meta::Object::Of(k8s::kSelfSubjectAccessReviewKind, self);
  ASSERT_TRUE(AnswerReview(authorizer_, Someone("ann"), object).ok());
  EXPECT_TRUE(object.as<k8s::SelfSubjectAccessReview>().status.allowed);
  EXPECT_EQ(object.as<k8s::SelfSubjectAccessReview>().status.reason,
            "RBAC: allowed by RoleBinding \"b/d\" of Role \"r\" to User \"ann\"");
  ASSERT_TRUE(AnswerReview(authorizer_, Someone("bob"), object).ok());
  EXPECT_FALSE(object.as<k8s::SelfSubjectAccessReview>().status.allowed);

  k8s::SubjectAccessReview other;
  other.spec.resource_attributes = asked;
  other.spec.groups = {"dev"};
  object = meta::Object::Of(k8s::kSubjectAccessReviewKind, other);
  ASSERT_TRUE(AnswerReview(authorizer_, root_, object).ok());
  EXPECT_TRUE(object.as<k8s::SubjectAccessReview>().status.allowed);
  other.spec.groups = {"ops"};
  object = meta::Object::Of(k8s::kSubjectAccessReviewKind, other);
  ASSERT_TRUE(AnswerReview(authorizer_, root_, object).ok());
  EXPECT_FALSE(object.as<k8s::SubjectAccessReview>().status.allowed)
      << "the sender's own rights do not count";

  k8s::LocalSubjectAccessReview local;
  local.spec.resource_attributes = asked;
  local.spec.user = "ann";
  object = meta::Object::Of(k8s::kLocalSubjectAccessReviewKind, local);
  ASSERT_TRUE(AnswerReview(authorizer_, root_, object).ok());
  EXPECT_TRUE(object.as<k8s::LocalSubjectAccessReview>().status.allowed);
}

TEST_F(PolicyObjectsTest, RulesReviewListsEachRuleOnce) {
  for (const auto& object : DefaultPolicy(RealScheme())) OnPolicyChanged(authorizer_, object);
  OnPolicyChanged(authorizer_, MakeBinding("d", "ClusterRole", "view"));
  k8s::SelfSubjectRulesReview review;
  review.spec.namespace_ = "d";
  auto object = meta::Object::Of(k8s::kSelfSubjectRulesReviewKind, review);
  ASSERT_TRUE(AnswerReview(authorizer_, Someone("ann", {"dev"}), object).ok());
  const auto& status = object.as<k8s::SelfSubjectRulesReview>().status;
  EXPECT_FALSE(status.resource_rules.empty());
  EXPECT_FALSE(status.non_resource_rules.empty());
  EXPECT_FALSE(status.incomplete);
  for (const auto& rule : status.resource_rules) {
    EXPECT_EQ(std::ranges::count(status.resource_rules, rule), 1);
  }
}

TEST_F(PolicyObjectsTest, ARulesReviewOfAPoolSaysThatItIsIncomplete) {
  auto object = meta::Object::Of(k8s::kSelfSubjectRulesReviewKind, k8s::SelfSubjectRulesReview());
  const Identity pool = Someone("compute.ironcore.dev:system:machinepool:a",
                                {"compute.ironcore.dev:system:machinepools"});
  ASSERT_TRUE(AnswerReview(authorizer_, pool, object).ok());
  const auto& status = object.as<k8s::SelfSubjectRulesReview>().status;
  EXPECT_TRUE(status.incomplete);
  EXPECT_NE(status.evaluation_error, "");
}

TEST_F(PolicyObjectsTest, AReviewOfNothingIsANoAndOtherKindsAreRefused) {
  auto empty = meta::Object::Of(k8s::kSelfSubjectAccessReviewKind, k8s::SelfSubjectAccessReview());
  ASSERT_TRUE(AnswerReview(authorizer_, Someone("ann"), empty).ok());
  EXPECT_FALSE(empty.as<k8s::SelfSubjectAccessReview>().status.allowed);
  meta::Object role = MakeRole("d", "r", {});
  EXPECT_FALSE(AnswerReview(authorizer_, root_, role).ok());
}

}  // namespace
}  // namespace berth::apiserver
