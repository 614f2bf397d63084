// SPDX-License-Identifier: Apache-2.0
// Selectors, tolerations and keys mean what Kubernetes and IronCore mean by them, traps removed.
#include "scheduler/core/request.h"

#include <algorithm>
#include <type_traits>

#include "base/random.h"
#include "base/uid.h"
#include "scheduler/core/board.h"

namespace berth::scheduler {
namespace {

using Op = SelectorTerm::Op;

static_assert(!std::is_copy_constructible_v<Board>, "a board has one owner");

TEST(SchedulerSelector, EveryOperatorSaysWhatItSays) {
  const Labels labels = {{"zone", "a"}, {"cores", "32"}, {"name", "x"}};
  const struct {
    SelectorTerm term;
    bool matches;
  } cases[] = {
      {{"zone", Op::kIn, {"a", "b"}}, true},
      {{"zone", Op::kIn, {"b"}}, false},
      {{"rack", Op::kIn, {"a"}}, false},
      {{"zone", Op::kNotIn, {"b"}}, true},
      {{"zone", Op::kNotIn, {"a"}}, false},
      {{"rack", Op::kNotIn, {"a"}}, true},
      {{"zone", Op::kExists, {}}, true},
      {{"rack", Op::kExists, {}}, false},
      {{"rack", Op::kDoesNotExist, {}}, true},
      {{"zone", Op::kDoesNotExist, {}}, false},
      {{"cores", Op::kGreater, {"31"}}, true},
      {{"cores", Op::kGreater, {"32"}}, false},
      {{"cores", Op::kLess, {"33"}}, true},
      {{"cores", Op::kLess, {"32"}}, false},
      {{"name", Op::kGreater, {"1"}}, false},
      {{"cores", Op::kGreater, {"many"}}, false},
      {{"cores", Op::kGreater, {"1", "2"}}, false},
  };
  for (const auto& [term, matches] : cases)
    EXPECT_EQ(Selector{.terms = {term}}.Matches(labels), matches)
        << term.key << " " << static_cast<int>(term.op);
  EXPECT_TRUE(Selector{}.Matches(labels));
  EXPECT_TRUE(Selector::Equals({{"zone", "a"}, {"name", "x"}}).Matches(labels));
  EXPECT_FALSE(Selector::Equals({{"zone", "a"}, {"name", "y"}}).Matches(labels));
}

// IronCore's toleration with an empty key and operator Equal tolerates every key; ours does not.
TEST(SchedulerToleration, D16_AnEmptyKeyToleratesEverythingOnlyWithExists) {
  const Taint taint = {.key = "gpu", .value = "yes", .effect = TaintEffect::kNoExecute};
  const struct {
    Toleration toleration;
    bool tolerates;
  } cases[] = {
      {{.key = "", .op = Toleration::Op::kEqual, .value = "yes"}, false},
      {{.key = "", .op = Toleration::Op::kEqual, .value = ""}, false},
      {{.key = "", .op = Toleration::Op::kExists}, true},
      {{.key = "gpu", .op = Toleration::Op::kExists}, true},
      {{.key = "gpu", .op = Toleration::Op::kEqual, .value = "yes"}, true},
      {{.key = "gpu", .op = Toleration::Op::kEqual, .value = "no"}, false},
      {{.key = "gpu", .op = Toleration::Op::kExists, .effect = TaintEffect::kNoExecute}, true},
      {{.key = "gpu", .op = Toleration::Op::kExists, .effect = TaintEffect::kNoSchedule}, false},
      {{.key = "", .op = Toleration::Op::kExists, .effect = TaintEffect::kNoSchedule}, false},
  };
  for (const auto& [toleration, tolerates] : cases) {
    EXPECT_EQ(toleration.Tolerates(taint), tolerates) << toleration.key << "=" << toleration.value;
    EXPECT_EQ(IsTolerated(taint, {toleration}), tolerates);
  }
  EXPECT_FALSE(IsTolerated(taint, {}));
}

TEST(SchedulerToleration, ARestrictedTaintIsToleratedByItsKeyOrByWhatHasNoOtherPlace) {
  const Taint taint = {.key = "restricted.berth.dev/gpu",
                       .value = "yes",
                       .effect = TaintEffect::kNoSchedule,
                       .is_restricted = true};
  const struct {
    Toleration toleration;
    bool tolerates;
  } cases[] = {
      {{.key = "", .op = Toleration::Op::kExists}, false},
      {{.key = "", .op = Toleration::Op::kExists, .effect = TaintEffect::kNoSchedule}, false},
      {{.key = "restricted.berth.dev/gpu", .op = Toleration::Op::kExists}, true},
      {{.key = "restricted.berth.dev/gpu", .op = Toleration::Op::kEqual, .value = "yes"}, true},
      {{.key = "restricted.berth.dev/gpu", .op = Toleration::Op::kEqual, .value = "no"}, false},
      {{.key = "restricted.berth.dev/fpga", .op = Toleration::Op::kExists}, false},
      {{.key = "", .op = Toleration::Op::kAny}, true},
  };
  for (const auto& [toleration, tolerates] : cases) {
    EXPECT_EQ(IsTolerated(taint, {toleration}), tolerates) << toleration.key;
  }
}

TEST(SchedulerObjectKey, KeepsTheBitsOfAUuidAndHashesOtherText) {
  const auto key = ObjectKey::FromUid("00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(key.high, 0x0011223344556677u);
  EXPECT_EQ(key.low, 0x8899aabbccddeeffu);
  EXPECT_EQ(key, ObjectKey::FromUid("00112233-4455-6677-8899-AABBCCDDEEFF"));
  Random random(1);
  EXPECT_NE(ObjectKey::FromUid(NewUid(random)), ObjectKey::FromUid(NewUid(random)));
  EXPECT_NE(ObjectKey::FromUid("a"), ObjectKey::FromUid("b"));
  EXPECT_NE(ObjectKey::FromUid(""), ObjectKey{});
}

TEST(SchedulerRules, HaveDistinctNames) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kRules; ++i) names.push_back(RuleName(static_cast<Rule>(i)));
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  EXPECT_EQ(RuleName(Rule::kRefused), "Refused");
  EXPECT_EQ(RuleName(Rule::kHostRoom), "HostRoom");
}

}  // namespace
}  // namespace berth::scheduler
