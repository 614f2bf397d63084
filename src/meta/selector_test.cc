// SPDX-License-Identifier: Apache-2.0
// Defends label and field selectors: their grammar, their meaning, and that no text crashes them.
#include <gtest/gtest.h>

#include "base/random.h"
#include "meta/field_selector.h"
#include "meta/label_selector.h"

namespace berth::meta {
namespace {

using Labels = std::map<std::string, std::string>;

TEST(Selector, IsWrittenInKubernetesForm) {
  constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {"", ""},
      {" ", ""},
      {"a=b", "a=b"},
      {"a==b", "a=b"},
      {"a != b", "a!=b"},
      {"a", "a"},
      {"!a", "!a"},
      {"! a", "!a"},
      {"a=", "a="},
      {"a=,b", "a=,b"},
      {"z,a=1,m in (y,x,y)", "a=1,m in (x,y),z"},
      {"x in (a)", "x=a"},
      {"x notin (a,b)", "x notin (a,b)"},
      {"x in (,a)", "x in (,a)"},
      {"x in ()", "x="},
      {"in in (in,notin)", "in in (in,notin)"},
      {"in", "in"},
      {"a>5,b<7", "a>5,b<7"},
      {"example.com/role=x", "example.com/role=x"},
  };
  for (const auto& [text, written] : kKnown) {
    const auto parsed = Selector::Parse(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status();
    EXPECT_EQ(parsed->ToString(), written) << text;
    EXPECT_EQ(*Selector::Parse(parsed->ToString()), *parsed) << text;
  }
}

TEST(Selector, RefusesWhatKubernetesRefuses) {
  for (const std::string_view text :
       {",",          "a,",    "a,,b",      "=a",  "a b",   "a in",  "a in b", "a in (b",
        "a in (b c)", "!a=b",  "!",         "a!b", "a=b=c", "a=b c", "a>x",    "_a=b",
        "a=_b",       "a/b/c", "a in (b))", "(a)", "a=(",   "a=!b"}) {
    EXPECT_FALSE(Selector::Parse(text).ok()) << text;
  }
  EXPECT_FALSE(Selector::Parse(std::string(Selector::kTextMax + 1, 'a')).ok());
}

TEST(Selector, Matches) {
  const Labels labels = {{"app", "web"}, {"tier", "front"}, {"n", "5"}, {"e", ""}};
  constexpr std::pair<std::string_view, bool> kCases[] = {
      {"", true},
      {"app=web", true},
      {"app=db", false},
      {"app!=db", true},
      {"none!=x", true},
      {"none=x", false},
      {"none", false},
      {"!none", true},
      {"!app", false},
      {"e", true},
      {"e=", true},
      {"none=", false},
      {"n>4", true},
      {"n>5", false},
      {"n<6", true},
      {"app>1", false},
      {"app in (db,web)", true},
      {"app notin (db,web)", false},
      {"none notin (a)", true},
      {"app=web,tier=back", false},
      {"app=web,tier=front", true},
  };
  for (const auto& [text, expected] : kCases) {
    const auto selector = *Selector::Parse(text);
    EXPECT_EQ(selector.Matches(labels), expected) << text;
    EXPECT_EQ(selector.MatchesWith([&](std::string_view key) -> std::optional<std::string_view> {
      const auto found = labels.find(std::string(key));
      if (found == labels.end()) return std::nullopt;
      return found->second;
    }),
              expected)
        << text;
  }
}

TEST(Selector, ComesFromTheStructToo) {
  LabelSelector selector{
      .match_labels = {{"app", "web"}},
      .match_expressions = {{"tier", "In", {"b", "a"}}, {"old", "DoesNotExist", {}}}};
  EXPECT_EQ(Selector::From(selector)->ToString(), "app=web,!old,tier in (a,b)");
  EXPECT_EQ(Selector::From(selector)->RequiredValue("app"), "web");
  EXPECT_EQ(Selector::From(selector)->RequiredValue("tier"), std::nullopt);
  EXPECT_TRUE(Selector::From({})->empty());
  selector.match_expressions[0].operator_ = "Near";
  EXPECT_FALSE(Selector::From(selector).ok());
}

TEST(Selector, TheStructIsValidated) {
  FieldErrors errors;
  ValidateLabelSelector(
      FieldPath("spec.selector"),
      {.match_labels = {{"a b", "x"}},
       .match_expressions = {{"k", "In", {}}, {"k", "Exists", {"v"}}, {"k", "Near", {"_"}}}},
      errors);
  ASSERT_EQ(errors.causes().size(), 5U);
  EXPECT_EQ(errors.causes()[0].field, "spec.selector.matchLabels");
  EXPECT_EQ(errors.causes()[1].field, "spec.selector.matchExpressions[0].values");
  EXPECT_EQ(errors.causes()[2].kind, CauseKind::kForbidden);
  EXPECT_EQ(errors.causes()[3].field, "spec.selector.matchExpressions[2].operator");
  EXPECT_EQ(errors.causes()[4].field, "spec.selector.matchExpressions[2].values[0]");
}

TEST(FieldSelector, ReadsTermsWithEscapes) {
  const auto selector = *FieldSelector::Parse(R"(metadata.name=a,spec.x!=b,y==c\,d\=e\\,,z=)");
  const std::vector<FieldSelector::Term> expected = {{"metadata.name", "a", true},
                                                     {"spec.x", "b", false},
                                                     {"y", R"(c,d=e\)", true},
                                                     {"z", "", true}};
  EXPECT_EQ(selector.terms(), expected);
  EXPECT_EQ(*FieldSelector::Parse(selector.ToString()), selector);
  EXPECT_EQ(selector.RequiredValue("metadata.name"), "a");
  EXPECT_EQ(selector.RequiredValue("spec.x"), std::nullopt);
  EXPECT_TRUE(FieldSelector::Parse("")->empty());
}

TEST(FieldSelector, RefusesNonsense) {
  for (const std::string_view text : {"a", "a=b,c", R"(a=\x)", R"(a=b\)", "a=b=c", "a!b"}) {
    EXPECT_FALSE(FieldSelector::Parse(text).ok()) << text;
  }
}

TEST(FieldSelector, Matches) {
  const auto find = [](std::string_view field) {
    return field == "metadata.name" ? std::string("a") : std::string();
  };
  EXPECT_TRUE(FieldSelector::Parse("metadata.name=a,other=")->MatchesWith(find));
  EXPECT_FALSE(FieldSelector::Parse("metadata.name!=a")->MatchesWith(find));
  EXPECT_TRUE(FieldSelector::Parse("other!=x")->MatchesWith(find));
}

TEST(Selectors, NeverCrashOnRandomText) {
  Random random(5);
  constexpr std::string_view kAlphabet = "ab/.-=!,()<> \\inot";
  for (int i = 0; i < 15000; ++i) {
    std::string text;
    for (uint64_t n = random.Below(16); n > 0; --n)
      text += kAlphabet[random.Below(kAlphabet.size())];
    if (const auto label = Selector::Parse(text); label.ok()) {
      const auto again = Selector::Parse(label->ToString());
      ASSERT_TRUE(again.ok()) << text << " -> " << label->ToString();
      ASSERT_EQ(*again, *label) << text;
    }
    if (const auto field = FieldSelector::Parse(text); field.ok()) {
      ASSERT_EQ(*FieldSelector::Parse(field->ToString()), *field) << text;
    }
  }
}

}  // namespace
}  // namespace berth::meta
