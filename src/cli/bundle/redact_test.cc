// SPDX-License-Identifier: Apache-2.0
// Defends: no secret gets into what is sent on, and what helps is still there.
#include "cli/bundle/redact.h"

#include <gtest/gtest.h>

#include <string>

#include "meta/json.h"

namespace berth::cli {
namespace {

std::string Redacted(std::string_view json) {
  const auto value = meta::ParseJson(json);
  EXPECT_TRUE(value.ok()) << value.status();
  return meta::WriteJson(Redact(*value));
}

TEST(Redact, KeepsTheKeysOfSecretsAndTheSizesOfTheirValues) {
  EXPECT_EQ(Redacted(R"({"kind":"Secret","metadata":{"name":"db"},"data":{"user":"YWRtaW4="},
                         "stringData":{"key":"hunter2"},"type":"Opaque"})"),
            R"({"kind":"Secret","metadata":{"name":"db"},"data":{"user":"<redacted: 8 bytes>"},)"
            R"("stringData":{"key":"<redacted: 7 bytes>"},"type":"Opaque"})");
  EXPECT_EQ(Redacted(R"({"kind":"ConfigMap","data":{"a":"b"},"binaryData":{"c":"ZA=="}})"),
            R"({"kind":"ConfigMap","data":{"a":"<redacted: 1 bytes>"},)"
            R"("binaryData":{"c":"<redacted: 4 bytes>"}})");
}

TEST(Redact, HidesForeignAnnotationsAndLeavesOutManagedFields) {
  EXPECT_EQ(Redacted(R"({"kind":"Machine","metadata":{"name":"web","managedFields":[{}],
                         "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}",
                                        "berth.dev/used-by":"machine web",
                                        "notberth.dev/x":"y"}}})"),
            R"({"kind":"Machine","metadata":{"name":"web","annotations":{)"
            R"("kubectl.kubernetes.io/last-applied-configuration":"<redacted: 2 bytes>",)"
            R"("berth.dev/used-by":"machine web","notberth.dev/x":"<redacted: 1 bytes>"}}})");
}

TEST(Redact, HidesWhatIsSecretByItsNameAndKeepsReferences) {
  EXPECT_EQ(Redacted(R"({"kind":"Volume","spec":{"imagePullSecretRef":{"name":"pull"},
                         "adminPassword":"x","tokenName":"t"},
                         "status":{"access":{"volumeAttributes":{"path":"/disks/a"}}}})"),
            R"({"kind":"Volume","spec":{"imagePullSecretRef":{"name":"pull"},)"
            R"("adminPassword":"<redacted: 1 bytes>","tokenName":"t"},)"
            R"("status":{"access":{"volumeAttributes":{"path":"<redacted: 8 bytes>"}}}})");
  EXPECT_EQ(
      Redacted(R"({"kind":"Machine","spec":{"efiVars":[{"name":"a","value":"s3"}]}})"),
      R"({"kind":"Machine","spec":{"efiVars":[{"name":"a","value":"<redacted: 2 bytes>"}]}})");
}

TEST(RedactText, TakesOutTokensAndKeysAnywhere) {
  const std::string secret = "Ab3" + std::string(40, 'x');
  EXPECT_EQ(RedactText("refused berth_abcdefghij_" + secret + " twice"),
            "refused <redacted> twice");
  EXPECT_EQ(RedactText("Authorization: Bearer abc.def"), "Authorization: Bearer <redacted>");
  EXPECT_EQ(RedactText("Bearer "), "Bearer ");
  EXPECT_EQ(RedactText("a\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nb"),
            "a\n<redacted>\nb");
  EXPECT_EQ(RedactText("-----BEGIN EC PRIVATE KEY-----\ncut off"), "<redacted>");
  EXPECT_EQ(Redacted("{\"message\":\"berth_abcdefghij_" + secret + "\"}"),
            R"({"message":"<redacted>"})");
}

TEST(RedactText, LeavesMetricsAlone) {
  const std::string_view metrics =
      "berth_apiserver_request_duration_seconds_bucket{le=\"1\"} 2\n"
      "berth_authentication_attempts_total{result=\"refused\"} 53\nberth_loop";
  EXPECT_EQ(RedactText(metrics), metrics);
}

}  // namespace
}  // namespace berth::cli
