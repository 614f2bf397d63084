// SPDX-License-Identifier: Apache-2.0
// Defends ADR 0038: an object that cannot be read keeps nobody from the others, is not taken for
// absent, and can be removed.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "apis/compute/machine.h"
#include "apiserver/cache/keys.h"
#include "apiserver/registry/registry_world.h"
#include "client/cache/informer.h"
#include "meta/at_rest.h"
#include "rt/scope.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;

class UnreadableTest : public testing::Test {
 protected:
  UnreadableTest() { world_.MakeNamespace("default"); }

  static meta::Object MachineNamed(const std::string& name) {
    Machine machine;
    machine.metadata.namespace_ = "default";
    machine.metadata.name = name;
    machine.spec.machine_class_ref.name = "small";
    return meta::Object::Of(kMachineKind, std::move(machine));
  }
  void Create(const std::string& name) {
    const auto made = world_.Run(world_.client().Create(MachineNamed(name), {}));
    ASSERT_TRUE(made.ok()) << made.status();
  }
  // Somebody who does not go through the API.
  void Write(const std::string& name, Bytes value) {
    store::Txn txn;
    txn.ops.push_back(store::Op::Put(StoreKey(kMachineKind, {"default", name}), std::move(value)));
    ASSERT_TRUE(world_.Run(world_.store().Commit(std::move(txn))).ok());
    ASSERT_TRUE(world_.Run(world_.cache().CatchUp()).ok());
  }
  // A header that can be read in front of a body that cannot.
  void WriteBrokenBody(const std::string& name) {
    std::string bytes(meta::EncodeAtRest(MachineNamed(name)).view());
    bytes.replace(bytes.find("\"spec\""), 6, "\"spec!");
    Write(name, Bytes(bytes));
  }
  Result<client::ObjectList> List(client::Unreadable unreadable = client::Unreadable::kSkip) {
    client::ListOptions options;
    options.unreadable = unreadable;
    return world_.Run(world_.client().List(kMachineKind, std::move(options)));
  }
  Status Delete(const std::string& name, client::Force force) {
    client::DeleteOptions options;
    options.force = force;
    return world_.Run(world_.client().Delete(kMachineKind, {"default", name}, std::move(options)));
  }

  RegistryWorld world_{3};
};

TEST_F(UnreadableTest, ListsPassItOverAndNameIt) {
  Create("a");
  Write("b", Bytes("noise"));
  WriteBrokenBody("c");
  const auto list = List();
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->items.size(), 1U);
  EXPECT_EQ(list->items[0].metadata().name, "a");
  const auto page = world_.Run(world_.registry().List(kMachineKind, {}));
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->passed_over.size(), 1U);
  EXPECT_EQ(page->passed_over[0].key, "default/b");
}

TEST_F(UnreadableTest, WhoGivesAwayWhatNobodyElseHasGetsNoList) {
  Create("a");
  for (const bool has_header : {false, true}) {
    if (has_header) {
      WriteBrokenBody("b");
    } else {
      Write("b", Bytes("noise"));
    }
    const auto list = List(client::Unreadable::kFail);
    EXPECT_EQ(list.status().reason(), Reason::kInternal) << has_header;
  }
}

TEST_F(UnreadableTest, WhoMustNotTakeItForAbsentHearsItsName) {
  Create("a");
  for (int i = 0; i < 20; ++i) Write("b" + std::to_string(i), Bytes("noise"));
  WriteBrokenBody("c");
  const auto list = List(client::Unreadable::kName);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->items.size(), 1U);
  ASSERT_EQ(list->unread.size(), 21U);  // none is left out, unlike in warnings
  EXPECT_EQ(list->unread[0].key, (client::ObjectKey{"default", "b0"}));
  EXPECT_EQ(list->unread[0].uid, "");
  EXPECT_EQ(list->unread[0].at_rest.view(), "noise");
  EXPECT_EQ(list->unread[20].key, (client::ObjectKey{"default", "c"}));
}

