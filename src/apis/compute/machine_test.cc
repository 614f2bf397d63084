// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of Machine.
#include "apis/compute/machine.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::compute {
namespace {

using testing::CellOf;
using testing::Parse;

Machine Valid() {
  return Parse<Machine>(R"({
    "apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "Machine",
    "metadata": {"name": "m", "namespace": "ns"},
    "spec": {
      "machineClassRef": {"name": "large"},
      "machinePoolSelector": {"zone": "a"},
      "networkInterfaces": [
        {"name": "primary", "networkInterfaceRef": {"name": "nic"}},
        {"name": "second", "ephemeral": {"networkInterfaceTemplate": {"spec": {
          "networkRef": {"name": "net"}, "ips": [{"value": "10.0.0.1"}]}}}}],
      "volumes": [
        {"name": "root", "device": "oda", "localDisk": {"sizeLimit": "10Gi", "image": "os"}},
        {"name": "data", "volumeRef": {"name": "vol"}},
        {"name": "scratch", "emptyDisk": {"sizeLimit": "1Gi"}},
        {"name": "made", "ephemeral": {"volumeTemplate": {
          "metadata": {"labels": {"a": "b"}},
          "spec": {"volumeClassRef": {"name": "fast"}, "resources": {"storage": "1Gi"}}}}}],
      "ignitionRef": {"name": "ign"},
      "efiVars": [{"name": "BootOrder", "uuid": "8be4df61", "value": "0"}],
      "tolerations": [{"key": "a", "operator": "Exists"}],
      "guestConfig": {"hostname": "guest"}}})");
}

TEST(Machine, HasDefaults) {
  const Machine machine = testing::WithDefaults(Valid());
  EXPECT_EQ(machine.spec.power, "On");
  EXPECT_EQ(machine.status.state, "Pending");
  const auto& nic = machine.spec.network_interfaces[1].ephemeral->network_interface_template;
  EXPECT_EQ(nic->spec.ip_families, std::vector<std::string>{"IPv4"});
}

TEST(Machine, IsMinimalWithAClass) {
  testing::ExpectRules<Machine>(
      Parse<Machine>(R"({"metadata": {"name": "m"}, "spec": {"machineClassRef": {"name": "c"}}})"),
      {{"off", [](auto& m) { m.spec.power = "Off"; }, {}}});
}

TEST(Machine, HasRules) {
  testing::ExpectRules<Machine>(
      Valid(),
      {
          {"no class",
           [](auto& m) { m.spec.machine_class_ref.name = ""; },
           {"Required spec.machineClassRef"}},
          {"bad class",
           [](auto& m) { m.spec.machine_class_ref.name = "A b"; },
           {"Invalid spec.machineClassRef.name"}},
          {"bad pool",
           [](auto& m) { m.spec.machine_pool_ref = {"A b"}; },
           {"Invalid spec.machinePoolRef.name"}},
          {"bad selector",
           [](auto& m) { m.spec.machine_pool_selector = {{"a b", "c"}}; },
           {"Invalid spec.machinePoolSelector"}},
          {"unknown power", [](auto& m) { m.spec.power = "Paused"; }, {"NotSupported spec.power"}},
          {"bad ignition",
           [](auto& m) { m.spec.ignition_ref->name = ""; },
           {"Required spec.ignitionRef.name"}},
          {"empty variable",
           [](auto& m) { m.spec.efi_vars.push_back({"A", "", ""}); },
           {"Required spec.efiVars[1].uuid", "Required spec.efiVars[1].value"}},
          {"variable twice",
           [](auto& m) { m.spec.efi_vars.push_back(m.spec.efi_vars[0]); },
           {"Duplicate spec.efiVars[1].name"}},
          {"bad toleration",
           [](auto& m) { m.spec.tolerations = {{"", "Equal", "v", ""}}; },
           {"Invalid spec.tolerations[0].operator"}},
          {"unknown effect",
           [](auto& m) { m.spec.tolerations = {{"a", "Exists", "", "Never"}}; },
           {"NotSupported spec.tolerations[0].effect"}},
          {"unknown operator",
           [](auto& m) { m.spec.tolerations = {{"a", "Like", "", ""}}; },
           {"NotSupported spec.tolerations[0].operator"}},
          {"bad host name",
           [](auto& m) { m.spec.guest_config->hostname = "a.b"; },
           {"Invalid spec.guestConfig.hostname"}},
      });
}

