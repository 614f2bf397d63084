// SPDX-License-Identifier: Apache-2.0
// Defends the rules of writing: what the server sets, what a writer cannot change, who loses a
// race, what keeps a deleted object, and the words of every refusal.
#include "apiserver/registry/store_registry.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/core/well_known.h"
#include "apis/k8s/event.h"
#include "apis/k8s/namespace.h"
#include "apis/k8s/secret.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_class.h"
#include "apiserver/cache/keys.h"
#include "apiserver/registry/registry_world.h"
#include "base/uid.h"
#include "meta/at_rest.h"
#include "rt/join_all.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineClassKind;
using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::k8s::kNamespaceKind;
using apis::k8s::kSecretKind;
using apis::k8s::Namespace;
using apis::k8s::Secret;
using client::Propagation;

class StoreRegistryTest : public ::testing::Test {
 protected:
  StoreRegistryTest() { world_.MakeNamespace("default"); }

  static meta::Object NewMachine(const std::string& name) {
    Machine machine;
    machine.metadata.namespace_ = "default";
    machine.metadata.name = name;
    machine.spec.machine_class_ref.name = "small";
    return meta::Object::Of(kMachineKind, std::move(machine));
  }
  Result<meta::Object> Create(meta::Object object, WriteContext context = {}) {
    const meta::KindInfo& kind = object.kind();
    return Decoded(kind, world_.Run(registry().Create(std::move(object), std::move(context))));
  }
  Result<meta::Object> Update(meta::Object object, Subresource subresource = Subresource::kNone) {
    const meta::KindInfo& kind = object.kind();
    WriteContext context;
    context.subresource = subresource;
    return Decoded(kind, world_.Run(registry().Update(std::move(object), std::move(context))));
  }
  Result<DeleteResult> Delete(const std::string& name, DeleteRequest request = {}) {
    return world_.Run(registry().Delete(kMachineKind, {"default", name}, std::move(request), {}));
  }
  Result<meta::Object> Get(const std::string& name) {
    return world_.Run(world_.client().Get(kMachineKind, {"default", name}));
  }
  meta::Object MustCreate(meta::Object object) {
    auto made = Create(std::move(object));
    CHECK(made.ok()) << made.status();
    return *std::move(made);
  }
  // As if the limits had come later.
  void StoreUnchecked(const meta::Object& object) {
    const meta::ObjectMeta& metadata = object.metadata();
    store::Txn txn;
    txn.ops.push_back(store::Op::Put(StoreKey(object.kind(), {metadata.namespace_, metadata.name}),
                                     meta::EncodeAtRest(object)));
    CHECK(world_.Run(world_.store().Commit(std::move(txn)))->committed);
  }
  static Result<meta::Object> Decoded(const meta::KindInfo& kind,
                                      const Result<WriteResult>& result) {
    if (!result.ok()) return result.status();
    return DecodeFor(kind, result->object);
  }
  Registry& registry() { return world_.registry(); }

  RegistryWorld world_{11};
};

TEST_F(StoreRegistryTest, ANewObjectGetsIdentityGenerationAndDefaultsAndAnEmptyStatus) {
  meta::Object object = NewMachine("web");
  object.metadata().uid = "mine";
  object.metadata().generation = 9;
  object.metadata().deletion_timestamp = WallTime::FromSeconds(5);
  object.as<Machine>().status.machine_id = "stolen";
  const meta::Object made = MustCreate(std::move(object));
  EXPECT_TRUE(IsUid(made.metadata().uid));
  EXPECT_EQ(made.metadata().generation, 1);
  EXPECT_EQ(made.metadata().creation_timestamp, world_.loop().WallNow());
  EXPECT_FALSE(made.metadata().deletion_timestamp.has_value());
  EXPECT_EQ(made.as<Machine>().status.machine_id, "");
  EXPECT_EQ(made.as<Machine>().status.state, "Pending");
  EXPECT_EQ(made.as<Machine>().spec.power, "On");
  const auto read = Get("web");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->metadata(), made.metadata());
}

