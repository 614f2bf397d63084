// SPDX-License-Identifier: Apache-2.0
// A runtime is told which objects are behind a machine and its parts, in the words of IronCore's
// poollets, and only by the server: not by attributes and annotations of users.
#include "poollet/reconcile/desired_labels.h"

#include <gtest/gtest.h>

#include "berth/agent/v1/agent.pb.h"
#include "iri/labels.h"
#include "poollet/reconcile/step.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;

pb::Assign Assignment() {
  pb::Assign assign;
  assign.set_uid("m-uid");
  assign.set_namespace_("default");
  assign.set_name("web");
  pb::MachineBody& body = *assign.mutable_machine();
  body.set_generation(3);
  pb::MachineNic& nic = *body.add_network_interfaces();
  nic.set_name("primary");
  nic.set_network_id("example://1");
  nic.set_nic_uid("nic-uid");
  nic.set_nic_name("web-primary");
  nic.set_network_uid("net-uid");
  nic.set_network_name("lan");
  pb::MachineVolume& volume = *body.add_volumes();
  volume.set_name("root");
  volume.mutable_access()->set_driver("d");
  volume.set_volume_uid("v-uid");
  volume.set_volume_name("data");
  return assign;
}

iri::Machine Made(const pb::Assign& assign) {
  const auto desired = ParseAssign(assign.SerializeAsString(), "cluster");
  CHECK(desired.ok()) << desired.status();
  return MachineToCreate(std::get<DesiredMachine>(desired->body), Situation());
}

TEST(DesiredLabels, AnInterfaceSaysWhichItIsAndInWhichNetwork) {
  const iri::MachineNic nic = Made(Assignment()).spec.nics.at(0);
  EXPECT_EQ(nic.network_id, "example://1") << "as its provider calls it";
  const iri::StringMap all = {{"berth.dev/network-uid", "net-uid"},
                              {"rawNICLabels",
                               R"({"machinepoollet.ironcore.dev/nic-name":"web-primary",)"
                               R"("machinepoollet.ironcore.dev/nic-namespace":"default",)"
                               R"("machinepoollet.ironcore.dev/nic-uid":"nic-uid"})"},
                              {"rawNetworkLabels",
                               R"({"machinepoollet.ironcore.dev/network-name":"lan",)"
                               R"("machinepoollet.ironcore.dev/network-namespace":"default",)"
                               R"("machinepoollet.ironcore.dev/network-uid":"net-uid"})"}};
  EXPECT_EQ(nic.attributes, all);
}

TEST(DesiredLabels, NoUserSaysWhichNetworkItIs) {
  pb::Assign assign = Assignment();
  pb::MachineNic& nic = *assign.mutable_machine()->mutable_network_interfaces(0);
  const iri::StringMap honest = Made(assign).spec.nics.at(0).attributes;
  for (const std::string_view key : iri::kServersNicAttributes) {
    (*nic.mutable_attributes())[std::string(key)] = "victim";
  }
  EXPECT_EQ(Made(assign).spec.nics.at(0).attributes, honest);
  // Nor where an earlier server says nothing.
  nic.clear_nic_uid();
  nic.clear_network_uid();
  (*nic.mutable_attributes())["prefix-length"] = "24";
  EXPECT_EQ(Made(assign).spec.nics.at(0).attributes, (iri::StringMap{{"prefix-length", "24"}}));
}

TEST(DesiredLabels, AVolumesConnectionSaysWhichItIs) {
  const auto raw = [](const pb::Assign& assign) {
    const iri::StringMap attributes = Made(assign).spec.volumes.at(0).connection->attributes;
    const auto found = attributes.find("rawVolumeLabels");
    return found == attributes.end() ? std::string() : found->second;
  };
  EXPECT_EQ(raw(Assignment()),
            R"({"machinepoollet.ironcore.dev/volume-name":"data",)"
            R"("machinepoollet.ironcore.dev/volume-namespace":"default",)"
            R"("machinepoollet.ironcore.dev/volume-uid":"v-uid"})");
  pb::Assign earlier = Assignment();
  earlier.mutable_machine()->mutable_volumes(0)->clear_volume_name();
  EXPECT_EQ(raw(earlier), "");
}

TEST(DesiredLabels, AMachineIsAnnotatedWithItsInterfacesAndGenerations) {
  pb::Assign assign = Assignment();
  auto& theirs = *assign.mutable_machine()->mutable_annotations();
  for (const char* const key : {"networkinterfacemapping", "irimachine-generation"}) {
    theirs["machinepoollet.ironcore.dev/" + std::string(key)] = "a user's";
  }
  pb::MachineNic& waiting = *assign.mutable_machine()->add_network_interfaces();
  waiting.set_name("backup");
  waiting.set_nic_uid("b-uid");
  waiting.set_nic_name("spare");
  waiting.set_waits_for("network lan does not exist");
  pb::MachineNic& unknown = *assign.mutable_machine()->add_network_interfaces();
  unknown.set_name("third");
  unknown.set_waits_for("network interface x does not exist yet");
  const iri::StringMap annotations = Made(assign).metadata.annotations;
  const iri::StringMap all = {{"machinepoollet.ironcore.dev/irimachine-generation", "0"},
                              {"machinepoollet.ironcore.dev/machine-generation", "3"},
                              {"machinepoollet.ironcore.dev/networkinterfacemapping",
                               R"({"backup":{"name":"spare","uid":"b-uid"},)"
                               R"("primary":{"name":"web-primary","uid":"nic-uid"}})"}};
  EXPECT_EQ(annotations, all);
  assign.mutable_machine()->clear_network_interfaces();
  EXPECT_EQ(Made(assign).metadata.annotations.at(std::string(iri::kNicMappingAnnotation)), "{}");
}

TEST(DesiredLabels, WhateverANameHoldsStaysOneText) {
  EXPECT_EQ(NicMapping({{"a\"b\\c\n", {.uid = "u", .namespace_ = "", .name = "\x01"}}}),
            R"({"a\"b\\c\u000a":{"name":"\u0001","uid":"u"}})");
}

}  // namespace
}  // namespace berth::poollet
