// SPDX-License-Identifier: Apache-2.0
// Defends: revocations, the authority, the identity of hosts, join tokens and elections are changed
// by those that administer the cluster, however wide the rights of others to ConfigMaps, Secrets
// and Leases are.
#include "apiserver/authz/servers_own.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "apis/k8s/config_map.h"
#include "apis/k8s/secret.h"
#include "apis/registry.h"
#include "apiserver/authz/default_roles.h"
#include "apiserver/authz/write_guards.h"
#include "pki/join_token.h"

namespace berth::apiserver {
namespace {

class ServersOwnTest : public ::testing::Test {
 protected:
  ServersOwnTest() {
    for (const DefaultRole& role : DefaultRoles(scheme_)) {
      authorizer_.SetRole({.namespace_ = "", .name = role.name}, role.rules);
      // Everybody is called as the role that they have in the whole cluster.
      authorizer_.SetBinding({.namespace_ = "", .name = role.name},
                             {.role = {.namespace_ = "", .name = role.name},
                              .subjects = {{.kind = SubjectKind::kUser, .name = role.name}}});
    }
  }
  static RequestInfo Asking(const std::string& verb,
                            const std::string& resource,
                            const std::string& name,
                            const std::string& space = "berth-system") {
    RequestInfo request;
    request.is_resource = true;
    request.verb = verb;
    request.resource = resource;
    request.group = resource == "leases" ? "coordination.k8s.io" : "";
    request.namespace_ = space;
    request.name = name;
    return request;
  }
  bool May(const std::string& who, const RequestInfo& request) const {
    return CheckServersOwn(authorizer_, {.user = who}, request).ok();
  }