TEST_F(StoreRegistryTest, TheNameIsTakenOnce) {
  MustCreate(NewMachine("web"));
  const Status status = Create(NewMachine("web")).status();
  EXPECT_EQ(status.reason(), Reason::kAlreadyExists);
  EXPECT_EQ(status.message(), "machines.compute.ironcore.dev \"web\" already exists");
  EXPECT_EQ(status.object().kind, "machines");
  EXPECT_EQ(status.object().group, "compute.ironcore.dev");
  EXPECT_EQ(status.object().name, "web");
}

TEST_F(StoreRegistryTest, GeneratedNamesEndInFiveRandomCharacters) {
  meta::Object object = NewMachine("");
  object.metadata().generate_name = "web-";
  const meta::Object one = MustCreate(object);
  const meta::Object two = MustCreate(object);
  EXPECT_EQ(one.metadata().name.size(), 9U);
  EXPECT_TRUE(one.metadata().name.starts_with("web-"));
  EXPECT_NE(one.metadata().name, two.metadata().name);
}

TEST_F(StoreRegistryTest, AnObjectNeedsAName) {
  const Status status = Create(NewMachine("")).status();
  EXPECT_EQ(status.reason(), Reason::kInvalid);
  EXPECT_EQ(status.message(),
            "Machine.compute.ironcore.dev \"\" is invalid: metadata.name: Required value: name or "
            "generateName is required");
}

TEST_F(StoreRegistryTest, ValidationReportsEveryCauseAtOnce) {
  meta::Object object = NewMachine("Bad_Name");
  object.as<Machine>().spec.machine_class_ref.name = "";
  object.as<Machine>().spec.power = "Sideways";
  const Status status = Create(std::move(object)).status();
  EXPECT_EQ(status.reason(), Reason::kInvalid);
  EXPECT_GE(status.causes().size(), 3U) << status;
}

TEST_F(StoreRegistryTest, TheNamespaceMustExist) {
  meta::Object object = NewMachine("web");
  object.metadata().namespace_ = "nowhere";
  const Status status = Create(std::move(object)).status();
  EXPECT_EQ(status.reason(), Reason::kNotFound);
  EXPECT_EQ(status.message(), "namespaces \"nowhere\" not found");
}

TEST_F(StoreRegistryTest, ATerminatingNamespaceTakesNothingNew) {
  world_.MakeNamespace("going");
  ASSERT_TRUE(world_.Run(registry().Delete(kNamespaceKind, {"", "going"}, {}, {})).ok());
  meta::Object object = NewMachine("web");
  object.metadata().namespace_ = "going";
  const Status status = Create(std::move(object)).status();
  EXPECT_EQ(status.reason(), Reason::kForbidden);
  EXPECT_EQ(status.message(),
            "machines.compute.ironcore.dev \"web\" is forbidden: unable to create new content in "
            "namespace going because it is being terminated");
  ASSERT_EQ(status.causes().size(), 1U);
  EXPECT_EQ(status.causes()[0].kind, CauseKind::kNamespaceTerminating);
}

TEST_F(StoreRegistryTest, DryRunChecksEverythingAndWritesNothing) {
  WriteContext context;
  context.dry_run = DryRun::kYes;
  const auto made = Create(NewMachine("web"), context);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->metadata().resource_version, "");
  EXPECT_EQ(Get("web").status().reason(), Reason::kNotFound);
  MustCreate(NewMachine("web"));
  EXPECT_EQ(Create(NewMachine("web"), context).status().reason(), Reason::kAlreadyExists);
}

TEST_F(StoreRegistryTest, TheGuardSeesTheObjectAndItsErrorIsTheAnswer) {
  WriteContext context;
  context.guard = [](const meta::Object* before, const meta::Object& after) {
    return before == nullptr && after.metadata().name == "web" ? Forbidden("not you") : OkStatus();
  };
  EXPECT_EQ(Create(NewMachine("web"), context).status(), Forbidden("not you"));
}

