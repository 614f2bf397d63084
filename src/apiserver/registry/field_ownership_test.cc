// SPDX-License-Identifier: Apache-2.0
// Defends whom fields belong to after each kind of write, and what apply makes of objects.
#include "apiserver/registry/field_ownership.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/k8s/certificate_signing_request.h"
#include "apis/registry.h"
#include "apiserver/registry/registry_world.h"
#include "meta/json.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::k8s::CertificateSigningRequest;
using apis::k8s::kCertificateSigningRequestKind;

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

class FieldOwnershipTest : public ::testing::Test {
 protected:
  FieldOwnershipTest() { world_.MakeNamespace("default"); }

  static meta::Object NewMachine() {
    Machine machine;
    machine.metadata.namespace_ = "default";
    machine.metadata.name = "web";
    machine.spec.machine_class_ref.name = "small";
    return meta::Object::Of(kMachineKind, std::move(machine));
  }
  static WriteContext By(std::string manager,
                         Ownership ownership = Ownership::kUpdated,
                         Subresource subresource = Subresource::kNone) {
    WriteContext context;
    context.ownership = ownership;
    context.field_manager = std::move(manager);
    context.subresource = subresource;
    if (subresource == Subresource::kStatus) context.managed_subresource = "status";
    return context;
  }
  Result<meta::Object> Create(WriteContext context) {
    return Decoded(world_.Run(world_.registry().Create(NewMachine(), std::move(context))));
  }
  Result<meta::Object> Change(WriteContext context, Mutation mutation) {
    return Decoded(world_.Run(world_.registry().Mutate(
        kMachineKind, {"default", "web"}, std::move(mutation), std::move(context))));
  }
  Result<meta::Object> Set(WriteContext context, void (*change)(Machine& machine)) {
    return Change(std::move(context), [change](const meta::Object& current) {
      meta::Object next = current;
      change(next.as<Machine>());
      return Result<meta::Object>(std::move(next));
    });
  }
  Result<meta::Object> Apply(std::string manager,
                             std::string_view configuration,
                             meta::Conflicts conflicts = meta::Conflicts::kRefused,
                             DryRun dry_run = DryRun::kNo) {
    auto value = meta::ParseJson(configuration);
    CHECK(value.ok()) << value.status();
    const ApplyRequest request{.manager = manager,
                               .subresource = "",
                               .conflicts = conflicts,
                               .configuration = *std::move(value)};
    WriteContext context = By(std::move(manager), Ownership::kApplied);
    context.dry_run = dry_run;
    return Change(std::move(context), [this, request](const meta::Object& current) {
      return ApplyTo(world_.scheme(), kMachineKind, &current, request, world_.loop().WallNow());
    });
  }
  static Result<meta::Object> Decoded(const Result<WriteResult>& result) {
    if (!result.ok()) return result.status();
    return DecodeFor(kMachineKind, result->object);
  }
  // MANAGER OPERATION FIELDS, one line per entry.
  static std::string Managers(const Result<meta::Object>& object) {
    if (!object.ok()) return object.status().ToString();
    std::string text;
    for (const auto& entry : object->metadata().managed_fields) {
      EXPECT_EQ(entry.api_version, "compute.ironcore.dev/v1alpha1");
      text += entry.manager + " " + entry.operation +
              (entry.subresource.empty() ? "" : "/" + entry.subresource) + " " +
              entry.fields_v1.text + "\n";
    }
    return text;
  }

  RegistryWorld world_{17};
};

TEST(FieldOwnership, AWriterIsCalledByTheFirstWordOfItsUserAgent) {
  EXPECT_EQ(ManagerOf("kubectl/v1.31 (linux)"), "kubectl");
  EXPECT_EQ(ManagerOf("fleet controller"), "fleet controller");
  EXPECT_EQ(ManagerOf("a\x01\x7f\xc3\xa4"
                      "b/1"),
            "ab")
      << "only what can be printed, in ASCII";
  EXPECT_EQ(ManagerOf("/1.0"), "unknown");
  EXPECT_EQ(ManagerOf(""), "unknown");
  EXPECT_EQ(ManagerOf(std::string(200, 'x')).size(), 128U);
}

TEST_F(FieldOwnershipTest, AClientOwnsWhatItCreatesAndTheServersPartsOwnNothing) {
  EXPECT_EQ(Managers(Create(By("kubectl-create"))),
            R"(kubectl-create Update {"f:spec":{"f:machineClassRef":{},"f:power":{}}})"
            "\n");
  EXPECT_EQ(Managers(Set({}, [](Machine& machine) { machine.spec.power = "Off"; })),
            R"(kubectl-create Update {"f:spec":{"f:machineClassRef":{},"f:power":{}}})"
            "\n");
}