TEST(Machine, HasRulesForNetworkInterfaces) {
  testing::ExpectRules<Machine>(
      Valid(),
      {
          {"no name",
           [](auto& m) { m.spec.network_interfaces[0].name = ""; },
           {"Required spec.networkInterfaces[0].name"}},
          {"bad name",
           [](auto& m) { m.spec.network_interfaces[0].name = "A b"; },
           {"Invalid spec.networkInterfaces[0].name"}},
          {"name twice",
           [](auto& m) { m.spec.network_interfaces[1].name = "primary"; },
           {"Duplicate spec.networkInterfaces[1].name"}},
          {"no source",
           [](auto& m) { m.spec.network_interfaces[0].network_interface_ref.reset(); },
           {"Required spec.networkInterfaces[0]"}},
          {"two sources",
           [](auto& m) { m.spec.network_interfaces[1].network_interface_ref = {"nic"}; },
           {"Forbidden spec.networkInterfaces[1]"}},
          {"bad reference",
           [](auto& m) { m.spec.network_interfaces[0].network_interface_ref = {""}; },
           {"Required spec.networkInterfaces[0].networkInterfaceRef.name"}},
          {"no template",
           [](auto& m) {
             m.spec.network_interfaces[1].ephemeral->network_interface_template.reset();
           },
           {"Required spec.networkInterfaces[1].ephemeral.networkInterfaceTemplate"}},
          {"template with a name",
           [](auto& m) {
             m.spec.network_interfaces[1].ephemeral->network_interface_template->metadata.name =
                 "n";
           },
           {"Forbidden spec.networkInterfaces[1].ephemeral.networkInterfaceTemplate.metadata."
            "name"}},
          {"template without network",
           [](auto& m) {
             m.spec.network_interfaces[1]
                 .ephemeral->network_interface_template->spec.network_ref.name = "";
           },
           {"Required spec.networkInterfaces[1].ephemeral.networkInterfaceTemplate.spec."
            "networkRef"}},
      });
}

TEST(Machine, HasRulesForVolumes) {
  testing::ExpectRules<Machine>(
      Valid(),
      {
          {"no name",
           [](auto& m) { m.spec.volumes[0].name = ""; },
           {"Required spec.volumes[0].name"}},
          {"name twice",
           [](auto& m) { m.spec.volumes[1].name = "root"; },
           {"Duplicate spec.volumes[1].name"}},
          {"device twice",
           [](auto& m) { m.spec.volumes[1].device = "oda"; },
           {"Duplicate spec.volumes[1].device"}},
          {"bad device",
           [](auto& m) { m.spec.volumes[1].device = "sd1"; },
           {"Invalid spec.volumes[1].device"}},
          {"no source",
           [](auto& m) { m.spec.volumes[1].volume_ref.reset(); },
           {"Required spec.volumes[1]"}},
          {"two sources",
           [](auto& m) { m.spec.volumes[1].local_disk.emplace(); },
           {"Forbidden spec.volumes[1]"}},
          {"bad reference",
           [](auto& m) { m.spec.volumes[1].volume_ref = {"A b"}; },
           {"Invalid spec.volumes[1].volumeRef.name"}},
          {"negative empty disk",
           [](auto& m) { m.spec.volumes[2].empty_disk->size_limit = meta::Quantity(-1); },
           {"Invalid spec.volumes[2].emptyDisk.sizeLimit"}},
          {"negative local disk",
           [](auto& m) { m.spec.volumes[0].local_disk->size_limit = meta::Quantity(-1); },
           {"Invalid spec.volumes[0].localDisk.sizeLimit"}},
          {"no template",
           [](auto& m) { m.spec.volumes[3].ephemeral->volume_template.reset(); },
           {"Required spec.volumes[3].ephemeral.volumeTemplate"}},
          {"claimed template",
           [](auto& m) {
             m.spec.volumes[3].ephemeral->volume_template->spec.claim_ref = {"m", "1"};
           },
           {"Forbidden spec.volumes[3].ephemeral.volumeTemplate.spec.claimRef"}},
          {"unclaimable template",
           [](auto& m) { m.spec.volumes[3].ephemeral->volume_template->spec.unclaimable = true; },
           {"Forbidden spec.volumes[3].ephemeral.volumeTemplate.spec.unclaimable"}},
          {"template with an owner",
           [](auto& m) {
             m.spec.volumes[3].ephemeral->volume_template->metadata.finalizers = {"a/b"};
           },
           {"Forbidden spec.volumes[3].ephemeral.volumeTemplate.metadata.finalizers"}},
          {"template without size",
           [](auto& m) { m.spec.volumes[3].ephemeral->volume_template->spec.resources.clear(); },
           {"Required spec.volumes[3].ephemeral.volumeTemplate.spec.resources[storage]"}},
      });
}

