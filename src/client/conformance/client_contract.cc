// SPDX-License-Identifier: Apache-2.0
#include "client/conformance/client_contract.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/k8s/config_map.h"
#include "rt/join_all.h"

namespace berth::client {

namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::k8s::ConfigMap;
using apis::k8s::kConfigMapKind;

template <class T>
T Await(ClientUnderTest& on, rt::Task<T> task) {
  std::optional<T> answer;
  const Status ran = on.Run(rt::internal::StoreResult(std::move(task), &answer));
  CHECK(ran.ok()) << ran;
  return *std::move(answer);
}

meta::Object NewMap(const std::string& name, const std::string& tier = "") {
  ConfigMap map;
  map.metadata.namespace_ = "default";
  map.metadata.name = name;
  map.data["name"] = name;
  if (!tier.empty()) map.metadata.labels["tier"] = tier;
  return meta::Object::Of(kConfigMapKind, std::move(map));
}

meta::Object NewMachine(const std::string& name) {
  Machine machine;
  machine.metadata.namespace_ = "default";
  machine.metadata.name = name;
  machine.spec.machine_class_ref.name = "small";
  return meta::Object::Of(kMachineKind, std::move(machine));
}

meta::Object MustCreate(ClientUnderTest& on, meta::Object object) {
  auto made = Await(on, on.client().Create(std::move(object), {}));
  CHECK(made.ok()) << made.status();
  return *std::move(made);
}

std::vector<std::string> Names(const ObjectList& list) {
  std::vector<std::string> names;
  for (const meta::Object& object : list.items) names.push_back(object.metadata().name);
  return names;
}

void CreatesAndReadsBack(ClientUnderTest& on) {
  const meta::Object made = MustCreate(on, NewMap("a"));
  EXPECT_FALSE(made.metadata().uid.empty());
  EXPECT_FALSE(made.metadata().resource_version.empty());
  const auto read = Await(on, on.client().Get(kConfigMapKind, {"default", "a"}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata(), made.metadata());
  EXPECT_EQ(read->as<ConfigMap>().data.at("name"), "a");
}

void ErrorsKeepTheirReasonsAndCauses(ClientUnderTest& on) {
  MustCreate(on, NewMap("a"));
  EXPECT_EQ(Await(on, on.client().Create(NewMap("a"), {})).status().reason(),
            Reason::kAlreadyExists);
  const Status missing = Await(on, on.client().Get(kMachineKind, {"default", "none"})).status();
  EXPECT_EQ(missing.reason(), Reason::kNotFound);
  EXPECT_EQ(missing.message(), "machines.compute.ironcore.dev \"none\" not found");
  meta::Object broken = NewMachine("m");
  broken.as<Machine>().spec.machine_class_ref.name = "";
  broken.as<Machine>().spec.power = "Maybe";
  const Status invalid = Await(on, on.client().Create(std::move(broken), {})).status();
  EXPECT_EQ(invalid.reason(), Reason::kInvalid);
  EXPECT_GE(invalid.causes().size(), 2U);
}

void ListsBySelectorsAndPages(ClientUnderTest& on) {
  for (const char* name : {"a", "b", "c", "d"}) {
    MustCreate(on, NewMap(name, name < std::string("c") ? "web" : "db"));
  }
  ListOptions options;
  options.namespace_ = "default";
  options.label_selector = "tier=web";
  EXPECT_EQ(Names(*Await(on, on.client().List(kConfigMapKind, options))),
            (std::vector<std::string>{"a", "b"}));
  options.label_selector = "";
  options.field_selector = "metadata.name=c";
  EXPECT_EQ(Names(*Await(on, on.client().List(kConfigMapKind, options))),
            std::vector<std::string>{"c"});
  options.field_selector = "";
  options.limit = 3;
  const auto first = Await(on, on.client().List(kConfigMapKind, options));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(Names(*first), (std::vector<std::string>{"a", "b", "c"}));
  ASSERT_NE(first->continue_token, "");
  MustCreate(on, NewMap("cc"));  // the second page still shows the state of the first
  options.continue_token = first->continue_token;
  const auto second = Await(on, on.client().List(kConfigMapKind, options));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Names(*second), std::vector<std::string>{"d"});
  EXPECT_EQ(second->continue_token, "");
  EXPECT_EQ(second->resource_version, first->resource_version);
}

void MetadataAloneIsEnough(ClientUnderTest& on) {
  const meta::Object made = MustCreate(on, NewMap("a", "web"));
  ListOptions options;
  options.namespace_ = "default";
  options.detail = Detail::kMetadata;
  const auto list = Await(on, on.client().List(kConfigMapKind, options));
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->items.size(), 1U);
  EXPECT_EQ(list->items[0].metadata(), made.metadata());
  EXPECT_TRUE(list->items[0].as<ConfigMap>().data.empty());
}

