// SPDX-License-Identifier: Apache-2.0
// Defends: a priority class that a machine names becomes a number that stays, and a pool's
// NoExecute taints know since when they are there.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "apis/berth/machine_set.h"
#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/k8s/priority_class.h"
#include "apiserver/registry/registry_world.h"

namespace berth::apiserver {
namespace {

using apis::compute::Machine;
using apis::compute::MachinePool;
using apis::k8s::PriorityClass;

class PriorityTest : public testing::Test {
 protected:
  PriorityTest() { world_.MakeNamespace("team"); }

  Result<meta::Object> Create(meta::Object object) {
    return world_.Run(world_.client().Create(std::move(object), {}));
  }
  Result<meta::Object> MakeClass(const std::string& name, int32_t value, bool is_default = false) {
    PriorityClass made;
    made.metadata.name = name;
    made.value = value;
    made.global_default = is_default;
    return Create(meta::Object::Of(apis::k8s::kPriorityClassKind, std::move(made)));
  }
  static Machine Named(const std::string& name, const std::string& priority_class) {
    Machine machine;
    machine.metadata.namespace_ = "team";
    machine.metadata.name = name;
    machine.spec.machine_class_ref.name = "small";
    if (!priority_class.empty()) {
      machine.spec.placement.emplace().priority_class_name = priority_class;
    }
    return machine;
  }
  Result<meta::Object> Make(Machine machine) {
    return Create(meta::Object::Of(apis::compute::kMachineKind, std::move(machine)));
  }
  Result<meta::Object> Update(meta::Object object) {
    return world_.Run(world_.client().Update(std::move(object), {}));
  }

  RegistryWorld world_{7};
};

TEST_F(PriorityTest, R8_3_TheClassBecomesANumberThatStays) {
  ASSERT_TRUE(MakeClass("high", 1000).ok());
  auto made = Make(Named("a", "high"));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->as<Machine>().spec.placement->priority, 1000);
  // Who does not send the number back means nothing by that.
  made->as<Machine>().spec.placement->priority.reset();
  made->metadata().labels["x"] = "y";
  auto updated = Update(*made);
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ(updated->as<Machine>().spec.placement->priority, 1000);
  updated->as<Machine>().spec.placement->priority = 5;
  const auto refused = Update(*updated);
  ASSERT_TRUE(refused.status().Is(Reason::kInvalid)) << refused.status();
  EXPECT_EQ(refused.status().causes()[0].field, "spec.placement.priority");
}

TEST_F(PriorityTest, R8_3_AnUnknownClassOrANumberOfOnesOwnIsRefusedByField) {
  ASSERT_TRUE(MakeClass("high", 1000).ok());
  const auto unknown = Make(Named("a", "hihg"));
  ASSERT_TRUE(unknown.status().Is(Reason::kInvalid)) << unknown.status();
  EXPECT_EQ(unknown.status().causes()[0].field, "spec.placement.priorityClassName");
  auto made_up = Named("b", "high");
  made_up.spec.placement->priority = 2000;
  const auto other = Make(made_up);
  ASSERT_TRUE(other.status().Is(Reason::kInvalid)) << other.status();
  EXPECT_EQ(other.status().causes()[0].field, "spec.placement.priority");
  auto without = Named("c", "");
  without.spec.placement.emplace().priority = 2000;
  EXPECT_TRUE(Make(without).status().Is(Reason::kInvalid));

  apis::berth_dev::MachineSet set;
  set.metadata.namespace_ = "team";
  set.metadata.name = "set";
  set.spec.selector.match_labels["app"] = "x";
  set.spec.machine_template.metadata.labels["app"] = "x";
  set.spec.machine_template.spec = Named("t", "hihg").spec;
  const auto of_set = Create(meta::Object::Of(apis::berth_dev::kMachineSetKind, std::move(set)));
  ASSERT_TRUE(of_set.status().Is(Reason::kInvalid)) << of_set.status();
  EXPECT_EQ(of_set.status().causes()[0].field, "spec.template.spec.placement.priorityClassName");
}

TEST_F(PriorityTest, R8_3_OneClassMayBeTheDefault) {
  ASSERT_TRUE(Make(Named("before", "")).ok());
  ASSERT_TRUE(MakeClass("normal", 10, true).ok());
  EXPECT_TRUE(MakeClass("other", 20, true).status().Is(Reason::kForbidden));
  const auto made = Make(Named("after", ""));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->as<Machine>().spec.placement->priority_class_name, "normal");
  EXPECT_EQ(made->as<Machine>().spec.placement->priority, 10);
  const auto before =
      world_.Run(world_.client().Get(apis::compute::kMachineKind, {"team", "before"}));
  EXPECT_FALSE(before->as<Machine>().spec.placement.has_value());
}

TEST_F(PriorityTest, ANoExecuteTaintKnowsSinceWhenItIsThere) {
  MachinePool pool;
  pool.metadata.name = "p";
  pool.spec.provider_id = "test://p";
  auto made = Create(meta::Object::Of(apis::compute::kMachinePoolKind, std::move(pool)));
  ASSERT_TRUE(made.ok()) << made.status();
  made->as<MachinePool>().spec.taints = {{.key = "a", .value = "", .effect = "NoExecute"},
                                         {.key = "b", .value = "", .effect = "NoSchedule"}};
  const WallTime then = WallTime::FromSeconds(world_.loop().WallNow().seconds());
  auto tainted = Update(*made);
  ASSERT_TRUE(tainted.ok()) << tainted.status();
  EXPECT_EQ(tainted->as<MachinePool>().spec.taints[0].time_added, then);
  EXPECT_EQ(tainted->as<MachinePool>().spec.taints[1].time_added, WallTime());
  // Applied again without the time it is the same taint.
  world_.loop().RunFor(Duration::Seconds(10));
  tainted->as<MachinePool>().spec.taints[0].time_added = {};
  const auto again = Update(*tainted);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->as<MachinePool>().spec.taints[0].time_added, then);
  EXPECT_EQ(again->metadata().generation, tainted->metadata().generation);
}

}  // namespace
}  // namespace berth::apiserver
