// SPDX-License-Identifier: Apache-2.0
// Defends: kubeconfigs mean what they mean to kubectl, and what we cannot do is said.
#include "cli/kubeconfig/kubeconfig.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cli/failure.h"
#include "cli/kubeconfig/connection.h"
#include "meta/yaml.h"

namespace berth::cli {
namespace {

constexpr std::string_view kOne = R"(
apiVersion: v1
kind: Config
current-context: home
clusters:
- name: near
  cluster: {server: "https://127.0.0.1:8443", certificate-authority-data: Q0E=}
users:
- name: admin
  user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ}
contexts:
- name: home
  context: {cluster: near, user: admin, namespace: team-a}
)";

constexpr std::string_view kTwo = R"(
current-context: away
clusters:
- name: near
  cluster: {server: "https://other:1"}
- name: far
  cluster: {server: "https://far:8443", certificate-authority: ca.pem, tls-server-name: berth}
users:
- name: ci
  user: {token: s3cret}
contexts:
- name: away
  context: {cluster: far, user: ci}
)";

Kubeconfig Read(std::string_view text, std::string_view folder = "/etc/berth") {
  const auto value = meta::ParseYaml(text);
  EXPECT_TRUE(value.ok()) << value.status();
  const auto config = KubeconfigFromValue(*value, folder);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : Kubeconfig();
}

TEST(Kubeconfig, ReadsClustersUsersAndContexts) {
  const Kubeconfig config = Read(kOne);
  EXPECT_EQ(config.current_context, "home");
  EXPECT_EQ(config.clusters.at("near").certificate_authority_data, "CA");
  EXPECT_EQ(config.users.at("admin").client_certificate_data, "CERT");
  EXPECT_EQ(config.users.at("admin").client_key_data, "KEY");
  EXPECT_EQ(config.contexts.at("home").namespace_, "team-a");
}

TEST(Kubeconfig, RelativeFilesAreRelativeToTheKubeconfig) {
  EXPECT_EQ(Read(kTwo).clusters.at("far").certificate_authority, "/etc/berth/ca.pem");
}

TEST(Kubeconfig, TheFirstFileThatSaysSomethingWins) {
  Kubeconfig merged = Read(kOne);
  MergeKubeconfig(merged, Read(kTwo));
  EXPECT_EQ(merged.current_context, "home");
  EXPECT_EQ(merged.clusters.at("near").server, "https://127.0.0.1:8443");
  EXPECT_EQ(merged.clusters.at("far").server, "https://far:8443");
  EXPECT_EQ(merged.contexts.size(), 2U);
  Kubeconfig other = Read(kTwo);
  MergeKubeconfig(other, Read(kOne));
  EXPECT_EQ(other.current_context, "away");
  EXPECT_EQ(other.clusters.at("near").server, "https://other:1");
}

TEST(Kubeconfig, AnEmptyFileIsAnEmptyConfig) { EXPECT_EQ(Read(""), Kubeconfig()); }

TEST(Kubeconfig, NamesTheFieldThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"clusters: 5", "clusters is not a list"},
      {"clusters: [{cluster: {}}]", "clusters[0].name is missing"},
      {"clusters: [{name: a, cluster: 5}]", "clusters[0].cluster is not an object"},
      {"clusters: [{name: a, cluster: {server: 5}}]", "clusters[0].cluster.server is not a string"},
      {"users: [{name: a, user: {client-key-data: '!'}}]",
       "users[0].user.client-key-data is not base64"},
      {"clusters: [{name: a, cluster: {insecure-skip-tls-verify: maybe}}]",
       "clusters[0].cluster.insecure-skip-tls-verify is not true or false"},
      {"users: [{name: a, user: {as: x, as-groups: dev}}]",
       "users[0].user.as-groups is not a list of strings"},
      {"clusters: [{name: a, cluster: {extensions: [{name: berth.dev/servers, extension: {servers: "
       "5}}]}}]",
       "clusters[0].cluster.extensions[berth.dev/servers].servers is not a list of strings"},
      {"clusters: [{name: a, cluster: {extensions: [{name: berth.dev/servers, extension: {servers: "
       "[a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a]}}]}}]",
       "clusters[0].cluster.extensions[berth.dev/servers].servers is not a list of at most 16 "
       "servers"},
      {"[]", "the file is not an object"},
  };
  for (const auto& [text, message] : cases) {
    const auto value = meta::ParseYaml(text);
    ASSERT_TRUE(value.ok()) << value.status();
    const auto config = KubeconfigFromValue(*value, "/");
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.status().message(), message);
  }
}

