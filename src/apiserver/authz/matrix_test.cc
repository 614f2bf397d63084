// SPDX-License-Identifier: Apache-2.0
// Defends: for every combination of who, verb, kind, alias domain and namespace, and for random
// policies, the indexed Authorizer answers like a plain reading of the rules that shares no code
// with it.
#include <gtest/gtest.h>

#include <algorithm>

#include "apiserver/authz/authorizer.h"
#include "apiserver/authz/default_roles.h"
#include "apiserver/authz/internal/test_scheme.h"
#include "base/random.h"

namespace berth::apiserver {
namespace {

struct OracleRole {
  PolicyKey key;
  std::vector<PolicyRule> rules;
};
struct OracleBinding {
  PolicyKey key;
  Binding binding;
};
struct World {
  std::vector<OracleRole> roles;
  std::vector<OracleBinding> bindings;
};

// The oracle knows the two domains by itself.
std::string PlainGroup(std::string group) {
  std::string lower;
  for (char c : group) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string domain : {".ironcore.dev", ".openkcm.dev"}) {
    if (lower.size() > domain.size() && lower.ends_with(domain)) {
      return lower.substr(0, lower.size() - domain.size()) + ".ironcore.dev";
    }
  }
  return group;
}

bool Listed(const std::vector<std::string>& list, const std::string& text) {
  for (const auto& item : list) {
    if (item == text) return true;
  }
  return false;
}

bool OracleRuleAllows(const PolicyRule& rule, const RequestInfo& request) {
  if (!Listed(rule.verbs, "*") && !Listed(rule.verbs, request.verb)) return false;
  if (!request.is_resource) {
    for (std::string url : rule.non_resource_urls) {
      if (url == request.path) return true;
      if (!url.empty() && url.back() == '*') {
        url.pop_back();
        if (request.path.compare(0, url.size(), url) == 0) return true;
      }
    }
    return false;
  }
  bool group_matches = Listed(rule.api_groups, "*");
  for (const auto& group : rule.api_groups) {
    if (PlainGroup(group) == PlainGroup(request.requested_group)) group_matches = true;
  }
  if (!group_matches) return false;
  const std::string sub = request.subresource.empty() ? "" : "/" + request.subresource;
  if (!Listed(rule.resources, "*") && !Listed(rule.resources, request.resource + sub) &&
      (sub.empty() || !Listed(rule.resources, "*" + sub))) {
    return false;
  }
  return rule.resource_names.empty() || Listed(rule.resource_names, request.name);
}

bool OracleAllows(const World& world, const Identity& who, const RequestInfo& request) {
  if (Listed(who.groups, "system:masters")) return true;
  for (const auto& [key, binding] : world.bindings) {
    const bool applies =
        key.namespace_.empty() || (request.is_resource && key.namespace_ == request.namespace_);
    if (!applies) continue;
    bool is_subject = false;
    for (const auto& subject : binding.subjects) {
      if (subject.kind == SubjectKind::kUser && subject.name == who.user) is_subject = true;
      if (subject.kind == SubjectKind::kGroup && Listed(who.groups, subject.name))
        is_subject = true;
    }
    if (!is_subject) continue;
    for (const auto& role : world.roles) {
      if (role.key != binding.role) continue;
      for (const auto& rule : role.rules) {
        if (OracleRuleAllows(rule, request)) return true;
      }
    }
  }
  return false;
}

void Load(const World& world, Authorizer& authorizer) {
  for (const auto& [key, rules] : world.roles) authorizer.SetRole(key, rules);
  for (const auto& [key, binding] : world.bindings) authorizer.SetBinding(key, binding);
}

const std::vector<std::string> kGroups = {"compute.ironcore.dev",
                                          "compute.OpenKCM.dev",
                                          "compute.openkcm.dev",
                                          "COMPUTE.OPENKCM.DEV",
                                          "storage.ironcore.dev",
                                          "storage.OpenKCM.dev",
                                          "",
                                          "rbac.authorization.k8s.io",
                                          "compute.example.org"};
const std::vector<std::string> kVerbsTried = {"get",
                                              "list",
                                              "watch",
                                              "create",
                                              "update",
                                              "patch",
                                              "delete",
                                              "deletecollection",
                                              "impersonate",
                                              "bind",
                                              "frobnicate",
                                              "*"};
const std::vector<std::string> kResources = {
    "machines", "machineclasses", "machinepools", "volumes", "secrets", "roles", "resourcequotas"};

std::vector<RequestInfo> AllRequests() {
  std::vector<RequestInfo> requests;
  for (const auto& verb : kVerbsTried) {
    for (const auto& group : kGroups) {
      for (const auto& resource : kResources) {
        for (const char* ns : {"", "blue", "red"}) {
          requests.push_back(Asking(verb, group, resource, ns));
          requests.push_back(Asking(verb, group, resource, ns, "x"));
          requests.push_back(Asking(verb, group, resource, ns, "x", "status"));
        }
      }
    }
    for (const char* path : {"/metrics", "/metrics/x", "/api", "/version", "/"}) {
      requests.push_back(AskingPath(verb, path));
    }
  }
  return requests;
}

const std::vector<Identity> kPeople = {
    Someone("root", {"system:masters"}),
    Someone("admin"),
    Someone("editor"),
    Someone("viewer", {"dev"}),
    Someone("nobody"),
    {.user = "system:anonymous", .groups = {"system:unauthenticated"}},
    Someone("blue-admin"),
};

// Returns how often the answer was yes.
size_t Compare(const World& world, const std::vector<RequestInfo>& requests) {
  Authorizer authorizer(TestScheme());
  Load(world, authorizer);
  size_t allowed = 0;
  for (const auto& who : kPeople) {
    for (const auto& request : requests) {
      const bool expected = OracleAllows(world, who, request);
      EXPECT_EQ(authorizer.Allows(who, request), expected)
          << who.user << " " << request.verb << " " << request.requested_group << " "
          << request.resource << "/" << request.subresource << " in " << request.namespace_ << " "
          << request.path;
      allowed += expected ? 1 : 0;
      if (testing::Test::HasFailure()) return allowed;
    }
  }
  return allowed;
}

TEST(Matrix, DefaultRolesAnswerLikeAPlainReading) {
  World world;
  for (const auto& role : DefaultRoles(TestScheme())) {
    world.roles.push_back({{"", role.name}, role.rules});
  }
  for (const auto& binding : DefaultBindings()) {
    world.bindings.push_back({{"", binding.name}, {{"", binding.name}, binding.subjects}});
  }
  auto user = [](const char* name) { return Subject{.kind = SubjectKind::kUser, .name = name}; };
  world.bindings.push_back({{"", "a"}, {{"", "admin"}, {user("admin")}}});
  world.bindings.push_back({{"", "e"}, {{"", "edit"}, {user("editor")}}});
  world.bindings.push_back({{"", "v"}, {{"", "view"}, {user("viewer")}}});
  world.bindings.push_back({{"blue", "a"}, {{"", "admin"}, {user("blue-admin")}}});
  const auto requests = AllRequests();
  const size_t allowed = Compare(world, requests);
  EXPECT_GT(allowed, requests.size()) << "root alone may do everything";
  EXPECT_LT(allowed, requests.size() * 3) << "nobody else may do nearly as much";
}

std::vector<std::string> Pick(Random& random,
                              const std::vector<std::string>& from,
                              std::initializer_list<std::string> special,
                              size_t most) {
  std::vector<std::string> picked;
  const size_t count = random.Below(most + 1);
  for (size_t i = 0; i < count; ++i) {
    if (special.size() > 0 && random.Chance(0.1)) {
      picked.push_back(*(special.begin() + static_cast<long>(random.Below(special.size()))));
    } else {
      picked.push_back(from[random.Below(from.size())]);
    }
  }
  return picked;
}

PolicyRule RandomRule(Random& random) {
  return {
      .verbs = Pick(random, kVerbsTried, {"*"}, 4),
      .api_groups = Pick(random, kGroups, {"*"}, 3),
      .resources = Pick(random, kResources, {"*", "*/status", "machines/status", "secrets/*"}, 3),
      .resource_names =
          random.Chance(0.3) ? Pick(random, {"x", "y"}, {}, 2) : std::vector<std::string>{}};
}

World RandomWorld(Random& random) {
  const std::vector<std::string> namespaces = {"", "blue", "red"};
  World world;
  for (int i = 0; i < 8; ++i) {
    OracleRole role{.key = {namespaces[random.Below(3)], "role-" + std::to_string(i)}};
    for (uint64_t n = random.Below(4); n > 0; --n) role.rules.push_back(RandomRule(random));
    if (role.key.namespace_.empty() && random.Chance(0.5)) {
      role.rules.push_back(
          {.verbs = Pick(random, kVerbsTried, {"*"}, 3),
           .non_resource_urls = Pick(random, {"/metrics", "/metrics/*", "/api*", "/"}, {"*"}, 2)});
    }
    world.roles.push_back(std::move(role));
  }
  for (int i = 0; i < 12; ++i) {
    OracleBinding bound{.key = {namespaces[random.Below(3)], "binding-" + std::to_string(i)}};
    const auto& role = world.roles[random.Below(world.roles.size())].key;
    const bool fits = role.namespace_.empty() || role.namespace_ == bound.key.namespace_;
    bound.binding.role = fits ? role : PolicyKey{"", "missing"};
    for (const auto& who : kPeople) {
      if (random.Chance(0.25)) {
        bound.binding.subjects.push_back({.kind = SubjectKind::kUser, .name = who.user});
      }
    }
    if (random.Chance(0.3)) {
      const char* names[] = {"dev", "system:authenticated", "system:unauthenticated"};
      bound.binding.subjects.push_back(
          {.kind = SubjectKind::kGroup, .name = names[random.Below(3)]});
    }
    world.bindings.push_back(std::move(bound));
  }
  return world;
}

TEST(Matrix, RandomPoliciesAnswerLikeAPlainReading) {
  const auto all = AllRequests();
  for (uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    Random random(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::vector<RequestInfo> some;
    while (some.size() < 300) some.push_back(all[random.Below(all.size())]);
    Compare(RandomWorld(random), some);
  }
}

// One authorizer lives through hundreds of changes and must end where a fresh one begins.
TEST(Matrix, IncrementalChangesEndWhereAFreshIndexBegins) {
  Authorizer authorizer(TestScheme());
  World last;
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    World world = RandomWorld(random);
    for (const auto& [key, binding] : last.bindings) {
      if (std::ranges::none_of(world.bindings, [&](auto& b) { return b.key == key; })) {
        authorizer.RemoveBinding(key);
      }
    }
    for (const auto& [key, rules] : last.roles) {
      if (std::ranges::none_of(world.roles, [&](auto& r) { return r.key == key; })) {
        authorizer.RemoveRole(key);
      }
    }
    Load(world, authorizer);
    last = std::move(world);
  }
  size_t allowed = 0;
  const auto requests = AllRequests();
  for (const auto& who : kPeople) {
    for (const auto& request : requests) {
      const bool expected = OracleAllows(last, who, request);
      ASSERT_EQ(authorizer.Allows(who, request), expected) << who.user << " " << request.verb;
      allowed += expected ? 1 : 0;
    }
  }
  EXPECT_GT(allowed, 0U);
}

}  // namespace
}  // namespace berth::apiserver