TEST_F(StoreRegistryTest, AnObjectIsAtMostOneMebibyte) {
  Secret secret;
  secret.metadata.namespace_ = "default";
  secret.metadata.name = "big";
  secret.data["x"].bytes.assign(1000 * 1000, 'x');  // a third more in base64
  const Status status = Create(meta::Object::Of(kSecretKind, std::move(secret))).status();
  EXPECT_EQ(status.reason(), Reason::kRequestTooLarge);
  EXPECT_NE(status.message().find("the limit is 1048576"), std::string::npos) << status;
}

TEST_F(StoreRegistryTest, AnUpdateOfAnOldStateConflicts) {
  const meta::Object made = MustCreate(NewMachine("web"));
  meta::Object first = made;
  first.as<Machine>().spec.power = "Off";
  ASSERT_TRUE(Update(first).ok());
  meta::Object second = made;
  second.metadata().labels["a"] = "b";
  const Status status = Update(second).status();
  EXPECT_EQ(status.reason(), Reason::kConflict);
  EXPECT_EQ(
      status.message(),
      "Operation cannot be fulfilled on machines.compute.ironcore.dev \"web\": the object has "
      "been modified; please apply your changes to the latest version and try again");
}

TEST_F(StoreRegistryTest, AnUpdateSaysWhichStateItReplaces) {
  meta::Object object = MustCreate(NewMachine("web"));
  object.metadata().resource_version = "";
  const Status status = Update(object).status();
  EXPECT_EQ(status.reason(), Reason::kInvalid);
  EXPECT_EQ(status.message(),
            "Machine.compute.ironcore.dev \"web\" is invalid: metadata.resourceVersion: Invalid "
            "value: 0x0: must be specified for an update");
}

TEST_F(StoreRegistryTest, D9_TheGenerationCountsChangesOfTheDesiredStateOnly) {
  meta::Object object = MustCreate(NewMachine("web"));
  object.metadata().labels["a"] = "b";
  object = *Update(object);
  EXPECT_EQ(object.metadata().generation, 1);
  object.as<Machine>().spec.power = "Off";
  object = *Update(object);
  EXPECT_EQ(object.metadata().generation, 2);
  object.as<Machine>().status.state = "Running";
  object = *Update(object, Subresource::kStatus);
  EXPECT_EQ(object.metadata().generation, 2);
  EXPECT_EQ(object.as<Machine>().status.state, "Running");
}

TEST_F(StoreRegistryTest, SpecAndStatusAreWrittenSeparately) {
  meta::Object object = MustCreate(NewMachine("web"));
  object.as<Machine>().spec.power = "Off";
  object.as<Machine>().status.state = "Running";
  const meta::Object spec = *Update(object);
  EXPECT_EQ(spec.as<Machine>().status.state, "Pending");
  object = spec;
  object.as<Machine>().spec.power = "On";
  object.metadata().labels["a"] = "b";
  object.as<Machine>().status.state = "Running";
  const meta::Object status = *Update(object, Subresource::kStatus);
  EXPECT_EQ(status.as<Machine>().spec.power, "Off");
  EXPECT_TRUE(status.metadata().labels.empty());
  EXPECT_EQ(status.as<Machine>().status.state, "Running");
}

