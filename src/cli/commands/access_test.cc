// SPDX-License-Identifier: Apache-2.0
// Defends: rights, tokens, contexts and the doctor's findings are told as they are, and secrets
// stay secret.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cli/commands/fake_run.h"
#include "cli/commands/host_checks.h"
#include "meta/json.h"
#include "pki/revocation_list.h"
#include "pki/token.h"

namespace berth::cli {
namespace {

meta::Value Json(std::string_view text) {
  auto value = meta::ParseJson(text);
  EXPECT_TRUE(value.ok()) << value.status() << text;
  return value.ok() ? *std::move(value) : meta::Value();
}

class AccessTest : public CommandTest {};

TEST_F(AccessTest, CanIAnswersWithWordAndExitCode) {
  const std::string path = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  server().answers[path] = {
      {.status = 201, .body = R"({"status":{"allowed":true}})", .headers = {}},
      {.status = 201, .body = R"({"status":{"allowed":false,"reason":"no role"}})", .headers = {}}};
  const auto yes = Run({"auth", "can-i", "create", "machine/web", "--subresource=status"});
  EXPECT_EQ(yes.code, 0) << yes.err;
  EXPECT_EQ(yes.out, "yes\n");
  EXPECT_EQ(Json(server().Last("POST").body).Get({"spec", "resourceAttributes"}) != nullptr, true);
  EXPECT_EQ(*Json(server().Last("POST").body).Get({"spec", "resourceAttributes"}),
            Json(R"({"verb":"create","group":"compute.ironcore.dev","resource":"machines",
              "namespace":"default","subresource":"status","name":"web"})"));
  const auto no = Run({"auth", "can-i", "get", "/metrics"});
  EXPECT_EQ(no.code, 1);
  EXPECT_EQ(no.out, "no - no role\n");
  EXPECT_EQ(no.err, "");
  EXPECT_EQ(*Json(server().Last("POST").body).Get({"spec", "nonResourceAttributes"}),
            Json(R"({"verb":"get","path":"/metrics"})"));
  EXPECT_EQ(Run({"auth", "can-i", "get", "secrets", "-q"}).out, "");
  EXPECT_EQ(Run({"auth", "can-i", "get"}).code, 2);
}

TEST_F(AccessTest, ListsRights) {
  server().On(
      "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
      R"({"status":{"resourceRules":[{"verbs":["get","list"],"apiGroups":["","compute.ironcore.dev"],
                "resources":["machines"]}],"nonResourceRules":[{"verbs":["get"],"nonResourceURLs":["/version"]}]}})",
      201);
  EXPECT_EQ(
      Run({"auth", "can-i", "--list"}).out,
      "RESOURCES                                NON-RESOURCE URLS   RESOURCE NAMES   VERBS\n"
      "machines,machines.compute.ironcore.dev   []                  []               [get list]\n"
      "                                         [/version]          []               [get]\n");
}

TEST_F(AccessTest, TellsWhoYouAre) {
  server().On("POST /apis/authentication.k8s.io/v1/selfsubjectreviews",
              R"({"status":{"userInfo":{"username":"admin","groups":["system:masters","a"]}}})",
              201);
  EXPECT_EQ(Run({"auth", "whoami"}).out,
            "ATTRIBUTE   VALUE\nUsername    admin\nGroups      [system:masters a]\n");
}

