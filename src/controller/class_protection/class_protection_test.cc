// SPDX-License-Identifier: Apache-2.0
// Defends ADR 0038 for classes: a user that cannot be read keeps its own class, as far as that can
// be known, and no other one.
#include "controller/class_protection/class_protection.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/k8s/priority_class.h"
#include "apiserver/cache/keys.h"
#include "apiserver/registry/registry_world.h"
#include "meta/at_rest.h"
#include "rt/scope.h"

namespace berth::controller {
namespace {

using apis::compute::kMachineClassKind;
using apis::compute::kMachineKind;
using apis::k8s::kPriorityClassKind;

class ClassProtectionTest : public testing::Test {
 protected:
  ClassProtectionTest() {
    world_.MakeNamespace("default");
    for (const char* name : {"small", "large"}) {
      apis::compute::MachineClass machine_class;
      machine_class.metadata.name = name;
      machine_class.capabilities["cpu"] = meta::Quantity(1);
      machine_class.capabilities["memory"] = meta::Quantity(1 << 30);
      Make(meta::Object::Of(kMachineClassKind, std::move(machine_class)));
    }
    apis::k8s::PriorityClass urgent;
    urgent.metadata.name = "urgent";
    urgent.value = 1000;
    Make(meta::Object::Of(kPriorityClassKind, std::move(urgent)));
    scope_.Spawn("classes", classes_.Run());
    Settle();
  }
  ~ClassProtectionTest() override { EXPECT_TRUE(world_.Run(scope_.Close()).ok()); }

  void Make(meta::Object object) {
    const auto made = world_.Run(world_.client().Create(std::move(object), {}));
    ASSERT_TRUE(made.ok()) << made.status();
  }
  // A machine of class small, as the store would have it.
  static std::string MachineBytes() {
    apis::compute::Machine machine;
    machine.metadata.namespace_ = "default";
    machine.metadata.name = "m";
    machine.metadata.uid = "uid";
    machine.spec.machine_class_ref.name = "small";
    const Bytes bytes = meta::EncodeAtRest(meta::Object::Of(kMachineKind, std::move(machine)));
    return std::string(bytes.view());
  }
  // Somebody who does not go through the API.
  void WriteMachine(const std::string& bytes) {
    store::Txn txn;
    txn.ops.push_back(
        store::Op::Put(apiserver::StoreKey(kMachineKind, {"default", "m"}), Bytes(bytes)));
    ASSERT_TRUE(world_.Run(world_.store().Commit(std::move(txn))).ok());
    ASSERT_TRUE(world_.Run(world_.cache().CatchUp()).ok());
  }
  void Delete(const meta::KindInfo& kind, client::ObjectKey key, client::Force force) {
    client::DeleteOptions options;
    options.force = force;
    const Status deleted =
        world_.Run(world_.client().Delete(kind, std::move(key), std::move(options)));
    ASSERT_TRUE(deleted.ok()) << deleted;
  }
  void DeleteAllClasses() {
    Delete(kMachineClassKind, {"", "small"}, client::Force::kNo);
    Delete(kMachineClassKind, {"", "large"}, client::Force::kNo);
    Delete(kPriorityClassKind, {"", "urgent"}, client::Force::kNo);
    Settle();
  }
  bool Exists(const meta::KindInfo& kind, const std::string& name) {
    return world_.Run(world_.client().Get(kind, {"", name})).ok();
  }
  void Settle() { world_.loop().RunFor(Duration::Seconds(10)); }

  apiserver::RegistryWorld world_{41};
  rt::TaskScope scope_{world_.loop()};
  ClassProtection classes_{world_.loop(), world_.client()};
};

TEST_F(ClassProtectionTest, NoiseKeepsNoClass) {
  WriteMachine("no object");
  DeleteAllClasses();
  EXPECT_FALSE(Exists(kMachineClassKind, "small"));
  EXPECT_FALSE(Exists(kMachineClassKind, "large"));
  EXPECT_FALSE(Exists(kPriorityClassKind, "urgent"));
}

TEST_F(ClassProtectionTest, AHeaderThatCanBeReadNamesTheOnlyClassThatStays) {
  std::string bytes = MachineBytes();
  bytes.replace(bytes.find("\"spec\""), 6, "\"spec!");
  WriteMachine(bytes);
  DeleteAllClasses();
  EXPECT_TRUE(Exists(kMachineClassKind, "small"));
  EXPECT_FALSE(Exists(kMachineClassKind, "large"));
  EXPECT_FALSE(Exists(kPriorityClassKind, "urgent"));
  Delete(kMachineKind, {"default", "m"}, client::Force::kYes);
  Settle();
  EXPECT_FALSE(Exists(kMachineClassKind, "small"));
}

TEST_F(ClassProtectionTest, WithoutAHeaderTheClassStaysThatTheBytesStillName) {
  std::string bytes = MachineBytes();
  bytes[0] = '\x7f';  // no format of ours
  WriteMachine(bytes);
  DeleteAllClasses();
  EXPECT_TRUE(Exists(kMachineClassKind, "small"));
  EXPECT_FALSE(Exists(kMachineClassKind, "large"));
  EXPECT_FALSE(Exists(kPriorityClassKind, "urgent"));
  Delete(kMachineKind, {"default", "m"}, client::Force::kYes);
  Settle();
  EXPECT_FALSE(Exists(kMachineClassKind, "small"));
}

}  // namespace
}  // namespace berth::controller
