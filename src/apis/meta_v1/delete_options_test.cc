// SPDX-License-Identifier: Apache-2.0
// Defends what a delete request may say, and how requests and answers are written.
#include "apis/meta_v1/delete_options.h"

#include <gtest/gtest.h>

#include "apis/meta_v1/scale.h"
#include "apis/meta_v1/status.h"
#include "apis/testing/rules_of.h"
#include "meta/json.h"

namespace berth::apis::meta_v1 {
namespace {

using testing::Causes;

struct OptionsCase {
  std::string_view json;
  Causes causes;
};

TEST(DeleteOptions, AreChecked) {
  const OptionsCase cases[] = {
      {"{}", {}},
      {R"({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground",
           "gracePeriodSeconds": 0, "preconditions": {"uid": "1", "resourceVersion": "2"},
           "dryRun": ["All"]})",
       {}},
      {R"({"orphanDependents": true})", {}},
      {R"({"propagationPolicy": "Sideways"})", {"NotSupported propagationPolicy"}},
      {R"({"propagationPolicy": "Orphan", "orphanDependents": true})",
       {"Invalid propagationPolicy"}},
      {R"({"gracePeriodSeconds": -1})", {"Invalid gracePeriodSeconds"}},
      {R"({"dryRun": ["Some"]})", {"NotSupported dryRun"}},
  };
  for (const OptionsCase& row : cases) {
    const auto options = meta::DecodeJsonAs<DeleteOptions>(
        row.json, {.field_validation = meta::FieldValidation::kStrict});
    ASSERT_TRUE(options.ok()) << options.status();
    meta::FieldErrors errors;
    CheckDeleteOptions(*options, errors);
    EXPECT_EQ(testing::Describe(errors), row.causes) << row.json;
  }
}

TEST(Status, IsWrittenAsClientsReadIt) {
  const Status status = {
      .kind = "Status",
      .api_version = "v1",
      .status = "Failure",
      .message = "no",
      .reason = "Invalid",
      .details = StatusDetails{.name = "m",
                               .group = "compute.ironcore.dev",
                               .kind = "Machine",
                               .causes = {{"FieldValueRequired", "Required value", "spec"}}},
      .code = 422,
  };
  EXPECT_EQ(meta::EncodeJsonOf(status),
            R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"no",)"
            R"("reason":"Invalid","details":{"name":"m","group":"compute.ironcore.dev",)"
            R"("kind":"Machine","causes":[{"reason":"FieldValueRequired",)"
            R"("message":"Required value","field":"spec"}]},"code":422})");
}

TEST(Scale, SaysHowManyThereAreAndShouldBe) {
  Scale scale{.kind = "Scale", .api_version = "autoscaling/v1"};
  scale.spec.replicas = 3;
  scale.status.selector = "app=web";
  EXPECT_EQ(meta::EncodeJsonOf(scale),
            R"({"kind":"Scale","apiVersion":"autoscaling/v1","spec":{"replicas":3},)"
            R"("status":{"replicas":0,"selector":"app=web"}})");
}

}  // namespace
}  // namespace berth::apis::meta_v1