TEST_F(AccessTest, ATokenIsShownOnceAndStoredAsAHash) {
  server().On("POST /api/v1/namespaces/berth-system/secrets", "{}", 201);
  const auto ended = Run({"token", "create", "ci", "--group=deployers", "--ttl=1h"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const std::string token(Trim(ended.out));
  ASSERT_TRUE(pki::TokenId(token).has_value()) << token;
  const std::string body = server().Last("POST").body;
  EXPECT_FALSE(body.contains(token)) << body;
  const meta::Value secret = Json(body);
  EXPECT_EQ(secret.GetString({"type"}), "berth.dev/token");
  std::map<std::string, std::string> data;
  for (const auto& member : secret.Find("data")->members()) {
    data[member.key] = Base64Decode(member.value.as_string()).value_or("");
  }
  const auto record = pki::ParseTokenSecret(secret.GetString({"metadata", "name"}), data);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->user, "ci");
  EXPECT_EQ(record->groups, std::vector<std::string>{"deployers"});
  EXPECT_EQ(record->expires, kFakeNow + Duration::Hours(1));
  EXPECT_TRUE(ended.err.contains("berth token revoke " + record->id)) << ended.err;
}

TEST_F(AccessTest, TheNamespaceOfTokensIsMadeIfItIsMissing) {
  server().answers["POST /api/v1/namespaces/berth-system/secrets"] = {
      {.status = 404, .body = StatusBody(404, "NotFound", "no namespace"), .headers = {}},
      {.status = 201, .body = "{}", .headers = {}}};
  server().On("POST /api/v1/namespaces", "{}", 201);
  EXPECT_EQ(Run({"token", "create", "ci"}).code, 0);
}

TEST_F(AccessTest, RevokesCertificatesOfUsersAndByNumber) {
  const std::string path =
      "PATCH /api/v1/namespaces/berth-system/configmaps/revoked-users?fieldManager=berth";
  server().On(path, "{}");
  const auto revoked = Run({"certificate", "revoke", "jane", "a@b", "--serial", "3F09"});
  EXPECT_EQ(revoked.out,
            "certificates of user jane until now are revoked\n"
            "certificates of user a@b until now are revoked\n"
            "certificate 3f09 is revoked\n")
      << revoked.err;
  // Names of pools that speak the API may be long.
  const std::string pool = "compute.ironcore.dev:system:machinepool:" + std::string(80, 'p');
  EXPECT_EQ(Run({"certificate", "revoke", pool}).code, 0);
  EXPECT_NE(server().Last("PATCH").body.find("userhex." + HexEncode(pool)), std::string::npos);
  EXPECT_NE(Run({"certificate", "revoke", std::string(123, 'p')}).code, 0);
  EXPECT_NE(Run({"certificate", "revoke"}).code, 0);
  EXPECT_NE(Run({"certificate", "revoke", "--serial", "xyz"}).code, 0);
}

TEST_F(AccessTest, SaysWhichAuthoritiesAreTrustedAndWhoUsesTheOldOne) {
  const std::string path = "GET /api/v1/namespaces/berth-system/configmaps/authority";
  server().On(
      path,
      R"({"data":{"phase":"Learning","serving":"berth-ca-1 until T1","signing":"berth-ca-2",)"
      R"("retiring":"berth-ca-1 until T1","switchAfter":"T2","ca.crt":"PEM\n",)"
      R"("seen.1":"jane, last seen T5, until T6; joe, last seen T5, until T6",)"
      R"("waiting":"host a (machinepool/a) until T3; host b until T4"}})");
  EXPECT_EQ(Run({"ca", "status"}).out,
            "serving      berth-ca-1 until T1\n"
            "signing      berth-ca-2\n"
            "retiring     berth-ca-1 until T1\n"
            "phase        Learning\n"
            "switches     after T2, once no host waits\n"
            "still old    host a (machinepool/a) until T3\n"
            "still old    host b until T4\n"
            "still old    user jane, last seen T5, until T6\n"
            "still old    user joe, last seen T5, until T6\n");
  EXPECT_EQ(Run({"ca", "bundle"}).out, "PEM\n");
  server().answers[path] = {
      {.status = 404, .body = StatusBody(404, "NotFound", "no configmap"), .headers = {}}};
  const auto missing = Run({"ca", "status"});
  EXPECT_NE(missing.code, 0);
  EXPECT_TRUE(missing.err.contains("no server has said yet")) << missing.err;
}

TEST_F(AccessTest, ListsAndRevokesTokens) {
  const auto made =
      pki::MakeToken(pki::SystemEntropy(), "ci", {"a", "b"}, Duration::Hours(2), kFakeNow);
  ASSERT_TRUE(made.ok()) << made.status();
  std::string data;
  for (const auto& [key, bytes] : made->secret.data) {
    data += (data.empty() ? "" : ",") + ("\"" + key) + "\":\"" + Base64Encode(bytes) + "\"";
  }
  server().On(
      "GET "
      "/api/v1/namespaces/berth-system/secrets?fieldSelector=type%3Dberth.dev%2Ftoken&limit=500",
      R"({"items":[{"metadata":{"name":")" + made->secret.name +
          R"(","creationTimestamp":"2023-11-14T22:13:10Z"},"data":{)" + data + "}}]}");
  const std::string id = made->secret.name.substr(6);
  const auto listed = Run({"token", "list"});
  EXPECT_EQ(
      listed.out,
      "ID           USER   GROUPS   EXPIRES   AGE\n" + id + "   ci     a,b      in 120m   10s\n")
      << listed.err;
  server().On("DELETE /api/v1/namespaces/berth-system/secrets/" + made->secret.name, "{}");
  for (const std::string& word : {id, made->secret.name, made->text}) {
    const auto revoked = Run({"token", "revoke", word});
    EXPECT_EQ(revoked.out, "token " + id + " revoked\n") << revoked.err;
    EXPECT_FALSE(revoked.err.contains(made->text));
  }
  EXPECT_EQ(Run({"token", "revoke", "0000000000"}).code, 3);
}