// It was written before texts had a limit.
TEST_F(StoreRegistryTest, ATextThatIsStoredTooLongKeepsNobodyFromTheRestOfItsObject) {
  const std::string text(70'000, 'x');
  meta::Object object = NewMachine("web");
  object.metadata().finalizers = {"example.com/a"};
  auto& disk = object.as<Machine>().spec.volumes.emplace_back();
  disk.name = "root";
  disk.device = "oda";
  disk.local_disk.emplace().image = text;
  EXPECT_EQ(Create(object).status().reason(), Reason::kInvalid);
  object.as<Machine>().spec.volumes[0].local_disk->image = "os";
  object = MustCreate(object);
  object.as<Machine>().spec.volumes[0].local_disk->image = text;
  object.as<Machine>().status.conditions = {
      {.type = "Ready", .status = "True", .reason = "A", .message = "", .last_transition_time = {}},
      {.type = "Odd", .status = "True", .reason = "B", .message = text, .last_transition_time = {}},
  };
  StoreUnchecked(object);

  object = *Get("web");
  auto& conditions = object.as<Machine>().status.conditions;
  conditions.erase(conditions.begin());
  auto written = Update(object, Subresource::kStatus);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->as<Machine>().status.conditions.size(), 1U);
  written->as<Machine>().spec.power = "Off";
  written = Update(*written);
  ASSERT_TRUE(written.ok()) << written.status();
  object = *written;
  object.as<Machine>().status.conditions[0].message += 'x';
  EXPECT_EQ(Update(object, Subresource::kStatus).status().message(),
            "Machine.compute.ironcore.dev \"web\" is invalid: status.conditions[0].message: Too "
            "long: 70001 bytes: may not be more than 65536 bytes");
  ASSERT_TRUE(Delete("web").ok());
  object = *Get("web");
  object.metadata().finalizers = {};
  ASSERT_TRUE(Update(object).ok());
  EXPECT_EQ(Get("web").status().reason(), Reason::kNotFound);
}

// Also where no single text is too long, but all of them together.
TEST_F(StoreRegistryTest, AnnotationsThatAreStoredTooLongMayStayAndNotGrow) {
  meta::Object object = MustCreate(NewMachine("web"));
  for (const char* key : {"a", "b"}) {
    object.metadata().annotations[key] = std::string(meta::kMaxAnnotationBytes / 2, 'x');
  }
  StoreUnchecked(object);

  object = *Get("web");
  object.as<Machine>().spec.power = "Off";
  const auto written = Update(object);
  ASSERT_TRUE(written.ok()) << written.status();
  object = *written;
  object.metadata().annotations["b"] += 'x';
  EXPECT_EQ(Update(object).status().message(),
            "Machine.compute.ironcore.dev \"web\" is invalid: metadata.annotations: Too long: "
            "262147 bytes: may not be more than 262144 bytes");
  object.metadata().annotations.erase("b");
  EXPECT_TRUE(Update(object).ok());
}

TEST_F(StoreRegistryTest, AnUpdateThatChangesNothingWritesNothing) {
  const meta::Object object = MustCreate(NewMachine("web"));
  const auto same = Update(object);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->metadata().resource_version, object.metadata().resource_version);
}

TEST_F(StoreRegistryTest, WhatTheServerCountsItKeepsWhateverIsWritten) {
  meta::Object object = MustCreate(NewMachine("web"));
  const meta::ObjectMeta before = object.metadata();
  object.metadata().creation_timestamp = WallTime::FromSeconds(1);
  object.metadata().generation = 50;
  object.metadata().labels["a"] = "b";
  const meta::Object after = *Update(object);
  EXPECT_EQ(after.metadata().creation_timestamp, before.creation_timestamp);
  EXPECT_EQ(after.metadata().generation, 1);
}

struct IdentityCase {
  std::string_view what;
  void (*change)(meta::ObjectMeta& metadata);
  Reason reason;
  std::string_view says;
};