TEST(Machine, KeepsClassPoolGuestAndImages) {
  Machine bound = Valid();
  bound.spec.machine_pool_ref = {"pool"};
  bound.status.volumes = {{.name = "old"}};
  testing::ExpectUpdateRules<Machine>(
      bound,
      {
          {"another class",
           [](auto& m) { m.spec.machine_class_ref.name = "small"; },
           {"Forbidden spec.machineClassRef"}},
          {"another pool",
           [](auto& m) { m.spec.machine_pool_ref = {"other"}; },
           {"Forbidden spec.machinePoolRef"}},
          {"no pool",
           [](auto& m) { m.spec.machine_pool_ref.reset(); },
           {"Forbidden spec.machinePoolRef"}},
          {"another guest",
           [](auto& m) { m.spec.guest_config->hostname = "other"; },
           {"Forbidden spec.guestConfig"}},
          {"no guest",
           [](auto& m) { m.spec.guest_config.reset(); },
           {"Forbidden spec.guestConfig"}},
          {"disk with image removed",
           [](auto& m) { m.spec.volumes.erase(m.spec.volumes.begin()); },
           {"Forbidden spec.volumes"}},
          {"image cleared",
           [](auto& m) { m.spec.volumes[0].local_disk->image = ""; },
           {"Forbidden spec.volumes[0].localDisk.image"}},
          {"image changed",
           [](auto& m) { m.spec.volumes[0].local_disk->image = "other"; },
           {"Forbidden spec.volumes[0].localDisk.image"}},
          {"name still attached",
           [](auto& m) { m.spec.volumes.push_back({.name = "old", .volume_ref = {{"v"}}}); },
           {"Forbidden spec.volumes[4].name"}},
          {"the rest",
           [](auto& m) {
             m.spec.power = "Off";
             m.spec.tolerations.clear();
             m.spec.machine_pool_selector.clear();
             m.spec.volumes.pop_back();
             m.spec.network_interfaces.clear();
             m.spec.ignition_ref.reset();
             m.spec.efi_vars.clear();
           },
           {}},
      });
}

TEST(Machine, GetsItsPoolOnceAndNoGuestLater) {
  Machine free = Valid();
  free.spec.guest_config.reset();
  testing::ExpectUpdateRules<Machine>(
      free,
      {
          {"bind", [](auto& m) { m.spec.machine_pool_ref = {"pool"}; }, {}},
          {"guest added",
           [](auto& m) { m.spec.guest_config = {"late"}; },
           {"Forbidden spec.guestConfig"}},
      });
}

TEST(Machine, ValidatesItsStatus) {
  testing::ExpectStatusRules<Machine>(
      Valid(),
      {
          {"condition twice",
           [](auto& m) { m.status.conditions = {{.type = "Ready"}, {.type = "Ready"}}; },
           {"Duplicate status.conditions[1].type"}},
          {"interface twice",
           [](auto& m) { m.status.network_interfaces = {{.name = "a"}, {.name = "a"}}; },
           {"Duplicate status.networkInterfaces[1].name"}},
          {"volume twice",
           [](auto& m) { m.status.volumes = {{.name = "a"}, {.name = "a"}}; },
           {"Duplicate status.volumes[1].name"}},
      });
}

TEST(Machine, ShowsClassImagePoolAndState) {
  Machine machine = Valid();
  EXPECT_EQ(CellOf(kMachineKind, "MachineClassRef", &machine), "large");
  EXPECT_EQ(CellOf(kMachineKind, "Image", &machine), "os");
  EXPECT_EQ(CellOf(kMachineKind, "MachinePoolRef", &machine), "<none>");
  EXPECT_EQ(CellOf(kMachineKind, "State", &machine), "<unknown>");
  machine = testing::WithDefaults(machine);
  machine.spec.volumes.clear();
  EXPECT_EQ(CellOf(kMachineKind, "Image", &machine), "<none>");
  EXPECT_EQ(CellOf(kMachineKind, "State", &machine), "Pending");
}

}  // namespace
}  // namespace berth::apis::compute
