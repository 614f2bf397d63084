// SPDX-License-Identifier: Apache-2.0
// Defends that every request but those for health waits for its turn among the others, documents
// as much as objects, and that headers which contradict each other are believed by nobody.
#include "apiserver/http/api_server.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apis/k8s/secret.h"
#include "apiserver/authz/default_roles.h"
#include "apiserver/registry/registry_world.h"
#include "meta/json.h"
#include "pki/token.h"
#include "rt/scope.h"
#include "rt/sim/sim_blocking_pool.h"

namespace berth::apiserver {
namespace {

// One list, or document, at a time, and two that wait.
LevelLimits Narrow() {
  LevelLimits limits;
  limits.levels[static_cast<size_t>(PriorityLevel::kListing)] = {
      .seats = 1, .queue_per_flow = 1, .queue_total = 2};
  limits.levels[static_cast<size_t>(PriorityLevel::kExemptListing)] = {
      .seats = 1, .queue_per_flow = 1, .queue_total = 2};
  return limits;
}

// Keeps what is written.
class Received final : public net::BodyWriter {
 public:
  rt::Task<Status> Write(std::vector<Bytes> parts) override {
    for (const Bytes& part : parts) text += part.view();
    ++writes;
    co_return OkStatus();
  }
  bool peer_gone() const override { return false; }
  std::string text;
  int writes = 0;
};

class ApiServerTest : public ::testing::Test {
 protected:
  ApiServerTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-api-XXXXXX").string();
    CHECK(::mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    AuditFile::Options options;
    options.path = folder_ + "/audit.log";
    auto audit = AuditLog::Open(options, world_.loop(), pool_, metrics_);
    CHECK(audit.ok()) << audit.status();
    audit_ = *std::move(audit);
    for (const DefaultRole& role : DefaultRoles(world_.scheme())) {
      authorizer_.SetRole({.namespace_ = "", .name = role.name}, role.rules);
    }
    for (const DefaultBinding& binding : DefaultBindings()) {
      authorizer_.SetBinding(
          {.namespace_ = "", .name = binding.name},
          {.role = {.namespace_ = "", .name = binding.name}, .subjects = binding.subjects});
    }
    api_ = std::make_unique<ApiServer>(ApiServer::Deps{.loop = world_.loop(),
                                                       .scheme = world_.scheme(),
                                                       .registry = world_.registry(),
                                                       .authenticator = authenticator_,
                                                       .authorizer = authorizer_,
                                                       .limiter = limiter_,
                                                       .gate = gate_,
                                                       .audit = *audit_,
                                                       .metrics = metrics_,
                                                       .readiness = [] { return OkStatus(); }});
  }
  ~ApiServerTest() override {
    EXPECT_TRUE(world_.Run(scope_.Close()).ok());
    answers_.clear();
    api_.reset();
    EXPECT_TRUE(world_.Run(audit_->Close()).ok());
    std::filesystem::remove_all(folder_);
  }

  std::string TokenOf(const std::string& user, const std::vector<std::string>& groups = {}) {
    auto token =
        pki::MakeToken(pki::SystemEntropy(), user, groups, std::nullopt, world_.loop().WallNow());
    CHECK(token.ok()) << token.status();
    apis::k8s::Secret secret;
    secret.metadata.name = token->secret.name;
    secret.metadata.namespace_ = pki::kTokenNamespace;
    secret.type = pki::kTokenSecretType;
    for (const auto& [key, value] : token->secret.data) secret.data[key].bytes = value;
    authenticator_.OnSecretChanged(secret);
    return token->text;
  }
  static net::HttpRequest Get(std::string target) {
    net::HttpRequest request;
    request.method = "GET";
    request.target = std::move(target);
    return request;
  }
  rt::Task<Status> Ask(size_t at, net::HttpRequest request) {
    answers_[at] = co_await api_->Handle(std::move(request));
    co_return OkStatus();
  }
  // The number of the request, which is on its way.
  size_t Begin(const std::string& token, const std::string& target) {
    net::HttpRequest request = Get(target);
    if (!token.empty()) request.headers.Set("Authorization", "Bearer " + token);
    return Begin(std::move(request));
  }
  size_t Begin(net::HttpRequest request) {
    answers_.emplace_back();
    scope_.Spawn("test.ask", Ask(answers_.size() - 1, std::move(request)));
    world_.loop().RunFor(Duration::Millis(10));
    return answers_.size() - 1;
  }
  // The status and, of a refusal, the message of a request with these headers.
  std::pair<int, std::string> AnswerWith(const std::vector<net::Header>& headers,
                                         std::string target = "/apis") {
    net::HttpRequest request = Get(std::move(target));
    for (const net::Header& header : headers) request.headers.Add(header.name, header.value);
    const size_t at = Begin(std::move(request));
    std::string text;
    if (StatusOf(at) >= 400) {
      for (const Bytes& part : answers_[at]->body) text += part.view();
    }
    return {StatusOf(at), std::move(text)};
  }
  // 0 while there is none.
  int StatusOf(size_t at) const { return answers_[at] ? answers_[at]->status : 0; }