TEST_F(AccessTest, ShowsAndChangesContexts) {
  EXPECT_EQ(Run({"config", "current-context"}).out, "test\n");
  EXPECT_EQ(Run({"config", "get-contexts"}).out,
            "CURRENT   NAME    CLUSTER   AUTHINFO   NAMESPACE\n"
            "          other   near      admin      team-b\n"
            "*         test    near      admin\n");
  const auto view = Run({"config", "view"});
  EXPECT_TRUE(view.out.contains("token: REDACTED")) << view.out;
  EXPECT_FALSE(view.out.contains("s3cret")) << view.out;
  EXPECT_TRUE(Run({"config", "view", "--raw"}).out.contains("s3cret"));
  EXPECT_EQ(Run({"config", "use-context", "other"}).out, "Switched to context \"other\".\n");
  EXPECT_EQ(Run({"config", "current-context"}).out, "other\n");
  EXPECT_EQ(Run({"config", "set-context", "--current", "--namespace=prod"}).out,
            "Context \"other\" modified.\n");
  EXPECT_TRUE(Run({"config", "view", "--minify"}).out.contains("namespace: prod"));
  EXPECT_TRUE(program_.Read("kubeconfig").contains("token: s3cret"));
  const auto missing = Run({"config", "use-context", "othr"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_TRUE(missing.err.contains("did you mean \"other\"?")) << missing.err;
}

TEST_F(AccessTest, NamesAllServersOfACluster) {
  const auto named = Run({"config", "set-servers", "10.0.0.1:7443", "https://10.0.0.2:7443"});
  EXPECT_EQ(named.out,
            "Cluster \"near\" has the servers https://10.0.0.1:7443, https://10.0.0.2:7443.\n")
      << named.err;
  EXPECT_TRUE(Run({"config", "view"}).out.contains("- https://10.0.0.2:7443\n"));
  EXPECT_TRUE(program_.Read("kubeconfig").contains("name: berth.dev/servers")) << "kubectl's way";
  server().On(
      "GET /apis/coordination.k8s.io/v1/namespaces/berth-system/leases",
      R"({"items":[{"metadata":{"name":"leader","annotations":{"berth.dev/url":"https://x:1"}}},
                 {"metadata":{"name":"server-1","annotations":{"berth.dev/url":"https://a:1"}}},
                 {"metadata":{"name":"server-2","annotations":{"berth.dev/url":"https://b:1"}}}]})");
  EXPECT_EQ(Run({"config", "set-servers"}).out,
            "Cluster \"near\" has the servers https://a:1, https://b:1.\n");
  EXPECT_EQ(Run({"config", "set-servers", "http://a:1"}).code, 2);
  server().answers["GET /apis/coordination.k8s.io/v1/namespaces/berth-system/leases"] = {
      {.status = 200, .body = R"({"items":[]})"}};
  const auto alone = Run({"config", "set-servers"});
  EXPECT_EQ(alone.code, 3);
  EXPECT_TRUE(alone.err.contains("tells of no others")) << alone.err;
}

