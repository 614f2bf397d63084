// SPDX-License-Identifier: Apache-2.0
#include "controller/machine_sets/machine_sets.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/core/placement.h"
#include "apiserver/registry/poison.h"
#include "apiserver/registry/registry_world.h"
#include "client/cache/informer.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::controller {
namespace {

using apis::berth_dev::kMachineSetKind;
using apis::berth_dev::MachineSet;
using apis::compute::kMachineKind;
using apis::compute::Machine;

class MachineSetsTest : public testing::Test {
 protected:
  MachineSetsTest() {
    world_.MakeNamespace("team");
    Start();
  }
  ~MachineSetsTest() override { Stop(); }
  void Start() {
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    sets_ = std::make_unique<MachineSets>(world_.loop(), world_.client());
    scope_->Spawn("sets", sets_->Run());
  }
  void Stop() { EXPECT_TRUE(world_.Run(scope_->Close()).ok()); }

  MachineSet Web(int32_t replicas) {
    MachineSet set;
    set.metadata.namespace_ = "team";
    set.metadata.name = "web";
    set.spec.replicas = replicas;
    set.spec.selector.match_labels = {{"app", "web"}};
    set.spec.machine_template.metadata.labels = {{"app", "web"}};
    set.spec.machine_template.spec.machine_class_ref.name = "small";
    return set;
  }
  void Make(MachineSet set) {
    const auto made =
        world_.Run(world_.client().Create(meta::Object::Of(kMachineSetKind, std::move(set)), {}));
    ASSERT_TRUE(made.ok()) << made.status();
  }
  void Patch(const std::string& body) {
    const auto patched = world_.Run(world_.client().Patch(
        kMachineSetKind, {"team", "web"}, client::PatchType::kMerge, body, {}));
    ASSERT_TRUE(patched.ok()) << patched.status();
  }
  std::vector<Machine> Machines() {
    const auto list = world_.Run(world_.client().List(kMachineKind, {}));
    EXPECT_TRUE(list.ok()) << list.status();
    std::vector<Machine> machines;
    for (const meta::Object& item : list->items) machines.push_back(item.as<Machine>());
    return machines;
  }
  MachineSet Get() {
    const auto got = world_.Run(world_.client().Get(kMachineSetKind, {"team", "web"}));
    EXPECT_TRUE(got.ok()) << got.status();
    return got->as<MachineSet>();
  }
  bool Until(const std::function<bool()>& done) {
    for (int i = 0; i < 2000; ++i) {
      if (done()) return true;
      world_.loop().RunFor(Duration::Millis(10));
    }
    return false;
  }
  // Everything that is not running runs.
  void RunAll() {
    for (Machine machine : Machines()) {
      if (machine.status.state == "Running") continue;
      machine.status.state = "Running";
      client::WriteOptions options;
      options.subresource = client::Subresource::kStatus;
      const auto written =
          world_.Run(world_.client().Update(meta::Object::Of(kMachineKind, machine), options));
      ASSERT_TRUE(written.ok()) << written.status();
    }
  }

  apiserver::RegistryWorld world_{5};
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<MachineSets> sets_;
};

using Uids = std::vector<Result<std::string>>;

Uids UidsOf(const std::vector<Result<meta::Object>>& made) {
  Uids uids;
  for (const auto& one : made) {
    uids.push_back(one.ok() ? Result<std::string>(one->metadata().uid)
                            : Result<std::string>(one.status()));
  }
  return uids;
}

// Makes machines and says so only when one of them is gone again.
class LateBulk final : public client::BulkCreator {
 public:
  explicit LateBulk(client::Client& client) : client_(client) {}
  rt::Task<Uids> CreateBulk(meta::Object model, std::vector<std::string> names) override {
    const client::WriteOptions options;
    const auto made = co_await client_.CreateBatch(client::CopiesOf(model, names), options);
    if (std::exchange(is_first_, false)) {
      const client::ObjectKey key = client::KeyOf(*made.front());
      const client::DeleteOptions deletion;
      CHECK((co_await client_.Delete(kMachineKind, key, deletion)).ok());
      CHECK((co_await rt::Sleep(Duration::Seconds(1))).ok());
    }
    co_return UidsOf(made);
  }

