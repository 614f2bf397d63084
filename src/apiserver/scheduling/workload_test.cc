// SPDX-License-Identifier: Apache-2.0
// Defends: what a client sends becomes the machine that it describes, or an error that names the
// field; and the same content is the same however it is written.
#include "apiserver/scheduling/workload.h"

#include <gtest/gtest.h>

#include <string>

#include "apis/compute/machine.h"
#include "apis/registry.h"

namespace berth::apiserver {
namespace {

using apis::compute::Machine;

const client::ObjectKey kKey{.namespace_ = "default", .name = "web-1"};

class Workload : public testing::Test {
 protected:
  Result<meta::Object> Read(std::string_view manifest) {
    return ReadWorkload(scheme, kKey, manifest);
  }
  const meta::Scheme scheme{apis::AllKinds(), {"ironcore.dev", "OpenKCM.dev"}};
};

TEST_F(Workload, AnIdIsADnsLabelInANamespace) {
  EXPECT_EQ(CheckInstanceKey("default", "a-1"), OkStatus());
  EXPECT_EQ(CheckInstanceKey("default", "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"), OkStatus());
  const std::string long_id(64, 'a');
  for (const std::string_view id : {std::string_view(""),
                                    std::string_view("A"),
                                    std::string_view("a.b"),
                                    std::string_view("a/b"),
                                    std::string_view("-a"),
                                    std::string_view("a\0b", 3),
                                    std::string_view(long_id)}) {
    const Status status = CheckInstanceKey("default", id);
    EXPECT_TRUE(status.Is(Reason::kBadRequest)) << id;
    EXPECT_TRUE(status.message().starts_with("instance_id: ")) << status;
  }
  EXPECT_TRUE(CheckInstanceKey("", "a").message().starts_with("namespace: "));
  EXPECT_TRUE(CheckInstanceKey("../x", "a").message().starts_with("namespace: "));
}

TEST_F(Workload, AManifestBecomesAMarkedMachine) {
  const auto made = Read(R"({"metadata":{"labels":{"app":"web"}},
      "spec":{"machineClassRef":{"name":"small"},"power":"Off"}})");
  ASSERT_TRUE(made.ok()) << made.status();
  const auto& machine = made->as<Machine>();
  EXPECT_EQ(machine.metadata.namespace_, "default");
  EXPECT_EQ(machine.metadata.name, "web-1");
  EXPECT_EQ(machine.metadata.labels.at("app"), "web");
  EXPECT_EQ(machine.metadata.labels.at(std::string(kInstanceIdLabel)), "web-1");
  EXPECT_EQ(machine.spec.machine_class_ref.name, "small");
  EXPECT_EQ(machine.spec.power, "Off");
  EXPECT_TRUE(IsInstance(*made));
  EXPECT_EQ(ContentOf(*made).size(), 64U);
}

TEST_F(Workload, TheSameContentIsTheSameHoweverItIsWritten) {
  const auto json = Read(R"({"spec":{"machineClassRef":{"name":"small"}}})");
  const auto yaml = Read("spec:\n  machineClassRef: {name: small}\n");
  const auto full = Read(
      R"({"apiVersion":"compute.OpenKCM.dev/v1alpha1","kind":"Machine",
          "metadata":{"name":"web-1","namespace":"default","uid":"x","resourceVersion":"7"},
          "spec":{"machineClassRef":{"name":"small"}},"status":{"state":"Running"}})");
  const auto other = Read(R"({"spec":{"machineClassRef":{"name":"large"}}})");
  ASSERT_TRUE(json.ok() && yaml.ok() && full.ok() && other.ok()) << full.status();
  EXPECT_EQ(ContentOf(*json), ContentOf(*yaml));
  EXPECT_EQ(ContentOf(*json), ContentOf(*full));
  EXPECT_EQ(*json, *full) << "nothing but what a user decides";
  EXPECT_NE(ContentOf(*json), ContentOf(*other));
}

TEST_F(Workload, WhatIsNoSuchMachineIsRefusedByField) {
  struct Case {
    std::string manifest;
    const char* names;
  };
  for (const Case& bad : {
           Case{"", "manifest"},
           Case{"{", "invalid JSON"},
           Case{"[]", "manifest"},
           Case{R"({"spec":{"machineClassRef":{"name":"small"},"cpu":4}})", "spec.cpu"},
           Case{R"({"spec":{"machineClassRef":{"name":7}}})", "spec.machineClassRef.name"},
           Case{R"({"kind":"Volume","spec":{}})", "Volume"},
           Case{R"({"apiVersion":"v1","spec":{}})", "v1"},
           Case{R"({"metadata":{"name":"other"}})", "metadata.name"},
           Case{R"({"metadata":{"namespace":"other"}})", "metadata.namespace"},
           Case{R"({"metadata":{"labels":{"berth.dev/instance-id":"x"}}})",
                "berth.dev/instance-id"},
           Case{R"({"metadata":{"annotations":{"berth.dev/instance-content":"x"}}})",
                "berth.dev/instance-content"},
       }) {
    const auto made = Read(bad.manifest);
    EXPECT_TRUE(made.status().Is(Reason::kBadRequest)) << bad.manifest << made.status();
    EXPECT_NE(made.status().message().find(bad.names), std::string_view::npos) << made.status();
  }
  EXPECT_TRUE(Read(std::string(kManifestBytesMax + 1, ' ')).status().Is(Reason::kRequestTooLarge));
}

TEST_F(Workload, AnUpdateKeepsThePoolAndTheMarksOfOthers) {
  auto current =
      Read(R"({"metadata":{"labels":{"a":"1"}},"spec":{"machineClassRef":{"name":"s"}}})");
  auto wanted = Read(R"({"metadata":{"labels":{"b":"2"}},
      "spec":{"machineClassRef":{"name":"s"},"power":"Off"}})");
  ASSERT_TRUE(current.ok() && wanted.ok());
  current->metadata().annotations["berth.dev/on-pool-loss"] = "Replace";
  current->as<Machine>().spec.machine_pool_ref = apis::core::LocalObjectReference{.name = "p"};
  const meta::Object next = Replaced(*current, *wanted);
  const auto& machine = next.as<Machine>();
  EXPECT_EQ(machine.spec.power, "Off");
  EXPECT_EQ(machine.spec.machine_pool_ref->name, "p");
  EXPECT_EQ(machine.metadata.labels.at("a"), "1");
  EXPECT_EQ(machine.metadata.labels.at("b"), "2");
  EXPECT_EQ(machine.metadata.annotations.at("berth.dev/on-pool-loss"), "Replace");
  EXPECT_EQ(ContentOf(next), ContentOf(*wanted));
}

TEST_F(Workload, AMachineThatTookTheLabelOfAnotherIsNoInstance) {
  auto machine = Read(R"({"spec":{"machineClassRef":{"name":"s"}}})");
  ASSERT_TRUE(machine.ok());
  machine->metadata().name = "web-2";
  EXPECT_FALSE(IsInstance(*machine));
  machine->metadata().labels.clear();
  EXPECT_FALSE(IsInstance(*machine));
}

}  // namespace
}  // namespace berth::apiserver
