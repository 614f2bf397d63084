// SPDX-License-Identifier: Apache-2.0
// Defends: the first rule that fits decides, mistakes in a policy are named, and bodies are told
// only where they may be.
#include "apiserver/audit/audit_policy.h"

#include <gtest/gtest.h>

#include <string>

#include "apiserver/audit/audit_record.h"
#include "meta/json.h"
#include "meta/value.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kPolicy = R"(
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  users: [system:berth]
- level: RequestResponse
  verbs: [create, update]
  resources:
  - group: compute.ironcore.dev
    resources: [machines, "*/status"]
- level: Request
  userGroups: [devs]
  namespaces: [default]
- level: Metadata
  resources:
  - group: ""
    resources: [configmaps]
    resourceNames: [one]
- level: Metadata
  nonResourceURLs: [/metrics, "/openapi/*"]
)";

struct Asked {
  std::string user = "ann";
  std::string groups = "devs";
  RequestInfo request;
};

AuditLevel LevelOf(const AuditPolicy& policy, const Asked& asked) {
  const Identity identity{.user = asked.user, .groups = {asked.groups}};
  return policy.LevelOf(identity, asked.request);
}

RequestInfo Of(const std::string& verb, const std::string& group, const std::string& resource) {
  return {.is_resource = true,
          .verb = verb,
          .group = group,
          .requested_group = group,
          .namespace_ = "elsewhere",
          .resource = resource};
}

TEST(AuditPolicy, TheFirstRuleThatFitsDecides) {
  const auto policy = AuditPolicy::Parse(kPolicy);
  ASSERT_TRUE(policy.ok()) << policy.status();
  RequestInfo machine = Of("create", "compute.ironcore.dev", "machines");
  EXPECT_EQ(LevelOf(*policy, {.request = machine}), AuditLevel::kRequestResponse);
  EXPECT_EQ(LevelOf(*policy, {.user = "system:berth", .request = machine}), AuditLevel::kNone);
  machine.subresource = "exec";
  EXPECT_EQ(LevelOf(*policy, {.request = machine}), AuditLevel::kNone);
  machine.subresource = "status";
  EXPECT_EQ(LevelOf(*policy, {.request = machine}), AuditLevel::kRequestResponse);
  machine.verb = "get";
  EXPECT_EQ(LevelOf(*policy, {.request = machine}), AuditLevel::kNone);
  machine.namespace_ = "default";
  EXPECT_EQ(LevelOf(*policy, {.request = machine}), AuditLevel::kRequest);
  EXPECT_EQ(LevelOf(*policy, {.groups = "others", .request = machine}), AuditLevel::kNone);
  RequestInfo map = Of("get", "", "configmaps");
  EXPECT_EQ(LevelOf(*policy, {.request = map}), AuditLevel::kNone);
  map.name = "one";
  EXPECT_EQ(LevelOf(*policy, {.request = map}), AuditLevel::kMetadata);
  EXPECT_EQ(LevelOf(*policy, {.request = {.verb = "get", .path = "/metrics"}}),
            AuditLevel::kMetadata);
  EXPECT_EQ(LevelOf(*policy, {.request = {.verb = "get", .path = "/openapi/v2"}}),
            AuditLevel::kMetadata);
  EXPECT_EQ(LevelOf(*policy, {.request = {.verb = "get", .path = "/livez"}}), AuditLevel::kNone);
}

TEST(AuditPolicy, StagesAreLeftOutByThePolicyAndByItsRules) {
  const std::string head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";
  const Identity ann{.user = "ann", .groups = {}};
  const Identity bob{.user = "bob", .groups = {}};
  const RequestInfo exec = Of("create", "compute.ironcore.dev", "machines");
  const auto rules = AuditPolicy::Parse(
      head +
      "rules: [{level: Metadata, users: [ann], omitStages: [ResponseStarted, Panic]}, "
      "{level: Metadata}]");
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_FALSE(rules->Tells(ann, exec, AuditStage::kResponseStarted));
  EXPECT_TRUE(rules->Tells(ann, exec, AuditStage::kResponseComplete));
  EXPECT_TRUE(rules->Tells(bob, exec, AuditStage::kResponseStarted));
  const auto all =
      AuditPolicy::Parse(head +
                         "omitStages: [RequestReceived, ResponseComplete]\n"
                         "rules: [{level: None, users: [bob]}, "
                         "{level: Metadata, omitStages: [ResponseStarted]}, {level: Metadata}]");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_FALSE(all->Tells(ann, exec, AuditStage::kResponseStarted));
  EXPECT_FALSE(all->Tells(ann, exec, AuditStage::kResponseComplete));
  EXPECT_FALSE(all->Tells(bob, exec, AuditStage::kResponseStarted));
  EXPECT_EQ(all->LevelOf(ann, exec), AuditLevel::kMetadata);
}

TEST(AuditPolicy, MistakesAreNamed) {
  const std::string head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "expected an object"},
           {"kind: Policy\napiVersion: v1\nrules: [{level: None}]", "audit.k8s.io/v1"},
           {head, "at least one"},
           {head + "rules: [{level: None}, {level: All}]", "rules[1].level: \"All\""},
           {head + "rules: [{level: None, user: [a]}]", "user"},
           {head + "rules: {level: None}", "rules"},
           {head + "omitStages: [All]\nrules: [{level: None}]", "omitStages[0]: \"All\""},
           {head + "rules: [{level: None, omitStages: [Panic, x]}]",
            "rules[0].omitStages[1]: \"x\""},
           {head + "rules: [", ""}}) {
    const auto policy = AuditPolicy::Parse(text);
    ASSERT_FALSE(policy.ok()) << text;
    EXPECT_NE(policy.status().message().find(words), std::string::npos) << policy.status();
  }
}

TEST(AuditPolicy, BodiesOfSecretsAndReviewsAreNeverShown) {
  const meta::KindInfo stored{.storage = meta::Storage::kStored};
  const meta::KindInfo review{.storage = meta::Storage::kReview};
  RequestInfo request = Of("create", "", "configmaps");
  EXPECT_FALSE(MayShowBodies(request)) << "nobody knows what it is";
  request.kind = &stored;
  EXPECT_TRUE(MayShowBodies(request));
  request.resource = "secrets";
  EXPECT_FALSE(MayShowBodies(request));
  request.resource = "tokenreviews";
  request.kind = &review;
  EXPECT_FALSE(MayShowBodies(request));
}

TEST(AuditPolicy, BodiesAreObjectsOfOneLineOrToldByTheirSize) {
  const Identity identity{.user = "ann", .groups = {}};
  const RequestInfo request = Of("create", "", "configmaps");
  const auto line_of = [&](std::string_view body) {
    std::string line;
    AppendAuditLine({.identity = identity, .request = request, .request_body = body}, line);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    auto value = meta::ParseJson(line);
    EXPECT_TRUE(value.ok()) << line;
    return *std::move(value);
  };
  EXPECT_EQ(line_of("{\"a\":\n\"b\"}").GetString({"requestObject", "a"}), "b");
  EXPECT_EQ(line_of("a: b\n").GetString({"requestObject", "a"}), "b");
  EXPECT_EQ(line_of("\"},\"forged\":1").Find("forged"), nullptr);
  EXPECT_NE(line_of("k8s").Find("requestBytes"), nullptr);
  EXPECT_NE(line_of("{\"a\":\"" + std::string(kAuditBodyMax, 'x') + "\"}").Find("requestBytes"),
            nullptr);
  EXPECT_EQ(line_of("").Find("requestBytes"), nullptr);
}

}  // namespace
}  // namespace berth::apiserver