TEST(Kubeconfig, ViewHidesSecretsUnlessAskedFor) {
  Kubeconfig config = Read(kOne);
  MergeKubeconfig(config, Read(kTwo));
  const std::string hidden = meta::WriteYaml(KubeconfigToValue(config, Secrets::kRedacted));
  EXPECT_FALSE(hidden.contains("s3cret")) << hidden;
  EXPECT_FALSE(hidden.contains("S0VZ")) << hidden;
  EXPECT_TRUE(hidden.contains("REDACTED")) << hidden;
  const auto value = meta::ParseYaml(meta::WriteYaml(KubeconfigToValue(config, Secrets::kShown)));
  ASSERT_TRUE(value.ok()) << value.status();
  const auto again = KubeconfigFromValue(*value, "/");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, config);
}

class ConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "kubeconfig_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, std::string_view text) const {
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }

  std::string folder_;
};

TEST_F(ConnectionTest, ComesFromTheCurrentContext) {
  const auto connection = ResolveConnection(Read(kOne), {});
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(connection->server, "https://127.0.0.1:8443");
  EXPECT_EQ(connection->certificate_authority, "CA");
  EXPECT_EQ(connection->client_certificate, "CERT");
  EXPECT_EQ(connection->namespace_, "team-a");
  EXPECT_EQ(connection->context, "home");
}

TEST_F(ConnectionTest, FlagsWinOverTheContext) {
  Kubeconfig config = Read(kOne);
  MergeKubeconfig(config, Read(kTwo));
  const std::string ca = Write("ca.pem", "other CA");
  config.clusters.at("far").certificate_authority = ca;
  const auto away = ResolveConnection(config, {.context = "away", .namespace_ = "prod"});
  ASSERT_TRUE(away.ok()) << away.status();
  EXPECT_EQ(away->certificate_authority, "other CA");
  EXPECT_EQ(away->tls_server_name, "berth");
  EXPECT_EQ(away->token, "s3cret");
  EXPECT_EQ(away->namespace_, "prod");
  const auto mixed = ResolveConnection(config, {.user = "ci", .server = "10.0.0.1:9443"});
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ(mixed->server, "https://10.0.0.1:9443");
  EXPECT_EQ(mixed->token, "s3cret");
  EXPECT_EQ(mixed->client_certificate, "");
}

TEST_F(ConnectionTest, ServersOfTheExtensionAreTriedAfterTheOneThatKubectlUses) {
  constexpr std::string_view kSeveral = R"(
current-context: home
clusters:
- name: near
  cluster:
    server: https://b:1
    extensions:
    - {name: theirs, extension: {servers: 5}}
    - {name: berth.dev/servers, extension: {servers: ["https://a:1", "https://b:1", "https://c:1"]}}
contexts: [{name: home, context: {cluster: near}}]
)";
  const Kubeconfig config = Read(kSeveral);
  const auto connection = ResolveConnection(config, {});
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(connection->server, "https://b:1");
  EXPECT_EQ(connection->others, (std::vector<std::string>{"https://a:1", "https://c:1"}));
  const auto flag = ResolveConnection(config, {.server = "d:1,https://e:1,d:1"});
  ASSERT_TRUE(flag.ok()) << flag.status();
  EXPECT_EQ(flag->server, "https://d:1");
  EXPECT_EQ(flag->others, std::vector<std::string>{"https://e:1"});
  EXPECT_FALSE(ResolveConnection(config, {.server = "d:1,,e:1"}).ok());
  EXPECT_FALSE(ResolveConnection(config, {.server = "d:1,http://e:1"}).ok());
  const auto again = KubeconfigFromValue(KubeconfigToValue(config, Secrets::kShown), "/");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, config);
}

TEST_F(ConnectionTest, ATokenOnTheCommandLineReplacesTheCertificate) {
  const auto connection = ResolveConnection(Read(kOne), {.token = "t"});
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(connection->token, "t");
  EXPECT_EQ(connection->client_certificate, "");
  EXPECT_EQ(connection->client_key, "");
}

TEST_F(ConnectionTest, ImpersonatesWhomTheKubeconfigOrTheFlagsName) {
  Kubeconfig config = Read(kOne);
  UserEntry& user = config.users.begin()->second;
  user.as = "ann";
  user.as_groups = {"dev"};
  struct Case {
    ConnectionFlags flags;
    std::string user;
    std::vector<std::string> groups;
  };
  const Case cases[] = {
      {{}, "ann", {"dev"}},
      {{.as_user = "bob"}, "bob", {}},
      {{.as_groups = {"ops"}}, "ann", {"ops"}},
      {{.as_user = "bob", .as_groups = {"ops", "a,b"}}, "bob", {"ops", "a,b"}},
  };
  for (const Case& row : cases) {
    const auto connection = ResolveConnection(config, row.flags);
    ASSERT_TRUE(connection.ok()) << connection.status();
    EXPECT_EQ(connection->impersonate_user, row.user);
    EXPECT_EQ(connection->impersonate_groups, row.groups);
  }
  const auto value = KubeconfigToValue(config, Secrets::kShown);
  const auto again = KubeconfigFromValue(value, "/");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, config);
}

