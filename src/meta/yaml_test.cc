// SPDX-License-Identifier: Apache-2.0
// Defends YAML: words and numbers mean what they mean to kubectl, hostile documents are bounded,
// what we write is what kubectl prints and reads back as it was.
#include "meta/yaml.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "meta/json.h"

namespace berth::meta {
namespace {

// What sigs.k8s.io/yaml 1.4 makes of the same texts, but for keys that stand twice.
TEST(Yaml, ScalarsMeanWhatTheyMeanToKubectl) {
  constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {"a: yes", R"({"a":true})"},
      {"a: y", R"({"a":true})"},
      {"a: N", R"({"a":false})"},
      {"a: on", R"({"a":true})"},
      {"a: Off", R"({"a":false})"},
      {"on: 1", R"({"true":1})"},
      {"1: a", R"({"1":"a"})"},
      {"0x10: a", R"({"16":"a"})"},
      {"1.5: a", R"({"1.5":"a"})"},
      {"a: 010", R"({"a":8})"},
      {"a: 0o10", R"({"a":8})"},
      {"a: 0x1F", R"({"a":31})"},
      {"a: -0x1F", R"({"a":-31})"},
      {"a: 0b11", R"({"a":3})"},
      {"a: 0b12", R"({"a":"0b12"})"},
      {"a: 08", R"({"a":8})"},
      {"a: 1_000", R"({"a":1000})"},
      {"a: _1", R"({"a":"_1"})"},
      {"a: +12", R"({"a":12})"},
      {"a: 1e3", R"({"a":1000})"},
      {"a: 1.", R"({"a":1})"},
      {"a: .5", R"({"a":0.5})"},
      {"a: 1_0.5", R"({"a":10.5})"},
      {"a: 1e400", R"({"a":"1e400"})"},
      {"a: -9223372036854775808", R"({"a":-9223372036854775808})"},
      {"a: ~", R"({"a":null})"},
      {"a:", R"({"a":null})"},
      {"a: Null", R"({"a":null})"},
      {"a: 'yes'", R"({"a":"yes"})"},
      {"a: \"1\"", R"({"a":"1"})"},
      {"a: 2026-01-01T00:00:00Z", R"({"a":"2026-01-01T00:00:00Z"})"},
      {R"(a: "\_x\N")", "{\"a\":\"\xc2\xa0x\xc2\x85\"}"},
      {R"("é\_": 1)", "{\"é\xc2\xa0\":1}"},
      {"a: 12:30:45", R"({"a":"12:30:45"})"},
      {"a: !!str 1", R"({"a":"1"})"},
      {"a: !!int '1'", R"({"a":1})"},
      {"a: !foo b", R"({"a":"b"})"},
      {"a: !!binary aGk=", R"({"a":"hi"})"},
      {"a: &x {b: 1}\nc: *x", R"({"a":{"b":1},"c":{"b":1}})"},
      {"a: &x {b: 1, d: 3}\nc:\n  <<: *x\n  d: 2", R"({"a":{"b":1,"d":3},"c":{"d":2,"b":1}})"},
      {"a: &x {b: 1}\nz: &y {b: 2, e: 1}\nc:\n  <<: [*x, *y]",
       R"({"a":{"b":1},"z":{"b":2,"e":1},"c":{"b":1,"e":1}})"},
      {"a: |\n  x\n  y\n", R"({"a":"x\ny\n"})"},
      {"a: >\n  x\n  y\n", R"({"a":"x y\n"})"},
      {"- 1\n- [2, {a: b}]", R"([1,[2,{"a":"b"}]])"},
      {"a", R"("a")"},
      {"", "null"},
      {"# only a comment\n", "null"},
      {"{\"a\": \"\\ud83d\\ude00\"}", "{\"a\":\"😀\"}"},
      {"a: b # c", R"({"a":"b"})"},
      {"a: =", R"({"a":"="})"},
      {"a: <<", R"({"a":"<<"})"},
      {"a: {}\nb: []", R"({"a":{},"b":[]})"},
  };
  for (const auto& [yaml, json] : kKnown) {
    const auto value = ParseYaml(yaml);
    ASSERT_TRUE(value.ok()) << yaml << ": " << value.status();
    EXPECT_EQ(WriteJson(*value), json) << yaml;
  }
}

TEST(Yaml, ErrorsNameLineAndColumn) {
  const std::pair<std::string, std::string_view> kCases[] = {
      {"a: 1\nb: [1, 2", "invalid YAML at line 2, column 1: end of sequence flow not found"},
      {"a: 1\na: 2", R"(invalid YAML at line 2, column 1: key "a" stands twice in this mapping)"},
      {"a:\n  b: 1\n  b: 2", R"(invalid YAML at line 3, column 3: key "b" stands twice)"},
      {"null: a", "invalid YAML at line 1, column 1: null is no key"},
      {"? [a]\n: b", "invalid YAML at line 1, column 3: a key must be a word"},
      {"a: .inf", "invalid YAML at line 1, column 4: .inf is no number in JSON"},
      {"a: *none", "invalid YAML at line 1, column 4"},
      {"a: &x [*x]", "invalid YAML at line 1, column 8: an alias to something around it"},
      {"a: 1\n\tb: 2", "invalid YAML at line 2"},
      {std::string("a: \x04 b"), "invalid YAML at line 1, column 4: control characters"},
      {"a: \xff", "invalid YAML: the text is not UTF-8"},
      {"<<: 1", "invalid YAML at line 1, column 5: << needs a mapping"},
      {"a: @b", "invalid YAML at line 1, column 4"},
  };
  for (const auto& [yaml, error] : kCases) {
    const auto value = ParseYaml(yaml);
    ASSERT_FALSE(value.ok()) << yaml;
    EXPECT_TRUE(value.status().message().starts_with(error)) << yaml << ": " << value.status();
  }
}

TEST(Yaml, HasSeveralDocuments) {
  const auto documents = ParseYamlDocuments("# top\n---\na: 1\n---\n---\nb: 2\n...\n");
  ASSERT_TRUE(documents.ok()) << documents.status();
  std::string all;
  for (const auto& document : *documents) all += WriteJson(document) + ";";
  EXPECT_EQ(all, R"({"a":1};null;{"b":2};)");
  EXPECT_FALSE(ParseYaml("a: 1\n---\nb: 2").ok());
  EXPECT_TRUE(ParseYamlDocuments("")->empty());
}

TEST(Yaml, AliasesCannotExplode) {
  std::string yaml = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) yaml += last + (k < 8 ? ", " : "]\n");
  }
  const auto value = ParseYaml(yaml);
  ASSERT_FALSE(value.ok());
  EXPECT_NE(value.status().message().find("aliases expand to more than"), std::string_view::npos);
}

