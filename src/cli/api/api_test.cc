// SPDX-License-Identifier: Apache-2.0
// Defends: answers become values or errors that say what the server said.
#include "cli/api/api.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/api/discovery.h"
#include "cli/failure.h"
#include "cli/testing/fake_transport.h"

namespace berth::cli {
namespace {

class ApiTest : public testing::Test {
 protected:
  ApiTest() : api_(server_.Connect(), err_, Verbosity::kQuiet), discovery_(api_) {
    server_.ServeDiscovery();
  }

  FakeServer server_;
  std::ostringstream err_;
  Api api_;
  Discovery discovery_;
};

TEST_F(ApiTest, AStatusAnswerBecomesAStatusWithCausesAndObject) {
  server_.On("GET /x",
             R"({"kind":"Status","status":"Failure","reason":"Invalid","code":422,
               "message":"Machine \"x\" is invalid\u001b[0m","details":{"name":"x","kind":"Machine",
               "group":"compute.ironcore.dev","retryAfterSeconds":2,"causes":[{"reason":"FieldValueRequired",
               "field":"spec.image","message":"Required value"}]}})",
             422);
  const auto value = api_.Get("/x");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.status().reason(), Reason::kInvalid);
  EXPECT_EQ(value.status().message(), "Machine \"x\" is invalid\\x1b[0m");
  EXPECT_EQ(value.status().object().name, "x");
  EXPECT_EQ(value.status().retry_after(), Duration::Seconds(2));
  ASSERT_EQ(value.status().causes().size(), 1U);
  EXPECT_EQ(value.status().causes()[0].field, "spec.image");
}

TEST_F(ApiTest, AnAnswerWithoutStatusIsJudgedByItsCode) {
  server_.On("GET /gone", "<html>nginx</html>", 503);
  const auto value = api_.Get("/gone");
  EXPECT_EQ(value.status().reason(), Reason::kUnavailable);
  EXPECT_EQ(value.status().message(), "the server answered 503: <html>nginx</html>");
  server_.On("GET /text", "hello", 200);
  EXPECT_EQ(api_.Get("/text").status().reason(), Reason::kInternal);
  EXPECT_EQ(*api_.GetText("/text"), "hello");
}

TEST_F(ApiTest, ShowsEveryWarningOnceAndPrintable) {
  server_.answers["GET /w"] = {{.status = 200,
                                .body = "{}",
                                .headers = {{"Warning", "299 - \"field \\\"a\\\" is old\x1b[2J\""},
                                            {"Warning", "299 - \"b\""}}}};
  ASSERT_TRUE(api_.Get("/w").ok());
  ASSERT_TRUE(api_.Get("/w").ok());
  EXPECT_EQ(err_.str(), "Warning: field \"a\" is old\\x1b[2J\nWarning: b\n");
}

TEST_F(ApiTest, SendsBodiesAsJson) {
  server_.On("POST /x", "{}", 201);
  meta::Value body = meta::Value::Object();
  body.Set("a", 1);
  ASSERT_TRUE(api_.Post("/x", body).ok());
  EXPECT_EQ(server_.Last("POST").body, R"({"a":1})");
  EXPECT_EQ(server_.Last("POST").content_type, "application/json");
}

TEST_F(ApiTest, FindsAKindByEveryWordThatStandsForIt) {
  for (const std::string_view word : {"machines",
                                      "machine",
                                      "Machine",
                                      "MACHINES",
                                      "machines.compute.ironcore.dev",
                                      "machine.v1alpha1.compute.ironcore.dev"}) {
    const auto resource = discovery_.FindByWord(word);
    ASSERT_TRUE(resource.ok()) << word << ": " << resource.status();
    EXPECT_EQ(resource->QualifiedPlural(), "machines.compute.ironcore.dev");
    EXPECT_TRUE(resource->namespaced);
  }
  EXPECT_EQ(discovery_.FindByWord("vol")->kind, "Volume");
  EXPECT_EQ(discovery_.FindByWord("ns")->kind, "Namespace");
}