TEST_F(UnreadableTest, ItIsNotAbsent) {
  Write("b", Bytes("noise"));
  WriteBrokenBody("c");
  for (const char* name : {"b", "c"}) {
    const auto got = world_.Run(world_.client().Get(kMachineKind, {"default", name}));
    EXPECT_EQ(got.status().reason(), Reason::kInternal) << name;
    const auto made = world_.Run(world_.client().Create(MachineNamed(name), {}));
    EXPECT_EQ(made.status().reason(), Reason::kAlreadyExists) << name;
    EXPECT_EQ(Delete(name, client::Force::kNo).reason(), Reason::kInternal) << name;
  }
}

// A bit of its name flipped, or it was copied onto another key.
TEST_F(UnreadableTest, WhatIsNamedOtherwiseThanItsKeyIsNeitherTheOneNorTheOther) {
  Create("a");
  Write("b", meta::EncodeAtRest(MachineNamed("c")));
  const auto list = List(client::Unreadable::kName);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->items.size(), 1U);
  EXPECT_EQ(list->items[0].metadata().name, "a");
  ASSERT_EQ(list->unread.size(), 1U);
  EXPECT_EQ(list->unread[0].key, (client::ObjectKey{"default", "b"}));
  const auto get = [this](const char* name) {
    return world_.Run(world_.client().Get(kMachineKind, {"default", name})).status();
  };
  EXPECT_EQ(get("b").reason(), Reason::kInternal);
  EXPECT_NE(get("b").message().find("the name of its key"), std::string::npos) << get("b");
  EXPECT_EQ(get("c").reason(), Reason::kNotFound);
  const auto patched = world_.Run(world_.client().Patch(kMachineKind,
                                                        {"default", "b"},
                                                        client::PatchType::kMerge,
                                                        R"({"spec":{"power":"Off"}})",
                                                        {}));
  EXPECT_EQ(patched.status().reason(), Reason::kInternal);
  EXPECT_EQ(Delete("b", client::Force::kNo).reason(), Reason::kInternal);
  Create("c");
  const Status deleted = Delete("b", client::Force::kYes);
  EXPECT_TRUE(deleted.ok()) << deleted;
  EXPECT_TRUE(get("c").ok()) << get("c");
  Create("b");
}

TEST_F(UnreadableTest, ADeletionByForceRemovesIt) {
  Write("b", Bytes("noise"));
  WriteBrokenBody("c");
  for (const char* name : {"b", "c"}) {
    const Status deleted = Delete(name, client::Force::kYes);
    EXPECT_TRUE(deleted.ok()) << name << ": " << deleted;
    const auto got = world_.Run(world_.client().Get(kMachineKind, {"default", name}));
    EXPECT_EQ(got.status().reason(), Reason::kNotFound) << name;
    Create(name);
  }
}

TEST_F(UnreadableTest, FollowersGoOnWithTheStateThatTheyHave) {
  rt::TaskScope scope(world_.loop());
  client::Informer machines(
      world_.loop(), world_.client(), kMachineKind, [](const auto*, const auto*) {});
  Write("old", Bytes("noise"));
  Create("a");
  scope.Spawn("informer", machines.Run());
  world_.loop().RunFor(Duration::Seconds(1));
  ASSERT_TRUE(machines.synced());
  EXPECT_EQ(machines.objects().size(), 1U);
  Write("a", Bytes("noise"));
  WriteBrokenBody("b");
  Create("c");
  Create("d");
  WriteBrokenBody("d");
  world_.loop().RunFor(Duration::Seconds(1));
  EXPECT_NE(machines.Find({"default", "a"}), nullptr);
  EXPECT_EQ(machines.Find({"default", "b"}), nullptr);
  EXPECT_NE(machines.Find({"default", "c"}), nullptr);
  EXPECT_NE(machines.Find({"default", "d"}), nullptr);
  ASSERT_TRUE(Delete("a", client::Force::kYes).ok());
  ASSERT_TRUE(Delete("d", client::Force::kYes).ok());
  world_.loop().RunFor(Duration::Seconds(5));
  EXPECT_EQ(machines.Find({"default", "a"}), nullptr);
  EXPECT_EQ(machines.Find({"default", "d"}), nullptr);
  EXPECT_NE(machines.Find({"default", "c"}), nullptr);
  EXPECT_TRUE(world_.Run(scope.Close()).ok());
}

}  // namespace
}  // namespace berth::apiserver