void UpdatesOnlyWhatWasRead(ClientUnderTest& on) {
  const meta::Object made = MustCreate(on, NewMap("a"));
  meta::Object first = made;
  first.as<ConfigMap>().data["x"] = "1";
  const auto updated = Await(on, on.client().Update(first, {}));
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_NE(updated->metadata().resource_version, made.metadata().resource_version);
  EXPECT_EQ(Await(on, on.client().Update(first, {})).status().reason(), Reason::kConflict);
  meta::Object blind = *updated;
  blind.metadata().resource_version = "";
  EXPECT_EQ(Await(on, on.client().Update(blind, {})).status().reason(), Reason::kBadRequest);
}

void SpecAndStatusAreSeparate(ClientUnderTest& on) {
  meta::Object object = MustCreate(on, NewMachine("m"));
  object.as<Machine>().status.state = "Running";
  object.as<Machine>().spec.power = "Off";
  const WriteOptions status{.dry_run = DryRun::kNo, .subresource = Subresource::kStatus};
  const auto written = Await(on, on.client().Update(object, status));
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->as<Machine>().status.state, "Running");
  EXPECT_EQ(written->as<Machine>().spec.power, "On");
}

void PatchesInThreeWays(ClientUnderTest& on) {
  MustCreate(on, NewMap("a"));
  const ObjectKey key{"default", "a"};
  const auto patch = [&](PatchType type, const char* body) {
    return Await(on, on.client().Patch(kConfigMapKind, key, type, body, {}));
  };
  auto patched = patch(PatchType::kMerge, R"({"data":{"x":"1","name":null}})");
  ASSERT_TRUE(patched.ok()) << patched.status();
  EXPECT_EQ(patched->as<ConfigMap>().data.size(), 1U);
  patched = patch(PatchType::kJson, R"([{"op":"add","path":"/data/y","value":"2"}])");
  ASSERT_TRUE(patched.ok()) << patched.status();
  EXPECT_EQ(patched->as<ConfigMap>().data.at("y"), "2");
  patched = patch(PatchType::kStrategicMerge, R"({"metadata":{"labels":{"tier":"web"}}})");
  ASSERT_TRUE(patched.ok()) << patched.status();
  EXPECT_EQ(patched->metadata().labels.at("tier"), "web");
  EXPECT_EQ(patch(PatchType::kMerge, "nonsense").status().reason(), Reason::kBadRequest);
}

void DryRunsChangeNothing(ClientUnderTest& on) {
  const WriteOptions dry{.dry_run = DryRun::kYes};
  EXPECT_TRUE(Await(on, on.client().Create(NewMap("a"), dry)).ok());
  EXPECT_EQ(Await(on, on.client().Get(kConfigMapKind, {"default", "a"})).status().reason(),
            Reason::kNotFound);
  const meta::Object made = MustCreate(on, NewMap("a"));
  DeleteOptions gone;
  gone.dry_run = DryRun::kYes;
  EXPECT_TRUE(Await(on, on.client().Delete(kConfigMapKind, {"default", "a"}, gone)).ok());
  EXPECT_TRUE(Await(on, on.client().Get(kConfigMapKind, {"default", "a"})).ok());
}

void DeletesWithPreconditions(ClientUnderTest& on) {
  const meta::Object made = MustCreate(on, NewMap("a"));
  DeleteOptions wrong;
  wrong.uid = "00000000-0000-4000-8000-000000000000";
  EXPECT_EQ(Await(on, on.client().Delete(kConfigMapKind, {"default", "a"}, wrong)).reason(),
            Reason::kConflict);
  DeleteOptions right;
  right.uid = made.metadata().uid;
  EXPECT_TRUE(Await(on, on.client().Delete(kConfigMapKind, {"default", "a"}, right)).ok());
  EXPECT_EQ(Await(on, on.client().Delete(kConfigMapKind, {"default", "a"}, right)).reason(),
            Reason::kNotFound);
}