TEST(Yaml, DepthAndSizeAreBounded) {
  EXPECT_FALSE(ParseYaml(std::string(100000, '[')).ok());
  EXPECT_FALSE(ParseYaml(std::string(100000, '-')).ok() &&
               !ParseYaml(std::string(100000, '-'))->is_string());
  std::string deep;
  for (int i = 0; i < 2000; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_FALSE(ParseYaml(deep).ok());
  std::string dashes;
  for (int i = 0; i < 5000; ++i) dashes += "- ";
  EXPECT_FALSE(ParseYaml(dashes).ok());
  const auto large = ParseYaml(std::string(kMaxYamlBytes + 1, ' '));
  EXPECT_TRUE(large.status().Is(Reason::kRequestTooLarge));
}

TEST(Yaml, WritesWhatKubectlPrints) {
  constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {R"({"b":1,"a":[1,{"x":1,"y":[2]},[],{}],"k10":1,"k9":1,"k2":2})",
       "a:\n- 1\n- x: 1\n  \"y\":\n  - 2\n- []\n- {}\nb: 1\nk2: 2\nk9: 1\nk10: 1\n"},
      {R"({"nest":{"l":[[1,2],[{"a":1}]]},"n":null,"t":true,"f":1.5,"e":{}})",
       "e: {}\nf: 1.5\n\"n\": null\nnest:\n  l:\n  - - 1\n    - 2\n  - - a: 1\nt: true\n"},
      {R"("x")", "x\n"},
      {R"({})", "{}\n"},
      {R"([])", "[]\n"},
  };
  for (const auto& [json, yaml] : kKnown) EXPECT_EQ(WriteYaml(*ParseJson(json)), yaml) << json;
}

