// SPDX-License-Identifier: Apache-2.0
// Defends how paths and methods are read: the router decides what authorization sees.
#include "apiserver/http/router.h"

#include <gtest/gtest.h>

#include "apis/registry.h"

namespace berth::apiserver {
namespace {

RequestInfo Parse(std::string_view method, std::string_view path, std::string_view query = {}) {
  static const meta::Scheme scheme(apis::AllKinds(), {"ironcore.dev", "OpenKCM.dev"});
  const auto parsed_query = Query::Parse(query);
  EXPECT_TRUE(parsed_query.ok());
  auto info = ParseRequest(scheme, method, path, *parsed_query);
  EXPECT_TRUE(info.ok()) << info.status();
  return *std::move(info);
}

TEST(Router, ReadsResourcePaths) {
  struct Case {
    std::string_view method, path, query, verb, group, ns, resource, name, subresource;
  };
  const std::string_view compute = "compute.ironcore.dev";
  const Case cases[] = {
      {"GET", "/api/v1/namespaces", "", "list", "", "", "namespaces", "", ""},
      {"GET", "/api/v1/namespaces/a", "", "get", "", "a", "namespaces", "a", ""},
      {"PUT",
       "/api/v1/namespaces/a/finalize",
       "",
       "update",
       "",
       "a",
       "namespaces",
       "a",
       "finalize"},
      {"GET", "/api/v1/namespaces/a/secrets", "", "list", "", "a", "secrets", "", ""},
      {"GET", "/api/v1/namespaces/a/secrets/", "", "list", "", "a", "secrets", "", ""},
      {"GET", "/api/v1/secrets", "watch=1", "watch", "", "", "secrets", "", ""},
      {"GET", "/api/v1/secrets", "watch=false", "list", "", "", "secrets", "", ""},
      {"DELETE",
       "/api/v1/namespaces/a/secrets",
       "",
       "deletecollection",
       "",
       "a",
       "secrets",
       "",
       ""},
      {"DELETE", "/api/v1/namespaces/a/secrets/b", "", "delete", "", "a", "secrets", "b", ""},
      {"POST",
       "/apis/compute.ironcore.dev/v1alpha1/namespaces/a/machines",
       "",
       "create",
       compute,
       "a",
       "machines",
       "",
       ""},
      {"PATCH",
       "/apis/compute.OpenKCM.dev/v1alpha1/namespaces/a/machines/m/status",
       "",
       "patch",
       compute,
       "a",
       "machines",
       "m",
       "status"},
      {"GET",
       "/apis/compute.openkcm.DEV/v1alpha1/machinepools/p",
       "",
       "get",
       compute,
       "",
       "machinepools",
       "p",
       ""},
      {"GET",
       "/apis/compute.ironcore.dev/v1alpha1/namespaces/a/machines",
       "watch=true&fieldSelector=metadata.name%3Dm",
       "watch",
       compute,
       "a",
       "machines",
       "m",
       ""},
  };
  for (const auto& c : cases) {
    const auto info = Parse(c.method, c.path, c.query);
    EXPECT_TRUE(info.is_resource) << c.path;
    EXPECT_NE(info.kind, nullptr) << c.path;
    EXPECT_EQ(info.verb, c.verb) << c.method << c.path;
    EXPECT_EQ(info.group, c.group) << c.path;
    EXPECT_EQ(info.namespace_, c.ns) << c.path;
    EXPECT_EQ(info.resource, c.resource) << c.path;
    EXPECT_EQ(info.name, c.name) << c.path;
    EXPECT_EQ(info.subresource, c.subresource) << c.path;
  }
}

TEST(Router, LeavesOtherPathsAlone) {
  for (const auto* path : {"/",
                           "/healthz",
                           "/api",
                           "/apis",
                           "/api/v1",
                           "/apis/compute.ironcore.dev",
                           "/apis/compute.ironcore.dev/v1alpha1",
                           "/openapi/v2"}) {
    const auto info = Parse("GET", path);
    EXPECT_FALSE(info.is_resource) << path;
    EXPECT_EQ(info.verb, "get");
  }
}

TEST(Router, NamesNoKindForWhatIsNotServed) {
  for (const auto* path : {"/api/v1/pods",
                           "/apis/apps/v1/deployments",
                           "/apis/compute.example.org/v1alpha1/machines",
                           "/api/v2/secrets",
                           "/api/v1/namespaces/a/secrets/b/c/d/e",
                           "/api/v1/namespaces//secrets",
                           "/api/v1/namespaces/a/secrets//status",
                           "/api/v1/namespaces/a/namespaces",
                           "/apis/compute.ironcore.dev/v1alpha1/namespaces/a/machineclasses",
                           "/apis/compute.ironcore.dev/v1alpha1/namespaces/a/machinepools/b"}) {
    const auto info = Parse("GET", path);
    EXPECT_TRUE(info.is_resource) << path;
    EXPECT_EQ(info.kind, nullptr) << path;
  }
}

TEST(Router, KnowsMethodsByTheirExactName) {
  const char* secret = "/api/v1/namespaces/a/secrets/b";
  EXPECT_EQ(Parse("PATCH", secret).verb, "patch");
  for (const char* method : {"get", "Delete", "OPTIONS", "TRACE", "BREW"}) {
    EXPECT_EQ(Parse(method, secret).verb, "other") << method;
    EXPECT_EQ(Parse(method, "/api/v1/namespaces/a/secrets").verb, "other") << method;
  }
}

TEST(Router, RefusesSegmentsThatCouldBeMistakenForOthers) {
  const meta::Scheme scheme(apis::AllKinds(), {"ironcore.dev"});
  for (const auto* path : {"/api/v1/namespaces/a%2Fb/secrets",
                           "/api/v1/namespaces/../secrets",
                           "/api/v1/namespaces/a%00/secrets",
                           "/api/v1/namespaces/%zz",
                           "/api/v1/namespaces/a%0a",
                           "/api/v1/namespaces/%ff"}) {
    EXPECT_FALSE(ParseRequest(scheme, "GET", path, {}).ok()) << path;
  }
}

}  // namespace
}  // namespace berth::apiserver