  RegistryWorld world_{7};
  std::string folder_;
  rt::SimBlockingPool pool_;
  metrics::Registry metrics_;
  Authenticator authenticator_{metrics_};
  Authorizer authorizer_{world_.scheme()};
  RequestLimiter limiter_{{}, metrics_};
  RequestGate gate_{world_.loop(), Narrow(), metrics_};
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<ApiServer> api_;
  rt::TaskScope scope_{world_.loop()};
  std::vector<std::optional<net::HttpResponse>> answers_;
};

TEST_F(ApiServerTest, DocumentsWaitForTheirTurnAndHealthDoesNot) {
  const std::string ann = TokenOf("ann");
  auto seat = world_.Run(gate_.Enter(PriorityLevel::kListing, "somebody"));
  ASSERT_TRUE(seat.ok()) << seat.status();
  const size_t waits = Begin(ann, "/openapi/v2");
  EXPECT_EQ(StatusOf(waits), 0);
  for (const char* path : {"/apis", "/api/v1", "/openapi/v3", "/openapi/v3/api/v1"}) {
    const size_t second = Begin(ann, path);
    ASSERT_EQ(StatusOf(second), 429) << path << ": one may wait";
  }
  for (const char* path : {"/livez", "/readyz?verbose", "/healthz", "/version"}) {
    EXPECT_EQ(StatusOf(Begin(ann, path)), 200) << path;
    EXPECT_EQ(StatusOf(Begin("", path)), 200) << path;
  }
  EXPECT_EQ(StatusOf(waits), 0);
  seat->Leave();
  world_.loop().RunFor(Duration::Millis(10));
  EXPECT_EQ(StatusOf(waits), 200);
}

TEST_F(ApiServerTest, OnlyListsAndDocumentsOfAnAdministratorWait) {
  const std::string admin = TokenOf("root", {std::string(kMastersGroup)});
  auto seat = world_.Run(gate_.Enter(PriorityLevel::kExemptListing, "a script"));
  ASSERT_TRUE(seat.ok()) << seat.status();
  const size_t waits = Begin(admin, "/api/v1/namespaces");
  EXPECT_EQ(StatusOf(waits), 0);
  EXPECT_EQ(StatusOf(Begin(admin, "/apis")), 429) << "one may wait";
  EXPECT_EQ(StatusOf(Begin(admin, "/api/v1/namespaces/none")), 404);
  EXPECT_EQ(StatusOf(Begin(admin, "/readyz")), 200);
  EXPECT_EQ(StatusOf(Begin(TokenOf("ann"), "/apis")), 200) << "others have seats of their own";
  seat->Leave();
  world_.loop().RunFor(Duration::Millis(10));
  EXPECT_EQ(StatusOf(waits), 200);
}

TEST_F(ApiServerTest, CredentialsThatDifferAreRefusedInEitherOrder) {
  const std::string good = "Bearer " + TokenOf("ann");
  const std::string bad = "Bearer nobody";
  EXPECT_EQ(AnswerWith({{"Authorization", good}}).first, 200);
  EXPECT_EQ(AnswerWith({{"Authorization", good}, {"authorization", good}}).first, 200);
  const std::vector<std::vector<net::Header>> rows = {
      {{"Authorization", good}, {"Authorization", bad}},
      {{"Authorization", bad}, {"authorization", good}},
      {{"Authorization", good}, {"Authorization", ""}},
      {{"Authorization", good}, {"Authorization", good}, {"AUTHORIZATION", bad}},
  };
  for (const char* target : {"/apis", "/api/v1/namespaces", "/livez"}) {
    for (const auto& headers : rows) {
      const auto [status, text] = AnswerWith(headers, target);
      EXPECT_EQ(status, 400) << target;
      EXPECT_TRUE(text.contains(R"("reason":"BadRequest")")) << text;
      EXPECT_TRUE(text.contains("headers Authorization that differ")) << text;
      EXPECT_FALSE(text.contains(good)) << "a secret";
    }
  }
}

TEST_F(ApiServerTest, ContentTypesThatDifferAreRefused) {
  const net::Header who = {"Authorization", "Bearer " + TokenOf("ann")};
  const std::string json = "application/json";
  EXPECT_EQ(AnswerWith({who, {"Content-Type", json}, {"content-type", json}}).first, 200);
  for (const auto& [one, other] : {std::pair("application/json", "application/yaml"),
                                   std::pair("application/yaml", "application/json"),
                                   std::pair("application/json", "application/json; a=b")}) {
    const auto [status, text] = AnswerWith({who, {"Content-Type", one}, {"content-type", other}});
    EXPECT_EQ(status, 400);
    EXPECT_TRUE(text.contains("2 headers Content-Type that differ")) << text;
  }
}

TEST_F(ApiServerTest, ALargeDocumentIsSentInPiecesFromItsSeat) {
  const std::string ann = TokenOf("ann");
  const size_t large = Begin(ann, "/openapi/v2");
  ASSERT_EQ(StatusOf(large), 200);
  ASSERT_TRUE(answers_[large]->stream);
  const size_t behind = Begin(ann, "/apis");
  EXPECT_EQ(StatusOf(behind), 0) << "the seat is taken while it is sent";
  Received received;
  ASSERT_TRUE(world_.Run(answers_[large]->stream(received)).ok());
  EXPECT_GT(received.writes, 1);
  const auto document = meta::ParseJson(received.text);
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(document->GetString({"swagger"}), "2.0");
  answers_[large].reset();
  world_.loop().RunFor(Duration::Millis(10));
  EXPECT_EQ(StatusOf(behind), 200);
}

}  // namespace
}  // namespace berth::apiserver