// What go-yaml's emitter does with each text.
TEST(Yaml, QuotesOnlyWhereNeeded) {
  const std::pair<std::string, std::string_view> kKnown[] = {
      {"", "\"\""},
      {"true", "\"true\""},
      {"yes", "\"yes\""},
      {"y", "\"y\""},
      {"1", "\"1\""},
      {"1e3", "\"1e3\""},
      {"010", "\"010\""},
      {"null", "\"null\""},
      {"~", "\"~\""},
      {"12:30", "\"12:30\""},
      {"2026-01-01T00:00:00Z", "\"2026-01-01T00:00:00Z\""},
      {"2026-13-01", "2026-13-01"},
      {".inf", "\".inf\""},
      {"NaN", "NaN"},
      {"a: b", "'a: b'"},
      {"a #b", "'a #b'"},
      {"- x", "'- x'"},
      {"-", "'-'"},
      {"-a", "-a"},
      {"x:", "'x:'"},
      {"a:b", "a:b"},
      {":a", ":a"},
      {"@a", "'@a'"},
      {"%a", "'%a'"},
      {"*a", "'*a'"},
      {"'q'", "'''q'''"},
      {"\"q\"", "'\"q\"'"},
      {"a'b", "a'b"},
      {"{{ x }}", "'{{ x }}'"},
      {"a,b", "a,b"},
      {" lead", "' lead'"},
      {"trail ", "'trail '"},
      {"a\tb", "\"a\\tb\""},
      {"---", "'---'"},
      {"10.0.0.1", "10.0.0.1"},
      {"500m", "500m"},
      {"1Gi", "1Gi"},
      {"\\", "\\"},
      {"é", "é"},
      {"a\nb", "|-\n  a\n  b"},
      {"a\n", "|\n  a"},
      {"a\n\n", "|+\n  a\n"},
      {"\n", "|2+\n"},
      {"  a\nb", "|2-\n    a\n  b"},
      {"x\n\ny", "|-\n  x\n\n  y"},
      {"a \nb", "\"a \\nb\""},
      {"a\n\tb", "\"a\\n\\tb\""},
      {"a\r\nb", "\"a\\r\\nb\""},
      {"\x01", "\"\\u0001\""},
  };
  for (const auto& [text, written] : kKnown) {
    Value value = Value::Object();
    value.Set("s", text);
    EXPECT_EQ(WriteYaml(value), "s: " + std::string(written) + "\n");
  }
  Value value = Value::Object();
  std::string words = "word";
  for (int i = 0; i < 39; ++i) words += " word";
  value.Set("s", words);
  EXPECT_EQ(WriteYaml(value).find('\n'), 82U);
  EXPECT_EQ(*ParseYaml(WriteYaml(value)), value);
}

Value RandomValue(Random& random, int depth) {
  constexpr std::string_view kAlphabet = "ab01 :-#'\"\n,[]{}&*!|>%@`~.?\\\t=<éy";
  const auto text = [&] {
    std::string out;
    for (uint64_t n = random.Below(8); n > 0; --n) {
      const size_t at = random.Below(kAlphabet.size());
      const auto byte = static_cast<uint8_t>(kAlphabet[at]);
      out += byte >= 0x80 ? "é" : std::string(1, kAlphabet[at]);
    }
    return out;
  };
  switch (random.Below(depth > 3 ? 5 : 7)) {
    case 0: return {};
    case 1: return random.Chance(0.5);
    case 2: return random.Between(-100000, 100000);
    case 3: return static_cast<double>(random.Between(-1000, 1000)) / 7.0;
    case 4: return text();
    case 5: {
      Value array = Value::Array();
      for (uint64_t n = random.Below(4); n > 0; --n) array.Append(RandomValue(random, depth + 1));
      return array;
    }
    default: {
      Value object = Value::Object();
      for (uint64_t n = random.Below(4); n > 0; --n)
        object.Set(text(), RandomValue(random, depth + 1));
      return object;
    }
  }
}

TEST(Yaml, RandomTreesSurviveWritingAndReading) {
  Random random(31);
  for (int i = 0; i < 5000; ++i) {
    const Value value = RandomValue(random, 0);
    const std::string yaml = WriteYaml(value);
    const auto again = ParseYaml(yaml);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << yaml << "\n" << WriteJson(value);
    ASSERT_EQ(*again, value) << yaml << "\n" << WriteJson(value) << "\n" << WriteJson(*again);
  }
}

TEST(Yaml, MutatedTextsNeverCrash) {
  Random random(37);
  const std::string good =
      "apiVersion: v1\nkind: Machine # c\nmetadata:\n  name: &n web-1\n  labels: {app: *n, 'x y': "
      "\"z\"}\n"
      "spec:\n  volumes:\n  - name: root\n    size: 10Gi\n  - {name: b, <<: &m {q: 1}}\n  text: "
      "|2-\n    a\n\n   b\n"
      "  fold: >+\n    c\n    d\n---\n? k\n: - 1\n  - !!str 2\n...\n";
  for (int i = 0; i < 3000; ++i) {
    std::string yaml = good;
    for (uint64_t n = 1 + random.Below(5); n > 0; --n) {
      const size_t at = random.Below(yaml.size());
      switch (random.Below(4)) {
        case 0: yaml[at] = static_cast<char>(random.Next()); break;
        case 1: yaml.erase(at, 1 + random.Below(6)); break;
        case 2: yaml.insert(at, yaml.substr(random.Below(yaml.size()), random.Below(20))); break;
        default: yaml[at] = ":-{}[]&*!|>?\n \"'#,%"[random.Below(19)];
      }
      if (yaml.empty()) yaml = "x";
    }
    const auto documents = ParseYamlDocuments(yaml);
    if (!documents.ok()) {
      ASSERT_TRUE(documents.status().message().starts_with("invalid YAML")) << documents.status();
      continue;
    }
    for (const auto& document : *documents) {
      ASSERT_EQ(*ParseYaml(WriteYaml(document)), document) << yaml;
    }
  }
}

}  // namespace
}  // namespace berth::meta
