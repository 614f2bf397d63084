// SPDX-License-Identifier: Apache-2.0
// Defends which tolerations accept which taints, and what either may look like.
#include "apis/core/taints.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::core {
namespace {

using testing::Causes;
using testing::Describe;

struct MatchCase {
  Toleration toleration;
  Taint taint;
  bool is_tolerated;
};

TEST(Taints, AreToleratedByKeyValueAndEffect) {
  const Taint dedicated{"dedicated", "db", "NoSchedule"};
  const MatchCase cases[] = {
      {{"dedicated", "Equal", "db", "NoSchedule"}, dedicated, true},
      {{"dedicated", "", "db", "NoSchedule"}, dedicated, true},
      {{"dedicated", "Equal", "db", ""}, dedicated, true},
      {{"dedicated", "Equal", "web", ""}, dedicated, false},
      {{"dedicated", "Equal", "db", "NoExecute"}, dedicated, false},
      {{"other", "Equal", "db", ""}, dedicated, false},
      {{"dedicated", "Exists", "", ""}, dedicated, true},
      {{"other", "Exists", "", ""}, dedicated, false},
      {{"", "Exists", "", ""}, dedicated, true},
      {{"", "Exists", "", "NoExecute"}, dedicated, false},
      {{"", "Equal", "db", ""}, dedicated, false},
      {{"", "", "db", ""}, dedicated, false},
      {{"dedicated", "Likes", "db", ""}, dedicated, false},
  };
  for (const MatchCase& row : cases) {
    EXPECT_EQ(Tolerates(row.toleration, row.taint), row.is_tolerated)
        << row.toleration.key << " " << row.toleration.operator_ << " " << row.toleration.value;
  }
}

// Whoever tolerates everything has not asked anybody whether he may.
TEST(Taints, ThatAreRestrictedAreToleratedByTheirKeyOnly) {
  const Taint restricted{"restricted.berth.dev/gpu", "a", "NoExecute"};
  const MatchCase cases[] = {
      {{"", "Exists", "", ""}, restricted, false},
      {{"", "Exists", "", "NoExecute"}, restricted, false},
      {{"restricted.berth.dev/gpu", "Exists", "", ""}, restricted, true},
      {{"restricted.berth.dev/gpu", "Equal", "a", ""}, restricted, true},
      {{"restricted.berth.dev/gpu", "Equal", "b", ""}, restricted, false},
      {{"restricted.berth.dev/other", "Exists", "", ""}, restricted, false},
      {{"", "Exists", "", ""}, {"restricted.berth.dev.example/gpu", "", "NoSchedule"}, true},
      {{"", "Exists", "", ""}, {"gpu", "", "NoSchedule"}, true},
  };
  for (const MatchCase& row : cases) {
    EXPECT_EQ(Tolerates(row.toleration, row.taint), row.is_tolerated)
        << row.toleration.key << " " << row.taint.key;
  }
}

TEST(Taints, MustAllBeTolerated) {
  const std::vector<Taint> taints = {{"a", "", "NoSchedule"}, {"b", "", "NoExecute"}};
  const std::vector<Toleration> one = {{"a", "Exists", "", ""}};
  const std::vector<Toleration> both = {{"a", "Exists", "", ""}, {"b", "Exists", "", ""}};
  EXPECT_TRUE(TolerateTaints(both, taints));
  ASSERT_NE(FindUntolerated(one, taints), nullptr);
  EXPECT_EQ(FindUntolerated(one, taints)->key, "b");
  EXPECT_TRUE(TolerateTaints({}, {}));
}

TEST(Taints, OfPreferenceKeepNobodyAway) {
  const std::vector<Taint> taints = {{"a", "", "PreferNoSchedule"}};
  EXPECT_TRUE(TolerateTaints({}, taints));
}

TEST(Taints, HaveLabelSyntaxAndOccurOnce) {
  meta::FieldErrors errors;
  const std::vector<Taint> taints = {{"good.example/key", "v", "NoSchedule"},
                                     {"bad key", "bad value!", "NoSchedule"},
                                     {"good.example/key", "w", "NoSchedule"},
                                     {"good.example/key", "w", "NoExecute"}};
  CheckTaints(taints, meta::FieldPath("t"), errors);
  EXPECT_EQ(Describe(errors), (Causes{"Duplicate t[2]", "Invalid t[1].key", "Invalid t[1].value"}));
}

TEST(Tolerations, WithoutKeyNeedExistsAndSecondsNeedNoExecute) {
  meta::FieldErrors errors;
  const std::vector<Toleration> tolerations = {
      {"", "Exists", "", ""},
      {"", "Equal", "v", ""},
      {"", "", "v", ""},
      {"a", "Exists", "v", ""},
      {"bad key", "Equal", "bad value!", ""},
      {"a", "Exists", "", "NoExecute", 30},
      {"a", "Exists", "", "NoSchedule", 30},
      {"a", "Exists", "", "", 30},
  };
  CheckTolerations(tolerations, meta::FieldPath("t"), errors);
  EXPECT_EQ(Describe(errors),
            (Causes{"Invalid t[1].operator",
                    "Invalid t[2].operator",
                    "Invalid t[3].value",
                    "Invalid t[4].key",
                    "Invalid t[4].value",
                    "Invalid t[6].effect",
                    "Invalid t[7].effect"}));
}

}  // namespace
}  // namespace berth::apis::core