TEST_F(StoreRegistryTest, AnUpdateThatWouldMakeItAnotherObjectOrDeleteItIsRefused) {
  const IdentityCase cases[] = {
      {"name",
       [](meta::ObjectMeta& m) { m.name = "other"; },
       Reason::kBadRequest,
       "the name of the object (other)"},
      {"namespace",
       [](meta::ObjectMeta& m) { m.namespace_ = "other"; },
       Reason::kBadRequest,
       "the namespace of the object (other)"},
      {"uid",
       [](meta::ObjectMeta& m) { m.uid = "00000000-0000-4000-8000-000000000000"; },
       Reason::kConflict,
       "UID in precondition"},
      {"deletion",
       [](meta::ObjectMeta& m) { m.deletion_timestamp = WallTime::FromSeconds(1); },
       Reason::kInvalid,
       "metadata.deletionTimestamp: Invalid value: \"1970-01-01T00:00:01Z\": field is immutable"},
      {"grace",
       [](meta::ObjectMeta& m) { m.deletion_grace_period_seconds = 7; },
       Reason::kInvalid,
       "metadata.deletionGracePeriodSeconds: Invalid value: \"7\": field is immutable"},
  };
  const meta::Object object = MustCreate(NewMachine("web"));
  for (const IdentityCase& row : cases) {
    // On the path of "web", as HTTP does it.
    const Mutation mutation = [&row](const meta::Object& current) -> Result<meta::Object> {
      meta::Object next = current;
      row.change(next.metadata());
      return next;
    };
    const Status status =
        world_.Run(registry().Mutate(kMachineKind, {"default", "web"}, mutation, {})).status();
    EXPECT_EQ(status.reason(), row.reason) << row.what << ": " << status;
    EXPECT_NE(status.message().find(row.says), std::string_view::npos) << status;
  }
  EXPECT_EQ(Get("web")->metadata(), object.metadata());
}

TEST_F(StoreRegistryTest, ADeletionCannotBeTakenBack) {
  meta::Object object = NewMachine("web");
  object.metadata().finalizers = {"example.com/a"};
  MustCreate(object);
  ASSERT_TRUE(Delete("web").ok());
  const meta::Object deleted = *Get("web");
  object = deleted;
  object.metadata().deletion_timestamp.reset();
  object.metadata().deletion_grace_period_seconds.reset();
  EXPECT_EQ(Update(object)->metadata(), deleted.metadata());
  object.metadata().deletion_timestamp = WallTime::FromSeconds(1);
  EXPECT_EQ(Update(object)->metadata(), deleted.metadata());
  object.metadata().deletion_grace_period_seconds = 3600;
  EXPECT_EQ(Update(object).status().reason(), Reason::kInvalid);
}

TEST_F(StoreRegistryTest, AnotherUidIsAnotherObject) {
  meta::Object object = MustCreate(NewMachine("web"));
  object.metadata().uid = "00000000-0000-4000-8000-000000000000";
  EXPECT_EQ(Update(object).status().reason(), Reason::kConflict);
}

TEST_F(StoreRegistryTest, ParallelMutationsLoseNoUpdate) {
  MustCreate(NewMachine("web"));
  std::vector<rt::Task<Result<WriteResult>>> writes;
  for (int i = 0; i < 10; ++i) {
    writes.push_back(registry().Mutate(kMachineKind,
                                       {"default", "web"},
                                       [i](const meta::Object& current) -> Result<meta::Object> {
                                         meta::Object next = current;
                                         next.metadata().annotations["n" + std::to_string(i)] = "x";
                                         return next;
                                       },
                                       {}));
  }
  for (const auto& result : world_.Run(rt::JoinAll(std::move(writes)))) {
    EXPECT_TRUE(result.ok()) << result.status();
  }
  EXPECT_EQ(Get("web")->metadata().annotations.size(), 10U);
}

TEST_F(StoreRegistryTest, DeletingWithoutFinalizersRemovesAtOnce) {
  const meta::Object made = MustCreate(NewMachine("web"));
  const auto deleted = Delete("web");
  ASSERT_TRUE(deleted.ok());
  EXPECT_TRUE(deleted->gone);
  EXPECT_EQ(Get("web").status().message(), "machines.compute.ironcore.dev \"web\" not found");
  EXPECT_EQ(Delete("web").status().reason(), Reason::kNotFound);
}

