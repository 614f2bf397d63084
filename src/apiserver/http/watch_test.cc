// SPDX-License-Identifier: Apache-2.0
// Defends what a watcher of tables sees: ages that go on, and where the state ends.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "apis/k8s/config_map.h"
#include "apiserver/authn/authenticator.h"
#include "apiserver/http/handlers.h"
#include "apiserver/http/router.h"
#include "apiserver/http/table.h"
#include "apiserver/registry/registry_world.h"
#include "meta/json.h"
#include "net/url.h"
#include "pki/entropy.h"
#include "pki/token.h"
#include "rt/scope.h"

namespace berth::apiserver {
namespace {

using meta::Value;

constexpr std::string_view kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";
constexpr std::string_view kTold =
    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
constexpr std::string_view kEnd = R"({"k8s.io/initial-events-end":"true"})";

class WrittenEvents final : public net::BodyWriter {
 public:
  rt::Task<Status> Write(std::vector<Bytes> parts) override {
    for (const Bytes& part : parts) {
      CO_TRY(Value event, meta::ParseJson(part.view()));
      events_.push_back(std::move(event));
    }
    co_return OkStatus();
  }
  bool peer_gone() const override { return false; }
  const std::vector<Value>& events() const { return events_; }

 private:
  std::vector<Value> events_;
};

class WatchTest : public ::testing::Test {
 protected:
  WatchTest() { world_.MakeNamespace("default"); }
  ~WatchTest() override { CHECK(world_.Run(scope_.Close()).ok()); }

  // Watches config maps as `accept` from now on.
  void Watch(std::string_view query, std::string_view accept = kTable) {
    auto call = std::make_shared<Call>();
    call->http.method = "GET";
    call->http.target =
        "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=3600" + std::string(query);
    call->http.headers.Set("Accept", std::string(accept));
    call->hold = std::make_unique<CredentialHold>(authenticator_, net::Peer{}, Known());
    const auto target = net::SplitTarget(call->http.target);
    auto parsed = net::Query::Parse(target.query);
    CHECK(parsed.ok()) << parsed.status();
    call->query = *std::move(parsed);
    auto info = ParseRequest(world_.scheme(), call->http.method, target.path, call->query);
    CHECK(info.ok()) << info.status();
    call->info = *std::move(info);
    auto answer = world_.Run(handlers_.Watch(call));
    CHECK(answer.ok()) << answer.status();
    scope_.Spawn("test.watch", answer->stream(written_));
    world_.loop().RunReady();
  }
  void Create(std::string name) {
    apis::k8s::ConfigMap object;
    object.metadata.namespace_ = "default";
    object.metadata.name = std::move(name);
    auto made = meta::Object::Of(apis::k8s::kConfigMapKind, std::move(object));
    CHECK(world_.Run(world_.client().Create(std::move(made), {})).ok());
  }
  void Change(std::string name) {
    auto patched = world_.client().Patch(apis::k8s::kConfigMapKind,
                                         {.namespace_ = "default", .name = std::move(name)},
                                         client::PatchType::kMerge,
                                         R"({"data":{"a":"b"}})",
                                         {});
    CHECK(world_.Run(std::move(patched)).ok());
    world_.loop().RunReady();
  }
  // The last cell of the only row.
  static std::string AgeIn(const Value& event) {
    const auto& rows = event.Get({"object", "rows"})->items();
    CHECK(rows.size() == 1) << meta::WriteJson(event);
    return std::string(rows[0].Find("cells")->items().back().as_string());
  }
  static std::string TextAt(const Value& value, std::initializer_list<std::string_view> path) {
    const Value* found = value.Get(path);
    return found == nullptr ? "" : meta::WriteJson(*found);
  }

  RegistryWorld world_{23};
  metrics::Registry metrics_;
  Authorizer authorizer_{world_.scheme()};
  Authenticator authenticator_{metrics_};
  const Hosts hosts_;
  PlacementReviews placement_{{.scheme = world_.scheme(),
                               .registry = world_.registry(),
                               .authorizer = authorizer_,
                               .hosts = hosts_}};
  Handlers handlers_{{.loop = world_.loop(),
                      .scheme = world_.scheme(),
                      .registry = world_.registry(),
                      .authorizer = authorizer_,
                      .metrics = metrics_,
                      .placement = placement_,
                      .hosts = hosts_}};
  WrittenEvents written_;
  rt::TaskScope scope_{world_.loop()};

