// SPDX-License-Identifier: Apache-2.0
// Defends how kinds are found: canonical and alias domains, any spelling on the path, what people
// type.
#include "meta/scheme.h"

#include <gtest/gtest.h>

namespace berth::meta {
namespace {

constexpr std::string_view kShort[] = {"mc"};
constexpr KindInfo kMachine = {.group = "compute",
                               .naming = GroupNaming::kDomain,
                               .version = "v1alpha1",
                               .kind = "Machine",
                               .plural = "machines",
                               .singular = "machine"};
constexpr KindInfo kClass = {.group = "compute",
                             .naming = GroupNaming::kDomain,
                             .version = "v1alpha1",
                             .kind = "MachineClass",
                             .plural = "machineclasses",
                             .singular = "machineclass",
                             .short_names = kShort};
constexpr KindInfo kSecret = {
    .group = "", .version = "v1", .kind = "Secret", .plural = "secrets", .singular = "secret"};
constexpr const KindInfo* kKinds[] = {&kMachine, &kClass, &kSecret};

Scheme MakeScheme() { return Scheme(kKinds, {"ironcore.dev", "OpenKCM.dev"}); }

TEST(Scheme, ServesEveryDomainInItsConfiguredSpelling) {
  const Scheme scheme = MakeScheme();
  ASSERT_EQ(scheme.groups().size(), 3U);
  EXPECT_EQ(scheme.groups()[0].group, "compute.ironcore.dev");
  EXPECT_EQ(scheme.groups()[0].kinds.size(), 2U);
  EXPECT_EQ(scheme.groups()[1].group, "");
  EXPECT_EQ(scheme.groups()[2].group, "compute.OpenKCM.dev");
  EXPECT_TRUE(scheme.groups()[2].is_alias);
}

TEST(Scheme, FindsAResourceUnderEveryDomainAndSpelling) {
  const Scheme scheme = MakeScheme();
  for (const auto* group : {"compute.ironcore.dev",
                            "compute.OpenKCM.dev",
                            "compute.openkcm.dev",
                            "compute.IRONCORE.dev"}) {
    EXPECT_EQ(scheme.FindResource(group, "v1alpha1", "machines"), &kMachine) << group;
    EXPECT_EQ(scheme.FindKind(group, "v1alpha1", "MachineClass"), &kClass) << group;
    EXPECT_EQ(scheme.CanonicalGroup(group), "compute.ironcore.dev");
  }
  for (const auto* group :
       {"compute", "compute.example.org", "", "ironcore.dev", ".ironcore.dev"}) {
    EXPECT_EQ(scheme.FindResource(group, "v1alpha1", "machines"), nullptr) << group;
  }
  EXPECT_EQ(scheme.FindResource("", "v1", "secrets"), &kSecret);
  EXPECT_EQ(scheme.FindResource("compute.ironcore.dev", "v1", "machines"), nullptr);
}

TEST(Scheme, CanonicalisesApiVersionsAndLeavesForeignOnesAlone) {
  const Scheme scheme = MakeScheme();
  EXPECT_EQ(scheme.CanonicalApiVersion("compute.openkcm.dev/v1alpha1"),
            "compute.ironcore.dev/v1alpha1");
  EXPECT_EQ(scheme.CanonicalApiVersion("v1"), "v1");
  EXPECT_EQ(scheme.CanonicalApiVersion("apps/v1"), "apps/v1");
  EXPECT_EQ(scheme.ServedSpelling("compute.openkcm.dev"), "compute.OpenKCM.dev");
  EXPECT_EQ(scheme.ApiVersionOf(kMachine), "compute.ironcore.dev/v1alpha1");
}

TEST(Scheme, FindsWhatPeopleType) {
  const Scheme scheme = MakeScheme();
  for (const auto* word : {"machines",
                           "machine",
                           "Machine",
                           "machines.compute.ironcore.dev",
                           "machines.compute.openkcm.dev",
                           "machines.compute"}) {
    const auto kind = scheme.FindByWord(word);
    ASSERT_TRUE(kind.ok()) << word;
    EXPECT_EQ(*kind, &kMachine) << word;
  }
  EXPECT_EQ(*scheme.FindByWord("mc"), &kClass);
  const auto wrong = scheme.FindByWord("machins");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("did you mean \"machines\"?"), std::string_view::npos)
      << wrong.status();
  EXPECT_FALSE(scheme.FindByWord("machines.storage").ok());
}

}  // namespace
}  // namespace berth::meta