TEST_F(StoreRegistryTest, FinalizersKeepADeletedObjectUntilTheLastIsGone) {
  meta::Object object = NewMachine("web");
  object.metadata().finalizers = {"example.com/a", "example.com/b"};
  MustCreate(object);
  const auto deleted = Delete("web");
  ASSERT_TRUE(deleted.ok());
  EXPECT_FALSE(deleted->gone);
  object = *Get("web");
  ASSERT_TRUE(object.metadata().deletion_timestamp.has_value());
  EXPECT_EQ(object.metadata().deletion_grace_period_seconds, 0);
  EXPECT_EQ(object.metadata().generation, 2);
  EXPECT_FALSE(Delete("web")->gone);
  EXPECT_EQ(Get("web")->metadata().resource_version, object.metadata().resource_version);
  object.metadata().finalizers = {"example.com/c"};
  EXPECT_EQ(Update(object).status().reason(), Reason::kInvalid);
  object.metadata().finalizers = {"example.com/b"};
  object = *Update(object);
  object.metadata().finalizers = {};
  EXPECT_TRUE(Update(object).ok());
  EXPECT_EQ(Get("web").status().reason(), Reason::kNotFound);
}

TEST_F(StoreRegistryTest, DeletionHonoursItsPreconditions) {
  const meta::Object made = MustCreate(NewMachine("web"));
  const Status uid = Delete("web", {.uid = "other"}).status();
  EXPECT_EQ(uid.reason(), Reason::kConflict);
  EXPECT_EQ(
      uid.message(),
      "Operation cannot be fulfilled on machines.compute.ironcore.dev \"web\": the UID in the "
      "precondition (other) does not match the UID in record (" +
          made.metadata().uid + "). The object might have been deleted and then recreated");
  EXPECT_EQ(Delete("web", {.resource_version = "1"}).status().reason(), Reason::kConflict);
  EXPECT_TRUE(
      Delete("web",
             {.uid = made.metadata().uid, .resource_version = made.metadata().resource_version})
          .ok());
}

TEST_F(StoreRegistryTest, PropagationPoliciesBecomeFinalizers) {
  struct Row {
    Propagation propagation;
    std::vector<std::string> finalizers;
  };
  for (const Row& row : {Row{Propagation::kForeground, {"foregroundDeletion"}},
                         Row{Propagation::kOrphan, {"orphan"}}}) {
    const std::string name = row.finalizers[0] == "orphan" ? "o" : "f";
    MustCreate(NewMachine(name));
    EXPECT_FALSE(Delete(name, {.propagation = row.propagation})->gone);
    EXPECT_EQ(Get(name)->metadata().finalizers, row.finalizers);
    EXPECT_TRUE(Delete(name, {.propagation = Propagation::kBackground})->gone);
  }
}