  const meta::Scheme scheme_{apis::AllKinds(), {"ironcore.dev"}};
  Authorizer authorizer_{scheme_};
};

TEST_F(ServersOwnTest, OnlyWhoAdministersTheClusterChangesOrDeletesThem) {
  const std::pair<const char*, const char*> own[] = {{"configmaps", "revoked-users"},
                                                     {"configmaps", "revoked-hosts"},
                                                     {"configmaps", "authority"},
                                                     {"configmaps", "cluster"},
                                                     {"configmaps", "cluster-status"},
                                                     {"configmaps", "host-alpha"},
                                                     {"secrets", "join-token-bcdfghjkmn"},
                                                     {"leases", "leader"},
                                                     {"leases", "scheduler"},
                                                     {"leases", "server-1"},
                                                     {"configmaps", ""},
                                                     {"secrets", ""},
                                                     {"leases", ""}};
  for (const auto& [resource, name] : own) {
    for (const char* verb : {"update", "patch", "delete", "deletecollection"}) {
      if ((*name == '\0') != (std::string(verb) == "deletecollection")) continue;
      const RequestInfo request = Asking(verb, resource, name);
      for (const char* who : {"view", "edit", "admin", "berth:legacy-poollet", "nobody"}) {
        EXPECT_FALSE(May(who, request)) << who << " " << verb << " " << resource << " " << name;
      }
      EXPECT_TRUE(May("cluster-admin", request)) << verb << " " << resource << " " << name;
      const Identity root{.user = "root", .groups = {"system:masters"}};
      EXPECT_TRUE(CheckServersOwn(authorizer_, root, request).ok());
    }
  }
  EXPECT_TRUE(May("berth:scheduler", Asking("update", "leases", "scheduler")));
  EXPECT_FALSE(May("berth:scheduler", Asking("update", "leases", "leader")));
  const Status status =
      CheckServersOwn(authorizer_, {.user = "edit"}, Asking("delete", "configmaps", "authority"));
  EXPECT_TRUE(status.Is(Reason::kForbidden));
  EXPECT_NE(status.message().find("cannot administer resource \"configmaps\""), std::string::npos)
      << status;
}

TEST_F(ServersOwnTest, EverythingElseIsAMatterOfRoles) {
  for (const RequestInfo& request : {Asking("update", "configmaps", "mine"),
                                     Asking("delete", "configmaps", "authority", "default"),
                                     Asking("deletecollection", "configmaps", "", "default"),
                                     Asking("update", "leases", "leader", "default"),
                                     Asking("update", "configmaps", "hosts"),
                                     Asking("update", "configmaps", "host-alpha", "default"),
                                     Asking("update", "secrets", "authority"),
                                     Asking("delete", "secrets", "token-bcdfghjkmn"),
                                     Asking("delete", "secrets", "join-token-bcdfghjkmn", "blue"),
                                     Asking("deletecollection", "secrets", "", "blue"),
                                     Asking("get", "secrets", "join-token-bcdfghjkmn"),
                                     Asking("get", "configmaps", "authority"),
                                     Asking("list", "leases", "")}) {
    EXPECT_TRUE(May("edit", request)) << request.verb << " " << request.name;
  }
}

TEST_F(ServersOwnTest, ANewOneIsGuardedByItsName) {
  const Identity edit{.user = "edit"};
  const WriteGuards guards = GuardsFor(authorizer_, edit, Asking("create", "configmaps", ""));
  const auto made = [](const std::string& name, const std::string& space) {
    apis::k8s::ConfigMap map;
    map.metadata.name = name;
    map.metadata.namespace_ = space;
    return meta::Object::Of(apis::k8s::kConfigMapKind, std::move(map));
  };
  for (const char* name : {"revoked-users", "cluster", "cluster-status", "host-alpha"}) {
    EXPECT_TRUE(guards.write(nullptr, made(name, "berth-system")).Is(Reason::kForbidden)) << name;
  }
  EXPECT_TRUE(guards.write(nullptr, made("mine", "berth-system")).ok());
  EXPECT_TRUE(guards.write(nullptr, made("revoked-users", "default")).ok());
}

// Who writes one may be any host, also one that is there already.
TEST_F(ServersOwnTest, AJoinTokenIsKnownByItsNameAndByItsType) {
  const auto made = [](const std::string& name, std::string_view type, const std::string& space) {
    apis::k8s::Secret secret;
    secret.metadata.name = name;
    secret.metadata.namespace_ = space;
    secret.type = type;
    return meta::Object::Of(apis::k8s::kSecretKind, std::move(secret));
  };
  const meta::Object token =
      made("join-token-bcdfghjkmn", pki::kJoinTokenSecretType, "berth-system");
  const meta::Object nameless = made("other", pki::kJoinTokenSecretType, "berth-system");
  const meta::Object typeless = made("join-token-bcdfghjkmn", "Opaque", "berth-system");
  const meta::Object plain = made("other", "Opaque", "berth-system");
  const meta::Object elsewhere = made("join-token-bcdfghjkmn", pki::kJoinTokenSecretType, "blue");
  const auto may = [&](const char* who, const meta::Object* before, const meta::Object& after) {
    const WriteGuards guards =
        GuardsFor(authorizer_, {.user = who}, Asking("create", "secrets", ""));
    return guards.write(before, after).ok();
  };
  for (const char* who : {"edit", "admin", "berth:legacy-poollet"}) {
    EXPECT_FALSE(may(who, nullptr, token)) << who;
    EXPECT_FALSE(may(who, nullptr, nameless)) << who;
    EXPECT_FALSE(may(who, nullptr, typeless)) << who;
    EXPECT_FALSE(may(who, &token, token)) << who;
    EXPECT_FALSE(may(who, &plain, nameless)) << who;
    EXPECT_FALSE(may(who, &nameless, plain)) << who;
    EXPECT_TRUE(may(who, nullptr, plain)) << who;
    EXPECT_TRUE(may(who, &plain, plain)) << who;
    EXPECT_TRUE(may(who, nullptr, elsewhere)) << who;
  }
  for (const meta::Object* object : {&token, &nameless, &typeless, &plain}) {
    EXPECT_TRUE(may("cluster-admin", nullptr, *object)) << object->metadata().name;
  }
}

}  // namespace
}  // namespace berth::apiserver
