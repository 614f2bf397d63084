// SPDX-License-Identifier: Apache-2.0
// Defends JSONPath templates as kubectl evaluates them, and the text of `explain`.
#include "meta/jsonpath.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "meta/explain.h"
#include "meta/json.h"
#include "meta/test_kind.h"

namespace berth::meta {
namespace {

constexpr std::string_view kDocument =
    R"({"kind":"List","items":[{"metadata":{"name":"a","labels":{"example.com/app":"web"}},"n":1,"on":true,)"
    R"("status":{"phase":"Running"}},{"metadata":{"name":"b"},"n":5,"status":{"phase":"Pending"}},)"
    R"({"metadata":{"name":"c"},"n":10,"list":[1,2,3,4]}],"wanted":"Pending"})";

std::string Render(std::string_view text) {
  const auto path = JsonPath::Parse(text);
  if (!path.ok()) return "!" + std::string(path.status().message());
  const auto out = path->Render(*ParseJson(kDocument));
  return out.ok() ? *out : "!" + std::string(out.status().message());
}

TEST(JsonPath, RendersAsKubectl) {
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {
      {"plain", "plain"},
      {"{.kind}", "List"},
      {"{$.kind}", "List"},
      {"{.items[*].metadata.name}", "a b c"},
      {"{.items[0].metadata.name}", "a"},
      {"{.items[-1].metadata.name}", "c"},
      {"{.items[0:2].metadata.name}", "a b"},
      {"{.items[1:].metadata.name}", "b c"},
      {"{.items[:-1].metadata.name}", "a b"},
      {"{.items[::2].metadata.name}", "a c"},
      {"{.items[0,2].metadata.name}", "a c"},
      {"{.items[9].metadata.name}", ""},
      {"{.none.at.all}", ""},
      {"{.items[*]['n','on']}", "1 true 5 10"},
      {"{.items[0].metadata.labels.example\\.com/app}", "web"},
      {"{.items[0].metadata.labels['example.com/app']}", "web"},
      {"{.items[2].list}", "[1,2,3,4]"},
      {"{.items[0].status}", R"({"phase":"Running"})"},
      {"{..name}", "a b c"},
      {"{.items[?(@.status.phase==\"Running\")].metadata.name}", "a"},
      {"{.items[?(@.status.phase!='Running')].metadata.name}", "b"},
      {"{.items[?(@.n>=5)].metadata.name}", "b c"},
      {"{.items[?(@.n < 5)].metadata.name}", "a"},
      {"{.items[?(@.on)].metadata.name}", "a"},
      {"{.items[?(@.on==true)].metadata.name}", "a"},
      {"{.items[?(@.status.phase==$.wanted)].metadata.name}", "b"},
      {"{range .items[*]}{.metadata.name}={.n}{\"\\n\"}{end}", "a=1\nb=5\nc=10\n"},
      {"{range .items[*]}[{.metadata.name}, {.status.phase}] {end}",
       "[a, Running] [b, Pending] [c, ] "},
      {"{range .items[2].list[*]}{@},{end}", "1,2,3,4,"},
      {"{.kind}{'\\t'}{.wanted}", "List\tPending"},
      {"{.items[*].status.*}", "Running Pending"},
      {"{@.kind}", "List"},
  };
  for (const auto& [text, expected] : kCases) EXPECT_EQ(Render(text), expected) << text;
}

TEST(JsonPath, ErrorsNameThePlace) {
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {
      {"{.a", "!invalid JSONPath at character 4: unclosed '{'"},
      {"{.a[}", "!invalid JSONPath at character 5: expected an index"},
      {"{.a[0}", "!invalid JSONPath at character 6: expected ']'"},
      {"{.a['x}", "!invalid JSONPath at character 8: unterminated text"},
      {"{end}", "!invalid JSONPath at character 5: {end} without {range}"},
      {"{range .a}x", "!invalid JSONPath at character 12: {range} without {end}"},
      {"{.a[?(@.b==)]}", "!invalid JSONPath at character 12: expected a path, a number"},
      {"{a}", "!invalid JSONPath at character 2: expected a path"},
      {"{.a[::0]}", "!invalid JSONPath at character 8: the step of a slice must be positive"},
  };
  for (const auto& [text, error] : kCases)
    EXPECT_TRUE(Render(text).starts_with(error)) << Render(text);
}

TEST(JsonPath, RelaxedFormsAreUnderstood) {
  const Value document = *ParseJson(kDocument);
  for (const std::string_view text : {"kind", ".kind", "{.kind}", "$.kind"}) {
    const auto found = JsonPath::ParseRelaxed(text)->Find(document);
    ASSERT_EQ(found->size(), 1U) << text;
    EXPECT_EQ((*found)[0]->as_string(), "List");
  }
}

TEST(JsonPath, RandomTemplatesNeverCrash) {
  Random random(47);
  const Value document = *ParseJson(kDocument);
  constexpr std::string_view kPieces[] = {
      "{",  "}", ".",   "..", "[", "]", "*",  "items", "metadata", "name",   "?(",  ")", "@", "$",
      "==", "<", "'x'", "\"", "'", "0", "-1", ":",     ",",        "range ", "end", " ", "\\"};
  for (int i = 0; i < 40000; ++i) {
    std::string text = "{";
    for (uint64_t n = random.Below(14); n > 0; --n)
      text += kPieces[random.Below(std::size(kPieces))];
    if (random.Chance(0.7)) text += '}';
    const auto path = JsonPath::Parse(text);
    if (!path.ok()) continue;
    const auto out = path->Render(document);
    if (!out.ok()) {
      ASSERT_TRUE(out.status().Is(Reason::kBadRequest));
    }
  }
}

TEST(JsonPath, ManyDescentsAreBounded) {
  Value deep = Value::Object();
  for (int i = 0; i < 60; ++i) {
    Value outer = Value::Object();
    outer.Set("a", deep);
    outer.Set("b", Value::Array({1, 2, 3}));
    deep = std::move(outer);
  }
  std::string text = "{";
  for (int i = 0; i < 12; ++i) text += "..[*]";
  text += "}";
  const auto path = JsonPath::Parse(text);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_FALSE(path->Render(deep).ok());
}

TEST(Explain, ShowsAKindInKubectlsLayout) {
  const auto text = *Explain(testing::kWidget, "test.ironcore.dev", "", ExplainDepth::kFields);
  EXPECT_TRUE(
      text.starts_with("GROUP:      test.ironcore.dev\nKIND:       Widget\nVERSION:    v1\n\n"
                       "DESCRIPTION:\n    A widget has one of everything.\n\nFIELDS:\n"
                       "  apiVersion\t<string>\n"))
      << text;
  EXPECT_NE(text.find("  spec\t<WidgetSpec>\n    What it should be.\n\n"), std::string::npos)
      << text;
}

TEST(Explain, ShowsAField) {
  const auto text = *Explain(testing::kWidget, "g", "spec.disks", ExplainDepth::kFields);
  EXPECT_NE(
      text.find("FIELD: disks <[]Disk>\n\nDESCRIPTION:\n    Its disks.\n    A disk.\n\nFIELDS:\n"
                "  name\t<string> -required-\n    Unique name.\n\n"
                "  size\t<Quantity>\n    How large it is.\n\n"),
      std::string::npos)
      << text;
  EXPECT_NE(
      Explain(testing::kWidget, "g", "spec.power", ExplainDepth::kFields)->find("enum: On, Off"),
      std::string::npos);
  EXPECT_TRUE(Explain(testing::kWidget, "", "kind", ExplainDepth::kFields).ok());
}

TEST(Explain, Recursively) {
  const auto text = *Explain(testing::kWidget, "g", "spec", ExplainDepth::kRecursive);
  EXPECT_NE(text.find("  disks\t<[]Disk>\n    name\t<string> -required-\n    size\t<Quantity>\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  policy\t<string>\n  priority\t<integer>\n"), std::string::npos) << text;
}

TEST(Explain, NamesWhatDoesNotExist) {
  const auto missing = Explain(testing::kWidget, "g", "spec.disk", ExplainDepth::kFields);
  ASSERT_FALSE(missing.ok());
  EXPECT_TRUE(missing.status().Is(Reason::kNotFound));
  EXPECT_EQ(missing.status().message(),
            R"(field "disk" does not exist in "spec.disk", did you mean "disks"?)");
  EXPECT_FALSE(Explain(testing::kWidget, "g", "spec.power.x", ExplainDepth::kFields).ok());
}

}  // namespace
}  // namespace berth::meta
