// SPDX-License-Identifier: Apache-2.0
// Defends the rules and the column of ResourceQuota.
#include "apis/core/resource_quota.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::core {
namespace {

using testing::CellOf;
using testing::Parse;

ResourceQuota Valid() {
  return Parse<ResourceQuota>(R"({
    "metadata": {"name": "q", "namespace": "ns"},
    "spec": {
      "hard": {"count/machines.compute.ironcore.dev": "10", "requests.cpu": "0"},
      "scopeSelector": {"matchExpressions": [
        {"scopeName": "MachineClass", "operator": "In", "values": ["large"]},
        {"scopeName": "MachineClass", "operator": "Exists"}]}}})");
}

ResourceScopeSelectorRequirement& First(ResourceQuota& quota) {
  return quota.spec.scope_selector->match_expressions[0];
}

TEST(ResourceQuota, HasRules) {
  testing::ExpectRules<ResourceQuota>(
      Valid(),
      {
          {"unknown name",
           [](auto& quota) { quota.spec.hard["pods"] = meta::Quantity(1); },
           {"NotSupported spec.hard[pods]"}},
          {"negative limit",
           [](auto& quota) { quota.spec.hard["requests.cpu"] = meta::Quantity(-1); },
           {"Invalid spec.hard[requests.cpu]"}},
          {"unknown scope",
           [](auto& quota) { First(quota).scope_name = "PodClass"; },
           {"NotSupported spec.scopeSelector.matchExpressions[0].scopeName"}},
          {"no scope",
           [](auto& quota) { First(quota).scope_name = ""; },
           {"Required spec.scopeSelector.matchExpressions[0].scopeName"}},
          {"unknown operator",
           [](auto& quota) {
             First(quota).operator_ = "Like";
             First(quota).values.clear();
           },
           {"NotSupported spec.scopeSelector.matchExpressions[0].operator"}},
          {"In without values",
           [](auto& quota) { First(quota).values.clear(); },
           {"Required spec.scopeSelector.matchExpressions[0].values"}},
          {"Exists with values",
           [](auto& quota) { First(quota).operator_ = "Exists"; },
           {"Forbidden spec.scopeSelector.matchExpressions[0].values"}},
          {"no limits", [](auto& quota) { quota.spec.hard.clear(); }, {}},
      });
}

TEST(ResourceQuota, HasStatusRules) {
  testing::ExpectStatusRules<ResourceQuota>(
      Valid(),
      {
          {"negative use",
           [](auto& quota) { quota.status.used["requests.cpu"] = meta::Quantity(-1); },
           {"Invalid status.used[requests.cpu]"}},
          {"negative limit",
           [](auto& quota) { quota.status.hard["requests.cpu"] = meta::Quantity(-1); },
           {"Invalid status.hard[requests.cpu]"}},
      });
}

TEST(ResourceQuota, ShowsUsedAndHard) {
  ResourceQuota quota = Valid();
  quota.status = Parse<ResourceQuota>(R"({"status": {
      "hard": {"requests.memory": "16Gi", "requests.cpu": "4"}, "used": {"requests.cpu": "500m"}}})")
                     .status;
  EXPECT_EQ(CellOf(kResourceQuotaKind, "Request", &quota),
            "requests.cpu: 500m/4, requests.memory: 0/16Gi");
}

}  // namespace
}  // namespace berth::apis::core
