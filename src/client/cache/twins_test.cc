// SPDX-License-Identifier: Apache-2.0
// Defends that of objects with one UID each is known once, and the next comes when the first goes.
#include "client/cache/twins.h"

#include <gtest/gtest.h>

#include "apis/compute/machine.h"

namespace berth::client {
namespace {

using apis::compute::kMachineKind;

ObjectKey Key(const std::string& name) { return {.namespace_ = "team", .name = name}; }

TEST(Twins, ComeOneAfterTheOtherByTheirUid) {
  Twins<int> twins("test");
  twins.Put(kMachineKind, Key("c"), "u-1", 3, "team/a");
  twins.Put(kMachineKind, Key("b"), "u-1", 2, "team/a");
  twins.Put(kMachineKind, Key("d"), "u-2", 4, "team/x");
  EXPECT_EQ(twins.Take("u-3"), std::nullopt);
  EXPECT_EQ(twins.Take("u-1"), 2);
  EXPECT_EQ(twins.Take("u-1"), 3);
  EXPECT_EQ(twins.Take("u-1"), std::nullopt);
  EXPECT_EQ(twins.Take("u-2"), 4);
}

TEST(Twins, AreKeptAsTheyWereLast) {
  Twins<int> twins("test");
  twins.Put(kMachineKind, Key("b"), "u-1", 2, "team/a");
  twins.Put(kMachineKind, Key("b"), "u-1", 5, "team/a");
  EXPECT_FALSE(twins.Remove(kMachineKind, Key("a")));
  EXPECT_EQ(twins.Take("u-1"), 5);
  twins.Put(kMachineKind, Key("b"), "", 2, "");
  EXPECT_TRUE(twins.Remove(kMachineKind, Key("b")));
  EXPECT_FALSE(twins.Remove(kMachineKind, Key("b")));
}

}  // namespace
}  // namespace berth::client
