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

TEST(RedactText, TakesOutTokensForJoining) {
  const std::string pin = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  const std::string token = "berth1." + pin + ".bcdfghjkmn.Ab3-_" + std::string(38, 'x');
  EXPECT_EQ(RedactText("poollet --join " + token + " refused"),
            "poollet --join <redacted> refused");
  EXPECT_EQ(RedactText("token=\"" + token + "\""), "token=\"<redacted>\"");
  EXPECT_EQ(RedactText(token + "\n" + token), "<redacted>\n<redacted>");
  EXPECT_EQ(RedactText(token.substr(0, token.size() - 9)), "<redacted>") << "cut off";
  EXPECT_EQ(Redacted("{\"message\":\"used " + token + "\"}"), R"({"message":"used <redacted>"})");
  for (const std::string_view harmless :
       {"berth1.", "berth1.rack-17.machines.example.internal", "berth1.cafe.example.org refused"}) {
    EXPECT_EQ(RedactText(harmless), harmless);
  }
}

TEST(RedactText, TakesOutUsersAndPasswordsOfUrls) {
  const struct {
    std::string_view text;
    std::string_view shown;
  } rows[] = {
      {"pull https://jane:hunter2@registry.example/v2/ failed",
       "pull https://<redacted>@registry.example/v2/ failed"},
      {"https://jane:p@ss@host", "https://<redacted>@host"},
      {"https://token@host:8443?a=b", "https://<redacted>@host:8443?a=b"},
      {"from http://a:b@c to https://d:e@f", "from http://<redacted>@c to https://<redacted>@f"},
      {"https://berth_abcdefghij_Ab3xxxxxxxxxxxxxxxxxxxxx:hunter2@host", "https://<redacted>@host"},
      {"https://@host", "https://@host"},
      {"https://host/jane@example.org", "https://host/jane@example.org"},
      {"see https://host, or ask jane@example.org", "see https://host, or ask jane@example.org"},
      {"etcd://10.0.0.1:2379,10.0.0.2:2379", "etcd://10.0.0.1:2379,10.0.0.2:2379"},
      {"a://", "a://"},
  };
  for (const auto& row : rows) EXPECT_EQ(RedactText(row.text), row.shown);
}

TEST(RedactText, LeavesMetricsAlone) {
  const std::string_view metrics =
      "berth_apiserver_request_duration_seconds_bucket{le=\"1\"} 2\n"
      "berth_authentication_attempts_total{result=\"refused\"} 53\nberth_loop";
  EXPECT_EQ(RedactText(metrics), metrics);
}

}  // namespace
}  // namespace berth::cli