 private:
  // The header of a token that the authenticator knows.
  std::string Known() {
    const auto token =
        pki::MakeToken(pki::SystemEntropy(), "ann", {}, std::nullopt, world_.loop().WallNow());
    CHECK(token.ok()) << token.status();
    apis::k8s::Secret secret;
    secret.metadata.name = token->secret.name;
    secret.metadata.namespace_ = pki::kTokenNamespace;
    secret.type = pki::kTokenSecretType;
    for (const auto& [key, value] : token->secret.data) secret.data[key].bytes = value;
    authenticator_.OnSecretChanged(secret);
    return "Bearer " + token->text;
  }
};

TEST_F(WatchTest, AnAgeIsThatOfTheMomentOfItsEvent) {
  Create("old");
  Watch("");
  ASSERT_EQ(written_.events().size(), 1);
  EXPECT_EQ(AgeIn(written_.events()[0]), "0s");
  world_.loop().RunFor(Duration::Minutes(20));
  Change("old");
  ASSERT_EQ(written_.events().size(), 2);
  EXPECT_EQ(AgeIn(written_.events()[1]), "20m");
}

TEST_F(WatchTest, ATableSaysWhereTheStateEnds) {
  Create("there");
  Watch(kTold);
  ASSERT_EQ(written_.events().size(), 2);
  const Value& end = written_.events()[1];
  EXPECT_EQ(end.GetString({"type"}), "BOOKMARK");
  EXPECT_EQ(end.GetString({"object", "kind"}), "Table");
  EXPECT_EQ(TextAt(end, {"object", "metadata", "annotations"}), kEnd);
  const auto& rows = end.Get({"object", "rows"})->items();
  ASSERT_EQ(rows.size(), 1) << "as Kubernetes: typed readers of tables see rows only";
  EXPECT_EQ(rows[0].GetString({"object", "kind"}), "PartialObjectMetadata");
  EXPECT_EQ(TextAt(rows[0], {"object", "metadata", "annotations"}), kEnd);
  EXPECT_EQ(rows[0].GetString({"object", "metadata", "resourceVersion"}),
            end.GetString({"object", "metadata", "resourceVersion"}));
  const auto& first = written_.events()[0].Get({"object", "rows"})->items();
  EXPECT_EQ(rows[0].Find("cells")->items().size(), first[0].Find("cells")->items().size());
}

TEST_F(WatchTest, ATableOfWholeObjectsSaysWhereTheStateEnds) {
  Watch(std::string(kTold) + "&includeObject=Object");
  ASSERT_EQ(written_.events().size(), 1);
  const Value& end = written_.events()[0];
  EXPECT_FALSE(end.Get({"object", "columnDefinitions"})->items().empty())
      << "it is the first event";
  const auto& rows = end.Get({"object", "rows"})->items();
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].GetString({"object", "kind"}), "ConfigMap");
  EXPECT_EQ(TextAt(rows[0], {"object", "metadata", "annotations"}), kEnd);
}

TEST_F(WatchTest, ATableWithoutObjectsSaysWhereTheStateEndsInItsOwnMetadata) {
  Watch(std::string(kTold) + "&includeObject=None");
  ASSERT_EQ(written_.events().size(), 1);
  const Value& end = written_.events()[0];
  EXPECT_EQ(TextAt(end, {"object", "metadata", "annotations"}), kEnd);
  EXPECT_EQ(TextAt(end, {"object", "rows"}), "[]");
}

TEST_F(WatchTest, LaterBookmarksOfATableEndNothing) {
  Watch(kTold);
  world_.loop().RunFor(Duration::Minutes(3));
  ASSERT_GT(written_.events().size(), 1);
  const Value& later = written_.events()[1];
  EXPECT_EQ(later.GetString({"type"}), "BOOKMARK");
  EXPECT_EQ(TextAt(later, {"object", "metadata", "annotations"}), "");
  EXPECT_EQ(TextAt(later, {"object", "rows"}), "[]");
}

TEST_F(WatchTest, ObjectsSayWhereTheStateEndsInTheirMetadata) {
  for (const std::string_view accept :
       {"application/json", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}) {
    SCOPED_TRACE(accept);
    Watch(kTold, accept);
    ASSERT_FALSE(written_.events().empty());
    EXPECT_EQ(TextAt(written_.events().back(), {"object", "metadata", "annotations"}), kEnd);
  }
}

TEST_F(WatchTest, AnObjectOfNothingHasCellsWhateverItsKind) {
  for (const meta::KindInfo* kind : world_.scheme().kinds()) {
    const auto cells = meta::ParseJson(Cells(*kind, meta::Object(*kind).data(), WallTime()));
    ASSERT_TRUE(cells.ok()) << kind->kind;
    EXPECT_EQ(cells->items().size(), TableColumns(*kind).size()) << kind->kind;
  }
}

}  // namespace
}  // namespace berth::apiserver