 private:
  client::Client& client_;
  bool is_first_ = true;
};

TEST_F(MachineSetsTest, AMachineThatWentBeforeItsCreationWasAnsweredIsReplaced) {
  LateBulk bulk(world_.client());
  sets_->UseBulk(&bulk);
  Make(Web(5));
  EXPECT_TRUE(Until([&] { return Machines().size() == 5 && sets_->idle(); }));
  EXPECT_EQ(Get().status.replicas, 5);
}

TEST_F(MachineSetsTest, C7_ASetHasItsNumberOfMachinesWithDistinctNames) {
  Make(Web(5));
  ASSERT_TRUE(Until([&] { return Get().status.replicas == 5; }));
  std::set<std::string> names;
  for (const Machine& machine : Machines()) {
    names.insert(machine.metadata.name);
    EXPECT_EQ(machine.metadata.labels.at("app"), "web");
    ASSERT_EQ(machine.metadata.owner_references.size(), 1U);
    EXPECT_EQ(machine.metadata.owner_references[0].name, "web");
    EXPECT_EQ(machine.metadata.annotations.at("berth.dev/on-pool-loss"), "Replace");
  }
  EXPECT_EQ(names.size(), 5U);
  RunAll();
  EXPECT_TRUE(Until([&] { return Get().status.ready == 5; }));
  EXPECT_EQ(Get().status.selector, "app=web");
  EXPECT_EQ(Get().status.observed_generation, 1);
}

TEST_F(MachineSetsTest, ItGrowsAndShrinksAndALargeSetIsFilledExactly) {
  Make(Web(3));
  ASSERT_TRUE(Until([&] { return Get().status.replicas == 3; }));
  Patch(R"({"spec":{"replicas":1300}})");
  ASSERT_TRUE(Until([&] { return Get().status.replicas == 1300; }));
  world_.loop().RunFor(Duration::Seconds(5));
  EXPECT_EQ(Machines().size(), 1300U);
  Patch(R"({"spec":{"replicas":2}})");
  ASSERT_TRUE(Until([&] { return Get().status.replicas == 2; }));
  EXPECT_EQ(Machines().size(), 2U);
}

TEST_F(MachineSetsTest, C8_AMachineThatIsDeletedIsReplaced) {
  Make(Web(3));
  ASSERT_TRUE(Until([&] { return Machines().size() == 3; }));
  const std::string gone = Machines()[0].metadata.name;
  ASSERT_TRUE(world_.Run(world_.client().Delete(kMachineKind, {"team", gone}, {})).ok());
  ASSERT_TRUE(Until([&] { return Machines().size() == 3; }));
  for (const Machine& machine : Machines()) EXPECT_NE(machine.metadata.name, gone);
}

// Somebody has copied one in the store, with its UID, and removed the copy again.
TEST_F(MachineSetsTest, C8_TheEndOfACopyIsNotThatOfAMachine) {
  Make(Web(2));
  ASSERT_TRUE(Until([this] { return Machines().size() == 2; }));
  meta::Object copy = meta::Object::Of(kMachineKind, Machines().front());
  copy.metadata().name = "copy";
  apiserver::PutByHand(world_, copy);
  world_.loop().RunFor(Duration::Seconds(1));
  apiserver::RemoveByHand(world_, copy);
  world_.loop().RunFor(Duration::Seconds(1));
  EXPECT_EQ(Machines().size(), 2U);
}

TEST_F(MachineSetsTest, ANewTemplateReplacesMachinesStepByStep) {
  Make(Web(3));
  ASSERT_TRUE(Until([&] { return Machines().size() == 3; }));
  RunAll();
  Patch(R"({"spec":{"template":{"spec":{"machineClassRef":{"name":"large"}}}}})");
  EXPECT_TRUE(Until([&] {
    RunAll();
    const auto machines = Machines();
    EXPECT_GE(machines.size(), 3U);
    EXPECT_LE(machines.size(), 4U);
    return machines.size() == 3 &&
           std::all_of(machines.begin(), machines.end(), [](const Machine& machine) {
             return machine.spec.machine_class_ref.name == "large";
           });
  }));
  EXPECT_TRUE(Until([&] { return Get().status.updated == 3; }));
}

TEST_F(MachineSetsTest, C33_ARestartInTheMiddleMakesNoMachineTwice) {
  MachineSet set = Web(700);
  set.spec.names = "Ordinal";
  Make(set);
  for (int i = 0; i < 5; ++i) {
    world_.loop().RunFor(Duration::Micros(300));
    Stop();
    Start();
  }
  ASSERT_TRUE(Until([&] { return Get().status.replicas == 700; }));
  world_.loop().RunFor(Duration::Seconds(5));
  std::set<std::string> names;
  for (const Machine& machine : Machines()) names.insert(machine.metadata.name);
  EXPECT_EQ(names.size(), 700U);
  EXPECT_TRUE(names.contains("web-0"));
  EXPECT_TRUE(names.contains("web-699"));
}

TEST_F(MachineSetsTest, AStoreThatFailsNowAndThenLeavesTheRightNumber) {
  world_.SetFaults({.refuse = 0.1, .lose_answer = 0.1});
  MachineSet set = Web(40);
  for (int tries = 0; tries < 50; ++tries) {
    const auto made =
        world_.Run(world_.client().Create(meta::Object::Of(kMachineSetKind, set), {}));
    if (made.ok() || made.status().Is(Reason::kAlreadyExists)) break;
  }
  world_.loop().RunFor(Duration::Minutes(2));
  world_.SetFaults({});
  world_.loop().RunFor(Duration::Minutes(2));
  EXPECT_EQ(Machines().size(), 40U);
}

// Notes what is made through it.
class NotingCreator final : public client::BulkCreator {
 public:
  explicit NotingCreator(client::Client& client) : client_(client) {}
  rt::Task<Uids> CreateBulk(meta::Object model, std::vector<std::string> names) override {
    calls.push_back(names.size());
    const client::WriteOptions options;
    const auto made = co_await client_.CreateBatch(client::CopiesOf(model, names), options);
    co_return UidsOf(made);
  }
  std::vector<size_t> calls;

 private:
  client::Client& client_;
};

TEST_F(MachineSetsTest, NewMachinesAreMadeInBulkWhereThereIsSomebodyForIt) {
  NotingCreator bulk(world_.client());
  sets_->UseBulk(&bulk);
  Make(Web(7));
  ASSERT_TRUE(Until([&] { return Machines().size() == 7; }));
  EXPECT_EQ(bulk.calls, (std::vector<size_t>{7}));
  sets_->UseBulk(nullptr);
  Patch(R"({"spec":{"replicas":9}})");
  ASSERT_TRUE(Until([&] { return Machines().size() == 9; }));
  EXPECT_EQ(bulk.calls.size(), 1U);
}

}  // namespace
}  // namespace berth::controller