TEST_F(ApiTest, AnAliasIsFoundByItsGroupInAnySpelling) {
  const auto resource = discovery_.FindByWord("machines.compute.openkcm.dev");
  ASSERT_TRUE(resource.ok()) << resource.status();
  EXPECT_EQ(resource->group, "compute.OpenKCM.dev");
}

TEST_F(ApiTest, MarksAliases) {
  const auto all = discovery_.All();
  ASSERT_TRUE(all.ok()) << all.status();
  std::vector<std::string> aliases;
  for (const Resource& resource : *all) {
    if (!resource.alias_of.empty()) {
      aliases.push_back(resource.QualifiedPlural() + " of " + resource.alias_of);
    }
  }
  EXPECT_EQ(
      aliases,
      (std::vector<std::string>{"machines.compute.OpenKCM.dev of compute.ironcore.dev",
                                "machineclasses.compute.OpenKCM.dev of compute.ironcore.dev"}));
}

TEST_F(ApiTest, AsksNoMoreThanTheQuestionNeeds) {
  ASSERT_TRUE(discovery_.FindByWord("secrets").ok());
  ASSERT_EQ(server_.asked.size(), 1U);
  EXPECT_EQ(server_.asked[0].line, "GET /api/v1");
  ASSERT_TRUE(discovery_.FindByWord("secrets").ok());
  EXPECT_EQ(server_.asked.size(), 1U);
}

TEST_F(ApiTest, LooksForKnownKindsWhereTheyUsuallyAre) {
  ASSERT_TRUE(discovery_.FindByWord("volumes").ok());
  ASSERT_EQ(server_.asked.size(), 1U);
  EXPECT_EQ(server_.asked[0].line, "GET /apis/storage.ironcore.dev/v1alpha1");
}

TEST_F(ApiTest, SuggestsTheNearestKind) {
  const auto resource = discovery_.FindByWord("machnes");
  ASSERT_FALSE(resource.ok());
  EXPECT_EQ(FailureOf(resource.status()).message,
            R"(the server has no kind "machnes"; did you mean "machines"?)");
  EXPECT_EQ(FailureOf(resource.status()).next_step, "berth api-resources lists the kinds");
  EXPECT_EQ(ExitCodeOf(resource.status()), ExitCode::kNotFound);
}

TEST_F(ApiTest, FindsAKindByWhatAManifestSays) {
  const auto resource = discovery_.FindByKind("compute.OpenKCM.dev/v1alpha1", "Machine");
  ASSERT_TRUE(resource.ok()) << resource.status();
  EXPECT_EQ(PathOf(*resource, "a", "web", "status"),
            "/apis/compute.OpenKCM.dev/v1alpha1/namespaces/a/machines/web/status");
  EXPECT_EQ(FailureOf(discovery_.FindByKind("v1", "Sercet").status()).message,
            R"(the server has no kind "Sercet" in v1; did you mean "Secret"?)");
  EXPECT_EQ(FailureOf(discovery_.FindByKind("apps/v1", "Deployment").status()).message,
            "the server does not serve apps/v1");
}

TEST_F(ApiTest, ADownServerIsUnreachableNotUnknown) {
  server_.is_down = true;
  EXPECT_EQ(ExitCodeOf(discovery_.FindByWord("machines").status()), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeOf(discovery_.FindByKind("v1", "Secret").status()), ExitCode::kUnreachable);
}

TEST(Resource, LabelsObjectsAsKubectlDoes) {
  EXPECT_EQ(ObjectLabel("compute.ironcore.dev/v1alpha1", "Machine", "web"),
            "machine.compute.ironcore.dev/web");
  EXPECT_EQ(ObjectLabel("v1", "Namespace", "a"), "namespace/a");
}

}  // namespace
}  // namespace berth::cli