void BatchesHaveOneVerdictPerObject(ClientUnderTest& on) {
  MustCreate(on, NewMap("b"));
  std::vector<meta::Object> objects;
  for (const char* name : {"a", "b", "c"}) objects.push_back(NewMap(name));
  const auto results = Await(on, on.client().CreateBatch(std::move(objects), {}));
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0].ok());
  EXPECT_EQ(results[1].status().reason(), Reason::kAlreadyExists);
  EXPECT_TRUE(results[2].ok());
}

void WatchesFromAListOn(ClientUnderTest& on) {
  MustCreate(on, NewMap("a"));
  ListOptions list_options;
  const auto list = Await(on, on.client().List(kConfigMapKind, list_options));
  ASSERT_TRUE(list.ok()) << list.status();
  WatchOptions options;
  options.namespace_ = "default";
  options.resource_version = list->resource_version;
  auto watch = Await(on, on.client().Watch(kConfigMapKind, options));
  ASSERT_TRUE(watch.ok()) << watch.status();
  meta::Object made = MustCreate(on, NewMap("b"));
  made.as<ConfigMap>().data["x"] = "1";
  ASSERT_TRUE(Await(on, on.client().Update(made, {})).ok());
  ASSERT_TRUE(Await(on, on.client().Delete(kConfigMapKind, {"default", "b"}, {})).ok());
  std::vector<WatchEvent> events;
  while (events.size() < 3) {
    auto batch = Await(on, (*watch)->Next());
    ASSERT_TRUE(batch.ok()) << batch.status();
    for (WatchEvent& event : *batch) {
      if (event.type != WatchEvent::Type::kBookmark) events.push_back(std::move(event));
    }
  }
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].type, WatchEvent::Type::kAdded);
  EXPECT_EQ(events[1].type, WatchEvent::Type::kModified);
  EXPECT_EQ(events[2].type, WatchEvent::Type::kDeleted);
  EXPECT_EQ(events[2].object.as<ConfigMap>().data.at("x"), "1");
  EXPECT_EQ(events[0].resource_version, events[0].object.metadata().resource_version);
}

void AWatchWithoutAStartBeginsWithWhatIsThere(ClientUnderTest& on) {
  MustCreate(on, NewMap("a"));
  WatchOptions options;
  options.namespace_ = "default";
  options.detail = Detail::kMetadata;
  auto watch = Await(on, on.client().Watch(kConfigMapKind, options));
  ASSERT_TRUE(watch.ok()) << watch.status();
  const auto events = Await(on, (*watch)->Next());
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_FALSE(events->empty());
  EXPECT_EQ(events->front().type, WatchEvent::Type::kAdded);
  EXPECT_EQ(events->front().object.metadata().name, "a");
}

constexpr ClientContract kContracts[] = {
    {"CreatesAndReadsBack", &CreatesAndReadsBack},
    {"ErrorsKeepTheirReasonsAndCauses", &ErrorsKeepTheirReasonsAndCauses},
    {"ListsBySelectorsAndPages", &ListsBySelectorsAndPages},
    {"MetadataAloneIsEnough", &MetadataAloneIsEnough},
    {"UpdatesOnlyWhatWasRead", &UpdatesOnlyWhatWasRead},
    {"SpecAndStatusAreSeparate", &SpecAndStatusAreSeparate},
    {"PatchesInThreeWays", &PatchesInThreeWays},
    {"DryRunsChangeNothing", &DryRunsChangeNothing},
    {"DeletesWithPreconditions", &DeletesWithPreconditions},
    {"BatchesHaveOneVerdictPerObject", &BatchesHaveOneVerdictPerObject},
    {"WatchesFromAListOn", &WatchesFromAListOn},
    {"AWatchWithoutAStartBeginsWithWhatIsThere", &AWatchWithoutAStartBeginsWithWhatIsThere},
    {"BindsOnceAndTellsWhyNot", &BindsOnceAndTellsWhyNot},
    {"UnbindsWithProof", &UnbindsWithProof},
    {"CreatesAlreadyBound", &CreatesAlreadyBound},
    {"UsesReservations", &UsesReservations},
};

}  // namespace

std::span<const ClientContract> ClientContracts() { return kContracts; }

void RunClientContract(const ClientFactory& factory, const ClientContract& contract) {
  const std::unique_ptr<ClientUnderTest> under_test = factory();
  contract.check(*under_test);
}

}  // namespace berth::client
