// SPDX-License-Identifier: Apache-2.0
// Defends the rules and columns of MachineSet.
#include "apis/berth/machine_set.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::berth_dev {
namespace {

MachineSet Valid() {
  return testing::Parse<MachineSet>(R"({
    "apiVersion": "berth.dev/v1alpha1", "kind": "MachineSet",
    "metadata": {"name": "web", "namespace": "team"},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
             "template": {"metadata": {"labels": {"app": "web", "tier": "front"}},
                          "spec": {"machineClassRef": {"name": "small"}}}}})");
}

TEST(MachineSet, C7_ValidatesItsNumbersSelectorAndTemplate) {
  testing::ExpectRules<MachineSet>(
      Valid(),
      {
          {"as it is", [](auto&) {}, {}},
          {"none", [](auto& set) { set.spec.replicas = 0; }, {}},
          {"negative", [](auto& set) { set.spec.replicas = -1; }, {"Invalid spec.replicas"}},
          {"too many", [](auto& set) { set.spec.replicas = 100'001; }, {"Invalid spec.replicas"}},
          {"a selector of everything",
           [](auto& set) { set.spec.selector = {}; },
           {"Required spec.selector"}},
          {"labels that do not match",
           [](auto& set) { set.spec.machine_template.metadata.labels = {{"app", "db"}}; },
           {"Invalid spec.template.metadata.labels"}},
          {"no class",
           [](auto& set) { set.spec.machine_template.spec.machine_class_ref = {}; },
           {"Required spec.template.spec.machineClassRef"}},
          {"a name for all",
           [](auto& set) { set.spec.machine_template.metadata.name = "web"; },
           {"Forbidden spec.template.metadata.name"}},
          {"a pool",
           [](auto& set) {
             set.spec.machine_template.spec.machine_pool_ref = core::LocalObjectReference{"p"};
           },
           {"Forbidden spec.template.spec.machinePoolRef"}},
          {"one volume for all",
           [](auto& set) {
             set.spec.machine_template.spec.volumes.push_back({.name = "data"});
             set.spec.machine_template.spec.volumes[0].volume_ref = core::LocalObjectReference{"v"};
           },
           {"Forbidden spec.template.spec.volumes[0].volumeRef"}},
          {"an update that cannot begin",
           [](auto& set) {
             set.spec.strategy = SetStrategy{RollingUpdate{.max_unavailable = 0, .max_surge = 0}};
           },
           {"Invalid spec.strategy.rollingUpdate"}},
          {"an unknown way of naming",
           [](auto& set) { set.spec.names = "Roman"; },
           {"NotSupported spec.names"}},
      });
}

TEST(MachineSet, TheSelectorCannotChange) {
  testing::ExpectUpdateRules<MachineSet>(
      Valid(),
      {
          {"another number", [](auto& set) { set.spec.replicas = 7; }, {}},
          {"another class",
           [](auto& set) { set.spec.machine_template.spec.machine_class_ref.name = "large"; },
           {}},
          {"another selector",
           [](auto& set) { set.spec.selector.match_labels = {{"tier", "front"}}; },
           {"Forbidden spec.selector"}},
      });
}

TEST(MachineSet, MachinesWithVolumesOfTheirOwnAreKeptAndOthersReplaced) {
  MachineSetSpec spec = Valid().spec;
  EXPECT_EQ(OnPoolLossOf(spec), "Replace");
  spec.machine_template.spec.volumes.push_back({.name = "data"});
  spec.machine_template.spec.volumes[0].ephemeral.emplace();
  EXPECT_EQ(OnPoolLossOf(spec), "Keep");
  spec.on_pool_loss = "Move";
  EXPECT_EQ(OnPoolLossOf(spec), "Move");
}

TEST(MachineSet, WithoutANumberThereIsOne) {
  MachineSet set = Valid();
  set.spec.replicas.reset();
  EXPECT_EQ(testing::WithDefaults(set).spec.replicas, 1);
}

}  // namespace
}  // namespace berth::apis::berth_dev