TEST_F(StoreRegistryTest, TheDefaultNamespaceStays) {
  const auto deleted = world_.Run(registry().Delete(kNamespaceKind, {"", "default"}, {}, {}));
  EXPECT_EQ(deleted.status().reason(), Reason::kForbidden);
  EXPECT_EQ(deleted.status().message(),
            "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

TEST_F(StoreRegistryTest, ANamespaceGoesWhenItIsFinalized) {
  world_.MakeNamespace("going");
  const auto deleted = world_.Run(registry().Delete(kNamespaceKind, {"", "going"}, {}, {}));
  EXPECT_FALSE(deleted->gone);
  meta::Object object = *world_.Run(world_.client().Get(kNamespaceKind, {"", "going"}));
  EXPECT_EQ(object.as<Namespace>().status.phase, "Terminating");
  object.as<Namespace>().spec.finalizers.clear();
  EXPECT_EQ(Update(object)->as<Namespace>().spec.finalizers.size(), 1U);
  object = *world_.Run(world_.client().Get(kNamespaceKind, {"", "going"}));
  object.as<Namespace>().spec.finalizers.clear();
  EXPECT_TRUE(Update(object, Subresource::kFinalize).ok());
  EXPECT_EQ(world_.Run(world_.client().Get(kNamespaceKind, {"", "going"})).status().reason(),
            Reason::kNotFound);
}

TEST_F(StoreRegistryTest, ABatchHasOneVerdictPerObject) {
  MustCreate(NewMachine("m-7"));
  std::vector<meta::Object> objects;
  for (int i = 0; i < 200; ++i) objects.push_back(NewMachine("m-" + std::to_string(i)));
  objects.push_back(NewMachine("m-9"));
  objects.push_back(NewMachine(""));
  const auto results = world_.Run(registry().CreateBatch(std::move(objects), {}));
  ASSERT_EQ(results.size(), 202U);
  for (size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(results[i].status().reason(), i == 7 ? Reason::kAlreadyExists : Reason::kOk) << i;
  }
  EXPECT_EQ(results[200].status().reason(), Reason::kAlreadyExists);
  EXPECT_EQ(results[201].status().reason(), Reason::kInvalid);
  EXPECT_EQ(world_.cache().Of(kMachineKind).objects().size(), 200U);
}

TEST_F(StoreRegistryTest, ABatchNeedsFewCommits) {
  std::vector<meta::Object> objects;
  for (int i = 0; i < 120; ++i) objects.push_back(NewMachine("m-" + std::to_string(i)));
  const auto before = *world_.Run(world_.store().CurrentRevision());
  world_.Run(registry().CreateBatch(std::move(objects), {}));
  EXPECT_EQ(world_.Run(world_.store().CurrentRevision())->value - before.value, 2);
}

TEST_F(StoreRegistryTest, ADeletedCollectionIsGone) {
  for (int i = 0; i < 150; ++i) {
    meta::Object object = NewMachine("m-" + std::to_string(i));
    if (i % 3 == 0) object.metadata().labels["third"] = "yes";
    MustCreate(std::move(object));
  }
  ListRequest which;
  which.selection.namespace_ = "default";
  which.selection.labels = *meta::Selector::Parse("third=yes");
  const auto deleted = world_.Run(registry().DeleteCollection(kMachineKind, which, {}, {}));
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->items.size(), 50U);
  EXPECT_EQ(world_.cache().Of(kMachineKind).objects().size(), 100U);
}

TEST_F(StoreRegistryTest, MachineVolumesGetDeviceNames) {
  meta::Object object = NewMachine("web");
  auto& volumes = object.as<Machine>().spec.volumes;
  volumes.resize(2);
  for (size_t i = 0; i < 2; ++i) {
    volumes[i].name = "v" + std::to_string(i);
    volumes[i].local_disk.emplace();
  }
  volumes[0].device = "oda";
  const meta::Object made = MustCreate(std::move(object));
  EXPECT_EQ(made.as<Machine>().spec.volumes[1].device, "odb");
}

TEST_F(StoreRegistryTest, ClassesAreProtectedFromTheirFirstMoment) {
  apis::compute::MachineClass machine_class;
  machine_class.metadata.name = "small";
  machine_class.capabilities = {{"cpu", meta::Quantity(1)}, {"memory", meta::Quantity(1024)}};
  const meta::Object made =
      MustCreate(meta::Object::Of(kMachineClassKind, std::move(machine_class)));
  EXPECT_EQ(made.metadata().finalizers,
            std::vector<std::string>{std::string(apis::core::kMachineClassFinalizer)});
}

TEST_F(StoreRegistryTest, OwnersAreNamedInTheCanonicalDomain) {
  meta::Object object = NewMachine("web");
  object.metadata().owner_references = {{.api_version = "compute.OpenKCM.dev/v1alpha1",
                                         .kind = "Machine",
                                         .name = "owner",
                                         .uid = "u-1"}};
  const meta::Object made = MustCreate(std::move(object));
  EXPECT_EQ(made.metadata().owner_references[0].api_version, "compute.ironcore.dev/v1alpha1");
}

TEST_F(StoreRegistryTest, VolumesGrowOnlyIfTheirClassAllowsIt) {
  using apis::storage::Volume;
  using apis::storage::VolumeClass;
  for (const std::string policy : {"Static", "ExpandOnly"}) {
    VolumeClass volume_class;
    volume_class.metadata.name = policy == "Static" ? "fixed" : "growing";
    volume_class.capabilities = {{"tps", meta::Quantity(1)}, {"iops", meta::Quantity(1)}};
    volume_class.resize_policy = policy;
    MustCreate(meta::Object::Of(apis::storage::kVolumeClassKind, std::move(volume_class)));
  }
  const auto resize = [this](const std::string& class_name, int64_t to) {
    Volume volume;
    volume.metadata.namespace_ = "default";
    volume.metadata.name = class_name + std::to_string(to);
    volume.spec.volume_class_ref.emplace().name = class_name;
    volume.spec.resources["storage"] = meta::Quantity(100);
    meta::Object object = MustCreate(meta::Object::Of(apis::storage::kVolumeKind, volume));
    object.as<Volume>().spec.resources["storage"] = meta::Quantity(to);
    return Update(std::move(object)).status().reason();
  };
  EXPECT_EQ(resize("fixed", 200), Reason::kForbidden);
  EXPECT_EQ(resize("growing", 200), Reason::kOk);
  EXPECT_EQ(resize("growing", 50), Reason::kForbidden);
}

TEST_F(StoreRegistryTest, SecretsKeepStringDataAsData) {
  Secret secret;
  secret.metadata.namespace_ = "default";
  secret.metadata.name = "s";
  secret.string_data["a"] = "b";
  const meta::Object made = MustCreate(meta::Object::Of(kSecretKind, std::move(secret)));
  EXPECT_EQ(made.as<Secret>().data.at("a").bytes, "b");
  EXPECT_TRUE(made.as<Secret>().string_data.empty());
}

TEST_F(StoreRegistryTest, EventsOfBothShapesAreOneObjectAndGoAfterAnHour) {
  using apis::k8s::CoreEvent;
  CoreEvent event;
  event.metadata.namespace_ = "default";
  event.metadata.name = "web.1";
  event.involved_object = {.kind = "Machine",
                           .namespace_ = "default",
                           .name = "web",
                           .api_version = "compute.OpenKCM.dev/v1alpha1"};
  event.reason = "Scheduled";
  event.message = "it fits";
  event.type = "Normal";
  const meta::Object made = MustCreate(meta::Object::Of(apis::k8s::kCoreEventKind, event));
  EXPECT_EQ(made.as<CoreEvent>().involved_object.api_version, "compute.ironcore.dev/v1alpha1");
  const ObjectKey key{"default", "web.1"};
  auto view = world_.Run(world_.client().Get(apis::k8s::kEventKind, key));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->as<apis::k8s::Event>().regarding.name, "web");
  EXPECT_EQ(view->as<apis::k8s::Event>().note, "it fits");
  EXPECT_EQ(view->metadata(), made.metadata());
  view->as<apis::k8s::Event>().note = "it still fits";
  ASSERT_TRUE(world_.Run(world_.client().Update(*view, {})).ok());
  EXPECT_EQ(
      world_.Run(world_.client().Get(apis::k8s::kCoreEventKind, key))->as<CoreEvent>().message,
      "it still fits");
  world_.loop().RunFor(Duration::Minutes(55));
  EXPECT_TRUE(world_.Run(world_.client().Get(apis::k8s::kCoreEventKind, key)).ok());
  world_.loop().RunFor(Duration::Minutes(15));
  EXPECT_EQ(world_.Run(world_.client().Get(apis::k8s::kCoreEventKind, key)).status().reason(),
            Reason::kNotFound);
}

TEST_F(StoreRegistryTest, EverythingSurvivesARestart) {
  const meta::Object made = MustCreate(NewMachine("web"));
  world_.Restart();
  const auto read = Get("web");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata(), made.metadata());
}

}  // namespace
}  // namespace berth::apiserver
