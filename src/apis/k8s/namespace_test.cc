// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of Namespace.
#include "apis/k8s/namespace.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::k8s {
namespace {

using testing::Parse;

Namespace Valid() { return Parse<Namespace>(R"({"metadata": {"name": "ns"}})"); }

TEST(Namespace, IsActiveAndLabelledWithItsName) {
  const Namespace object = testing::WithDefaults(Valid());
  EXPECT_EQ(object.status.phase, "Active");
  EXPECT_EQ(object.metadata.labels.at("kubernetes.io/metadata.name"), "ns");
}

TEST(Namespace, GetsItsFinalizerOnlyWhenItIsNew) {
  Namespace object = testing::WithDefaults(Valid());
  EXPECT_TRUE(object.spec.finalizers.empty());
  kNamespaceKind.prepare_create(&object);
  kNamespaceKind.prepare_create(&object);
  EXPECT_EQ(object.spec.finalizers, std::vector<std::string>{"kubernetes"});
}

TEST(Namespace, KeepsItsFinalizersOnUpdate) {
  Namespace before = Valid();
  before.spec.finalizers = {"kubernetes"};
  Namespace now = Valid();
  kNamespaceKind.prepare_update(&now, &before);
  EXPECT_EQ(now.spec.finalizers, before.spec.finalizers);
}

TEST(Namespace, HasRules) {
  testing::ExpectRules<Namespace>(Valid(),
                                  {
                                      {"bad finalizer",
                                       [](auto& n) { n.spec.finalizers = {"kubernetes", "a b"}; },
                                       {"Invalid spec.finalizers[1]"}},
                                      {"unknown phase",
                                       [](auto& n) { n.status.phase = "Asleep"; },
                                       {"NotSupported status.phase"}},
                                  });
}

TEST(Namespace, TerminatesWhenItIsDeleted) {
  testing::ExpectStatusRules<Namespace>(
      Valid(),
      {
          {"terminating without reason",
           [](auto& n) { n.status.phase = "Terminating"; },
           {"Invalid status.phase"}},
          {"deleted and active",
           [](auto& n) { n.metadata.deletion_timestamp = WallTime::FromSeconds(1); },
           {"Invalid status.phase"}},
          {"deleted and terminating",
           [](auto& n) {
             n.metadata.deletion_timestamp = WallTime::FromSeconds(1);
             n.status.phase = "Terminating";
           },
           {}},
          {"condition twice",
           [](auto& n) { n.status.conditions = {{.type = "A"}, {.type = "A"}}; },
           {"Duplicate status.conditions[1].type"}},
      });
}

TEST(Namespace, NamedDefaultStays) {
  Namespace object = Valid();
  EXPECT_EQ(kNamespaceKind.refuse_delete(&object), "");
  object.metadata.name = "default";
  EXPECT_EQ(kNamespaceKind.refuse_delete(&object), "this namespace may not be deleted");
}

TEST(Namespace, ShowsItsPhase) {
  const Namespace object = testing::WithDefaults(Valid());
  EXPECT_EQ(testing::CellOf(kNamespaceKind, "Status", &object), "Active");
}

}  // namespace
}  // namespace berth::apis::k8s