TEST_F(ConnectionTest, TheTokenFileWinsOverTheToken) {
  Kubeconfig config = Read(kTwo);
  config.clusters.at("far").certificate_authority.clear();
  config.users.at("ci").token_file = Write("token", "renewed\n");
  const auto connection = ResolveConnection(config, {});
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(connection->token, "renewed");
}

TEST_F(ConnectionTest, SaysWhatIsMissingAndWhatIsNotDone) {
  struct Case {
    std::string text;
    ConnectionFlags flags;
    std::string message;
    ExitCode code;
  };
  const std::vector<Case> cases = {
      {"",
       {},
       "no server is known: there is no kubeconfig with a current context",
       ExitCode::kNotFound},
      {std::string(kOne),
       {.as_groups = {"dev"}},
       "a group cannot be impersonated without a user",
       ExitCode::kUsage},
      {std::string(kOne),
       {.context = "hmoe"},
       R"(the kubeconfig has no context "hmoe"; did you mean "home"?)",
       ExitCode::kNotFound},
      {"current-context: a\ncontexts: [{name: a, context: {cluster: b}}]",
       {},
       R"(the kubeconfig has no cluster "b")",
       ExitCode::kNotFound},
      {std::string(kOne),
       {.server = "http://127.0.0.1:80"},
       R"(server "http://127.0.0.1:80": berth speaks https only; nothing is sent in the clear)",
       ExitCode::kUsage},
      {"current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\n"
       "clusters: [{name: b, cluster: {server: 'https://x', insecure-skip-tls-verify: true}}]",
       {},
       R"(cluster "b" sets insecure-skip-tls-verify; berth always checks the server's certificate)",
       ExitCode::kUsage},
      {"current-context: a\ncontexts: [{name: a, context: {user: u}}]\n"
       "users: [{name: u, user: {exec: {command: x}}}]",
       {},
       R"(user "u" logs in with exec, which berth does not do)",
       ExitCode::kUsage},
  };
  for (const Case& one : cases) {
    const auto connection = ResolveConnection(Read(one.text), one.flags);
    ASSERT_FALSE(connection.ok()) << one.message;
    EXPECT_EQ(FailureOf(connection.status()).message, one.message);
    EXPECT_FALSE(FailureOf(connection.status()).next_step.empty() &&
                 one.code == ExitCode::kNotFound);
    EXPECT_EQ(ExitCodeOf(connection.status()), one.code);
  }
}

TEST_F(ConnectionTest, LooksInTheUsualPlacesInOrder) {
  Environment environment;
  environment.variables = {{"HOME", folder_ + "/home"}, {"BERTH_DATA_DIR", folder_ + "/data"}};
  const std::string data = Write("data/kubeconfig", kOne);
  EXPECT_EQ(FindKubeconfigFiles(environment, "").paths, std::vector<std::string>{data});
  const std::string home = Write("home/.kube/config", kOne);
  EXPECT_EQ(FindKubeconfigFiles(environment, "").paths, std::vector<std::string>{home});
  environment.variables["KUBECONFIG"] = "/a:/b::";
  EXPECT_EQ(FindKubeconfigFiles(environment, "").paths, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(FindKubeconfigFiles(environment, "/c").paths, std::vector<std::string>{"/c"});
}

TEST_F(ConnectionTest, MergesTheFilesOfTheVariableAndSkipsMissingOnes) {
  const std::string one = Write("one", kOne);
  const std::string two = Write("two", kTwo);
  const auto config = LoadKubeconfig(
      {.origin = KubeconfigOrigin::kVariable, .paths = {folder_ + "/missing", two, one}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->current_context, "away");
  EXPECT_EQ(config->contexts.size(), 2U);
  EXPECT_EQ(config->clusters.at("far").certificate_authority, folder_ + "/ca.pem");
}

TEST_F(ConnectionTest, AFileThatWasNamedMustExistAndBeReadable) {
  const auto missing =
      LoadKubeconfig({.origin = KubeconfigOrigin::kFlag, .paths = {folder_ + "/missing"}});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(ExitCodeOf(missing.status()), ExitCode::kNotFound);
  const std::string broken = Write("broken", "clusters: [");
  const auto parsed = LoadKubeconfig({.origin = KubeconfigOrigin::kFlag, .paths = {broken}});
  ASSERT_FALSE(parsed.ok());
  EXPECT_TRUE(parsed.status().message().contains(broken)) << parsed.status();
}

}  // namespace
}  // namespace berth::cli
