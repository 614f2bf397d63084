// SPDX-License-Identifier: Apache-2.0
// Defends the rules that several kinds share.
#include "apis/core/rules.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::core {
namespace {

using testing::Causes;
using testing::Describe;

const meta::FieldPath kPath("f");

template <class Check>
Causes CausesOf(const Check& check) {
  meta::FieldErrors errors;
  check(errors);
  return Describe(errors);
}

TEST(Rules, WhatIsSetOnceMayBeSetButNotChangedOrCleared) {
  using Ref = std::optional<LocalObjectReference>;
  const Ref none;
  const Ref a{{"a"}};
  const Ref b{{"b"}};
  const auto check = [](const Ref& now, const Ref& before) {
    return CausesOf([&](auto& errors) { CheckSetOnce(now, before, kPath, errors); });
  };
  EXPECT_EQ(check(a, none), Causes{});
  EXPECT_EQ(check(a, a), Causes{});
  EXPECT_EQ(check(none, none), Causes{});
  EXPECT_EQ(check(b, a), Causes{"Forbidden f"});
  EXPECT_EQ(check(none, a), Causes{"Forbidden f"});
}

TEST(Rules, WhatIsImmutableStays) {
  EXPECT_EQ(CausesOf([](auto& errors) { CheckImmutable(1, 1, kPath, errors); }), Causes{});
  EXPECT_EQ(CausesOf([](auto& errors) { CheckImmutable(1, 2, kPath, errors); }),
            Causes{"Forbidden f"});
}

TEST(Rules, ProviderIdsOfPoolsAreFixedByTheAnnouncement) {
  const auto check = [](const char* now, const char* before, Announced announced) {
    return CausesOf([&](auto& errors) { CheckPoolProviderId(now, before, announced, errors); });
  };
  EXPECT_EQ(check("b://1", "a://1", Announced::kNo), Causes{});
  EXPECT_EQ(check("a://1", "", Announced::kYes), Causes{});
  EXPECT_EQ(check("b://1", "a://1", Announced::kYes), Causes{"Forbidden spec.providerID"});
  EXPECT_EQ(check("", "a://1", Announced::kYes), Causes{"Forbidden spec.providerID"});
}

TEST(Rules, ReferencesAreNames) {
  const auto check = [](const char* name) {
    return CausesOf(
        [&](auto& errors) { CheckReference(LocalObjectReference{name}, kPath, errors); });
  };
  EXPECT_EQ(check("a.b-c"), Causes{});
  EXPECT_EQ(check(""), Causes{"Required f"});
  EXPECT_EQ(check("A_b"), Causes{"Invalid f.name"});
}

TEST(Rules, TemplatesCarryLabelsAndAnnotationsOnly) {
  const auto metadata = testing::Parse<meta::ObjectMeta>(R"({
      "name": "a", "generateName": "b", "namespace": "c", "uid": "d", "resourceVersion": "1",
      "generation": 1, "finalizers": ["x.y/z"],
      "labels": {"bad key": "v"}, "annotations": {"Good": "anything at all"}})");
  EXPECT_EQ(CausesOf([&](auto& errors) { CheckTemplateMetadata(metadata, kPath, errors); }),
            (Causes{"Forbidden f.finalizers",
                    "Forbidden f.generateName",
                    "Forbidden f.generation",
                    "Forbidden f.name",
                    "Forbidden f.namespace",
                    "Forbidden f.resourceVersion",
                    "Forbidden f.uid",
                    "Invalid f.labels"}));
}

TEST(Rules, UnionsHaveExactlyOneMember) {
  const auto check = [](int count) {
    return CausesOf([&](auto& errors) { CheckSources(count, kPath, "a or b", errors); });
  };
  EXPECT_EQ(check(0), Causes{"Required f"});
  EXPECT_EQ(check(1), Causes{});
  EXPECT_EQ(check(2), Causes{"Forbidden f"});
}

TEST(Rules, CellsSayWhenThereIsNothing) {
  const std::vector<LocalObjectReference> references = {{"b"}, {"a"}};
  EXPECT_EQ(JoinReferences(references), "a,b");
  EXPECT_EQ(JoinReferences({}), "<none>");
  EXPECT_EQ(ReferenceCell(std::nullopt), "<none>");
  EXPECT_EQ(ResourceCell({{"cpu", meta::Quantity(4)}}, "cpu"), "4");
  EXPECT_EQ(ResourceCell({}, "cpu"), "<none>");
  EXPECT_EQ(OrUnknown(""), "<unknown>");
  EXPECT_EQ(MachineClassResource("large"), "class/machine.large");
  EXPECT_EQ(VolumeClassResource("fast"), "class/volume.fast");
}

}  // namespace
}  // namespace berth::apis::core
