// SPDX-License-Identifier: Apache-2.0
// Defends the rules and the column of MachinePool.
#include "apis/compute/machine_pool.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::compute {
namespace {

MachinePool Valid() {
  return testing::Parse<MachinePool>(R"({
    "apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "MachinePool",
    "metadata": {"name": "machinepool-sample"}, "spec": {"providerID": "ironcore://shared"}})");
}

MachinePool Announced() {
  MachinePool pool = Valid();
  pool.status.available_machine_classes = {{"machineclass-sample"}};
  return pool;
}

TEST(MachinePool, ValidatesTaints) {
  testing::ExpectRules<MachinePool>(
      Valid(),
      {
          {"a taint", [](auto& pool) { pool.spec.taints = {{"a", "b", "PreferNoSchedule"}}; }, {}},
          {"no provider", [](auto& pool) { pool.spec.provider_id = ""; }, {}},
          {"no key",
           [](auto& pool) { pool.spec.taints = {{"", "", "NoSchedule"}}; },
           {"Required spec.taints[0].key"}},
          {"no effect",
           [](auto& pool) { pool.spec.taints = {{"a", "", ""}}; },
           {"Required spec.taints[0].effect"}},
          {"unknown effect",
           [](auto& pool) { pool.spec.taints = {{"a", "", "NoEntry"}}; },
           {"NotSupported spec.taints[0].effect"}},
          {"bad key",
           [](auto& pool) { pool.spec.taints = {{"a b", "", "NoExecute"}}; },
           {"Invalid spec.taints[0].key"}},
          {"twice",
           [](auto& pool) {
             pool.spec.taints = {{"a", "1", "NoExecute"}, {"a", "2", "NoExecute"}};
           },
           {"Duplicate spec.taints[1]"}},
          {"unknown state",
           [](auto& pool) { pool.status.state = "Tired"; },
           {"NotSupported status.state"}},
      });
}

TEST(MachinePool, MayBeCorrectedUntilItIsAnnounced) {
  testing::ExpectUpdateRules<MachinePool>(
      Valid(),
      {
          {"both domains' manifests apply",
           [](auto& pool) { pool.spec.provider_id = "OpenKCM://shared"; },
           {}},
      });
  testing::ExpectUpdateRules<MachinePool>(
      Announced(),
      {
          {"another provider",
           [](auto& pool) { pool.spec.provider_id = "OpenKCM://shared"; },
           {"Forbidden spec.providerID"}},
          {"none", [](auto& pool) { pool.spec.provider_id = ""; }, {"Forbidden spec.providerID"}},
          {"taints", [](auto& pool) { pool.spec.taints = {{"a", "", "NoExecute"}}; }, {}},
      });
}

TEST(MachinePool, IsAnnouncedByAnyReport) {
  EXPECT_FALSE(IsAnnounced({}));
  EXPECT_FALSE(IsAnnounced({.state = "Pending"}));
  EXPECT_TRUE(IsAnnounced({.conditions = {{.type = "Ready"}}}));
  EXPECT_TRUE(IsAnnounced({.available_machine_classes = {{"a"}}}));
  EXPECT_TRUE(IsAnnounced({.addresses = {{"Hostname", "a"}}}));
  EXPECT_TRUE(IsAnnounced({.capacity = {{"class/machine.a", meta::Quantity(1)}}}));
}

TEST(MachinePool, ValidatesItsStatus) {
  testing::ExpectStatusRules<MachinePool>(
      Announced(),
      {
          {"class twice",
           [](auto& pool) {
             pool.status.available_machine_classes.push_back({"machineclass-sample"});
           },
           {"Duplicate status.availableMachineClasses[1].name"}},
          {"class without name",
           [](auto& pool) { pool.status.available_machine_classes.push_back({""}); },
           {"Required status.availableMachineClasses[1].name"}},
          {"negative capacity",
           [](auto& pool) { pool.status.capacity["class/machine.a"] = meta::Quantity(-1); },
           {"Invalid status.capacity[class/machine.a]"}},
          {"negative allocatable",
           [](auto& pool) { pool.status.allocatable["class/machine.a"] = meta::Quantity(-1); },
           {"Invalid status.allocatable[class/machine.a]"}},
          {"condition twice",
           [](auto& pool) { pool.status.conditions = {{.type = "Ready"}, {.type = "Ready"}}; },
           {"Duplicate status.conditions[1].type"}},
          {"bad port",
           [](auto& pool) { pool.status.daemon_endpoints.machinepoollet_endpoint.port = 65536; },
           {"Invalid status.daemonEndpoints.machinepoolletEndpoint.port"}},
      });
}

TEST(MachinePool, ShowsItsClassesSorted) {
  MachinePool pool = Valid();
  EXPECT_EQ(testing::CellOf(kMachinePoolKind, "MachineClasses", &pool), "<none>");
  pool.status.available_machine_classes = {{"b"}, {"a"}};
  EXPECT_EQ(testing::CellOf(kMachinePoolKind, "MachineClasses", &pool), "a,b");
}

TEST(MachinePool, ShowsItsStateAndThatItIsCordoned) {
  MachinePool pool = Valid();
  EXPECT_EQ(testing::CellOf(kMachinePoolKind, "State", &pool), "<unknown>");
  pool.status.state = "Ready";
  EXPECT_EQ(testing::CellOf(kMachinePoolKind, "State", &pool), "Ready");
  pool.spec.unschedulable = true;
  EXPECT_EQ(testing::CellOf(kMachinePoolKind, "State", &pool), "Ready,Cordoned");
}

}  // namespace
}  // namespace berth::apis::compute