TEST_F(FieldOwnershipTest, WhatTheServerMadeHasNoManagersUntilItIsApplied) {
  EXPECT_EQ(Managers(Create({})), "");
  EXPECT_EQ(Managers(Set(By("kubectl-edit"), [](Machine& machine) { machine.spec.power = "Off"; })),
            "");
  const auto refused = Apply("me", R"({"spec":{"power":"On"}})");
  EXPECT_EQ(refused.status().message(),
            "Apply failed with 1 conflict: conflict with \"before-first-apply\" using "
            "compute.ironcore.dev/v1alpha1: .spec.power");
  EXPECT_EQ(Managers(Apply("me", R"({"spec":{"power":"Off"}})")),
            "me Apply {\"f:spec\":{\"f:power\":{}}}\n"
            "before-first-apply Update {\"f:spec\":{\"f:machineClassRef\":{},\"f:power\":{}}}\n");
}

TEST_F(FieldOwnershipTest, AnUpdateTakesWhatItChanges) {
  ASSERT_TRUE(Create(By("kubectl-create")).ok());
  EXPECT_EQ(Managers(Set(By("kubectl-edit"), [](Machine& machine) { machine.spec.power = "Off"; })),
            "kubectl-create Update {\"f:spec\":{\"f:machineClassRef\":{}}}\n"
            "kubectl-edit Update {\"f:spec\":{\"f:power\":{}}}\n");
  EXPECT_EQ(Managers(Set(By("agent", Ownership::kUpdated, Subresource::kStatus),
                         [](Machine& machine) { machine.status.state = "Running"; })),
            "agent Update/status {\"f:status\":{\"f:state\":{}}}\n"
            "kubectl-create Update {\"f:spec\":{\"f:machineClassRef\":{}}}\n"
            "kubectl-edit Update {\"f:spec\":{\"f:power\":{}}}\n");
}

TEST_F(FieldOwnershipTest, ApplyingTheSameTwiceWritesNothing) {
  ASSERT_TRUE(Create(By("kubectl-create")).ok());
  constexpr std::string_view kWanted =
      R"({"metadata":{"labels":{"a":"b"},"creationTimestamp":null},"spec":{"power":"On"}})";
  const auto once = Apply("me", kWanted);
  ASSERT_TRUE(once.ok()) << once.status();
  const auto again = Apply("me", kWanted);
  EXPECT_EQ(once->metadata().resource_version, again->metadata().resource_version);
  EXPECT_EQ(once->metadata().generation, 1);
}

TEST_F(FieldOwnershipTest, ADryRunTellsWhatAnApplyWouldDo) {
  ASSERT_TRUE(Create(By("kubectl-create")).ok());
  const auto tried =
      Apply("me", R"({"spec":{"power":"Off"}})", meta::Conflicts::kForced, DryRun::kYes);
  ASSERT_TRUE(tried.ok()) << tried.status();
  EXPECT_EQ(tried->as<Machine>().spec.power, "Off");
  EXPECT_TRUE(Managers(tried).starts_with("me Apply"));
  const auto stored = world_.Run(world_.client().Get(kMachineKind, {"default", "web"}));
  EXPECT_EQ(stored->as<Machine>().spec.power, "On");
}

TEST_F(FieldOwnershipTest, PreconditionsOfAnApplyHold) {
  ASSERT_TRUE(Create(By("kubectl-create")).ok());
  EXPECT_TRUE(Apply("me", R"({"metadata":{"uid":"other"}})").status().Is(Reason::kConflict));
  EXPECT_TRUE(
      Apply("me", R"({"metadata":{"resourceVersion":"1"}})").status().Is(Reason::kConflict));
}

TEST_F(FieldOwnershipTest, AFieldThatIsNoLongerAppliedGetsItsDefault) {
  ASSERT_TRUE(Create(By("kubectl-create")).ok());
  ASSERT_TRUE(Apply("me", R"({"spec":{"power":"Off"}})", meta::Conflicts::kForced).ok());
  const auto left = Apply("me", R"({"metadata":{"labels":{"a":"b"}}})");
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ(left->as<Machine>().spec.power, "On");
}

TEST_F(FieldOwnershipTest, StatusCannotBeAppliedWithTheRest) {
  ASSERT_TRUE(Create(By("kubectl-create")).ok());
  const auto applied = Apply("me", R"({"spec":{"power":"On"},"status":{"state":"Running"}})");
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(applied->as<Machine>().status.state, "Pending");
  EXPECT_FALSE(Managers(applied).contains("f:status"));
}

TEST_F(FieldOwnershipTest, AnEmptyEntryForgetsAllManagers) {
  ASSERT_TRUE(Create(By("kubectl-create")).ok());
  EXPECT_EQ(Managers(Set(By("reset"),
                         [](Machine& machine) {
                           machine.metadata.managed_fields = {meta::ManagedFieldsEntry{}};
                         })),
            "");
}