TEST_F(AccessTest, RevocationsAreListedAsARestoreReadsThem) {
  EXPECT_EQ(Run({"certificate", "revocations"}).out,
            "# 0 revoked on 2023-11-14T22:13:20Z; berth restore --revoked reads this\n");
  const std::string records = "GET /api/v1/namespaces/berth-system/configmaps/";
  server().On(
      records + "revoked-hosts",
      R"({"data":{"host.rack1":"2023-11-01T00:00:00Z","serial.3f09":"2023-11-02T00:00:00Z"}})");
  server().On(records + "revoked-users",
              R"({"data":{"user.jane":"soon","userhex.6a40":"2023-11-03T00:00:00Z","odd":"x"}})");
  const auto ended = Run({"certificate", "revocations"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out,
            "# 4 revoked on 2023-11-14T22:13:20Z; berth restore --revoked reads this\n"
            "host rack1 2023-11-01T00:00:00Z\n"
            "host-serial 3f09 2023-11-02T00:00:00Z\n"
            "user jane always\n"
            "userhex 6a40 2023-11-03T00:00:00Z\n");
  EXPECT_EQ(ended.err,
            "Warning: configmap berth-system/revoked-users: entry \"odd\" revokes nothing\n");
  EXPECT_TRUE(pki::ParseRevocations(ended.out, kFakeNow).ok());
  const meta::Value list = Json(Run({"certificate", "revocations", "-o", "json"}).out);
  EXPECT_EQ(list.Find("items")->items()[2],
            Json(R"({"kind":"user","name":"jane","until":"always"})"));
}

TEST_F(AccessTest, TheDoctorLooksAtEachServer) {
  server().On("GET /version", "{}");
  server().On("GET /readyz", "ok");
  EXPECT_EQ(Run({"config", "set-servers", "a:1", "b:1"}).code, 0);
  const std::string out = Run({"doctor"}).out;
  EXPECT_TRUE(out.contains("https://a:1 is ready")) << out;
  EXPECT_TRUE(out.contains("https://b:1 is ready")) << out;
}

TEST_F(AccessTest, TheDoctorReadsTheLoadOfEachServer) {
  server().On("GET /version", "{}");
  server().On("GET /readyz", "ok");
  EXPECT_EQ(Run({"config", "set-servers", "a:1", "b:1"}).code, 0);
  // The first of them is idle; the second leads, and one of its controllers fails.
  server().answers["GET /metrics"] = {
      {.status = 200, .body = "process_open_fds 1\nprocess_max_fds 10\n"},
      {.status = 200,
       .body = "berth_controller_failing_keys{controller=\"quota\"} 2\n"
               "berth_controller_failing_seconds{controller=\"quota\"} 125\n"}};
  const std::string out = Run({"doctor"}).out;
  EXPECT_TRUE(out.contains("ok    server's files    https://127.0.0.1:8443: 1 open, 10 allowed\n"))
      << out;
  EXPECT_TRUE(out.contains(
      "warn  controllers       https://b:1: quota: 2 keep failing, the first for 2m5s\n"))
      << out;
}

TEST_F(AccessTest, ShowsVersionsOfBothSides) {
  server().On("GET /version", R"({"gitVersion":"v1.2.3+berth"})");
  const auto ended = Run({"version"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(ended.out.starts_with("Client Version: v")) << ended.out;
  EXPECT_TRUE(ended.out.ends_with("Server Version: v1.2.3+berth\n")) << ended.out;
  EXPECT_EQ(Json(Run({"version", "-o", "json"}).out).GetString({"serverVersion", "gitVersion"}),
            "v1.2.3+berth");
  server().is_down = true;
  EXPECT_EQ(Run({"version"}).code, 5);
  EXPECT_EQ(Run({"version", "--client"}).code, 0);
}

TEST_F(AccessTest, TheDoctorIsContentWithAHealthyServer) {
  server().answers["GET /version"] = {
      {.status = 200, .body = "{}", .headers = {{"Date", "Tue, 14 Nov 2023 22:13:19 GMT"}}}};
  server().On("GET /readyz?verbose=true", "[+]ping ok\n");
  server().On("POST /apis/authentication.k8s.io/v1/selfsubjectreviews",
              R"({"status":{"userInfo":{"username":"admin"}}})",
              201);
  const auto ended = Run({"doctor", "--data-dir", program_.folder()});
  EXPECT_FALSE(ended.out.contains("fail")) << ended.out;
  EXPECT_TRUE(ended.out.contains("ok    clock             1s from the server's\n")) << ended.out;
  EXPECT_TRUE(ended.out.contains("ok    identity          known as admin\n")) << ended.out;
  EXPECT_TRUE(ended.out.contains("disk speed")) << ended.out;
  EXPECT_TRUE(ended.out.contains("open files")) << ended.out;
  EXPECT_EQ(ended.code, 0);
}

TEST_F(AccessTest, TheDoctorSaysWhatToDo) {
  server().answers["GET /version"] = {
      {.status = 200, .body = "{}", .headers = {{"Date", "Tue, 14 Nov 2023 21:13:20 GMT"}}}};
  server().On("GET /readyz?verbose=true", "[+]ping ok\n[-]store failed: disk is full\n", 500);
  std::filesystem::permissions(program_.folder() + "/kubeconfig",
                               std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  const auto ended = Run({"doctor"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(ended.out.contains("warn  kubeconfig")) << ended.out;
  EXPECT_TRUE(ended.out.contains("next: chmod 600 ")) << ended.out;
  EXPECT_TRUE(ended.out.contains("fail  clock")) << ended.out;
  EXPECT_TRUE(ended.out.contains("fail  ready             store failed: disk is full\n"))
      << ended.out;
  const meta::Value list = Json(Run({"doctor", "-o", "json"}).out);
  EXPECT_EQ(list.Find("items")->items().front().GetString({"verdict"}), "warn");
  server().is_down = true;
  EXPECT_TRUE(Run({"doctor"}).out.contains("fail  server")) << ended.out;
}

TEST(HostChecks, ALowHardLimitOfOpenFilesIsAWarning) {
  const Finding low = JudgeDescriptors(1024, 4096);
  EXPECT_EQ(low.verdict, Verdict::kWarn);
  EXPECT_EQ(low.text, "soft limit 1024, hard limit 4096");
  EXPECT_TRUE(low.next_step.contains("raise the hard limit to 16384 or more")) << low.next_step;
  const Finding high = JudgeDescriptors(1024, ~uint64_t{0});
  EXPECT_EQ(high.verdict, Verdict::kOk);
  EXPECT_EQ(high.text, "soft limit 1024, hard limit none");
}

TEST(HostChecks, ReadsHttpDates) {
  EXPECT_EQ(ParseHttpDate("Tue, 14 Nov 2023 22:13:20 GMT"), kFakeNow);
  for (const std::string_view text :
       {"", "Tue, 14 Xyz 2023 22:13:20 GMT", "2023-11-14T22:13:20Z"}) {
    EXPECT_EQ(ParseHttpDate(text), std::nullopt);
  }
}

}  // namespace
}  // namespace berth::cli