TEST_F(FieldOwnershipTest, AClientMayRewriteManagersAndNonsenseIsIgnored) {
  ASSERT_TRUE(Create(By("kubectl-create")).ok());
  const auto nonsense = Set(By("other"), [](Machine& machine) {
    machine.metadata.managed_fields.front().operation = "Steal";
  });
  EXPECT_TRUE(Managers(nonsense).starts_with("kubectl-create Update"));
  const auto renamed = Set(By("other"), [](Machine& machine) {
    machine.metadata.managed_fields.front().manager = "kubectl";
    machine.metadata.managed_fields.front().operation = "Apply";
    machine.metadata.managed_fields.front().api_version = "compute.OpenKCM.dev/v1alpha1";
  });
  EXPECT_TRUE(Managers(renamed).starts_with("kubectl Apply {")) << Managers(renamed);
}

TEST_F(FieldOwnershipTest, WhatKubectlAppliedBeforeMovesOverWithoutConflict) {
  ASSERT_TRUE(Create(By("kubectl-client-side-apply")).ok());
  ASSERT_TRUE(Set(By("kubectl-client-side-apply"), [](Machine& machine) {
                machine.metadata.annotations[std::string(kLastApplied)] =
                    R"({"spec":{"power":"On"}})";
              }).ok());
  EXPECT_TRUE(Apply("me", R"({"spec":{"power":"Off"}})").status().Is(Reason::kConflict));
  const auto moved = Apply("kubectl", R"({"kind":"Machine","spec":{"power":"Off"}})");
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(moved->metadata().annotations.at(std::string(kLastApplied)),
            "{\"kind\":\"Machine\",\"spec\":{\"power\":\"Off\"}}\n");
  ASSERT_TRUE(Set(By("kubectl-edit"), [](Machine& machine) {
                machine.metadata.annotations[std::string(kLastApplied)] = R"({"spec":7})";
                machine.spec.power = "On";
              }).ok());
  EXPECT_TRUE(Apply("kubectl", R"({"spec":{"power":"Off"}})").status().Is(Reason::kConflict));
}

// Approval is a way to write the status of a request for a certificate: what comes through it
// counts, and belongs to whoever sent it.
TEST(FieldOwnershipOfApproval, IsAppliedAndRecorded) {
  const meta::Scheme scheme(apis::AllKinds(), {"ironcore.dev"});
  const WallTime now = WallTime::FromSeconds(1'700'000'000);
  CertificateSigningRequest request;
  request.metadata.name = "ann";
  request.spec.signer_name = "kubernetes.io/kube-apiserver-client";
  const auto live = meta::Object::Of(kCertificateSigningRequestKind, std::move(request));
  const auto configuration = meta::ParseJson(
      R"({"spec":{"username":"eve"},"status":{"conditions":[{"type":"Approved","status":"True"}]}})");
  ASSERT_TRUE(configuration.ok());
  const auto approved = ApplyTo(scheme,
                                kCertificateSigningRequestKind,
                                &live,
                                {.manager = "boss",
                                 .subresource = "approval",
                                 .conflicts = meta::Conflicts::kRefused,
                                 .configuration = *configuration},
                                now);
  ASSERT_TRUE(approved.ok()) << approved.status();
  const auto& applied = approved->as<CertificateSigningRequest>();
  ASSERT_EQ(applied.status.conditions.size(), 1);
  EXPECT_EQ(applied.status.conditions[0].type, "Approved");
  EXPECT_EQ(applied.spec.username, "") << "not through approval";
  const auto owned = [](const meta::Object& object, std::string_view manager) {
    std::string text;
    for (const auto& entry : object.metadata().managed_fields) {
      if (entry.manager == manager) text = entry.subresource + " " + entry.fields_v1.text;
    }
    return text;
  };
  EXPECT_TRUE(owned(*approved, "boss").starts_with(R"(approval {"f:status":{"f:conditions":)"))
      << owned(*approved, "boss");

  meta::Object denied = *approved;
  denied.as<CertificateSigningRequest>().status.conditions.push_back(
      {.type = "Denied", .status = "True"});
  WriteContext context;
  context.ownership = Ownership::kUpdated;
  context.field_manager = "kubectl-approve";
  context.managed_subresource = "approval";
  context.subresource = Subresource::kStatus;
  RecordOwnership(scheme, &*approved, {}, context, now, denied);
  EXPECT_TRUE(owned(denied, "kubectl-approve").starts_with(R"(approval {"f:status":)"))
      << owned(denied, "kubectl-approve");
}

}  // namespace
}  // namespace berth::apiserver
