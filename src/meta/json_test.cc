// SPDX-License-Identifier: Apache-2.0
// Defends reading and writing JSON: every type both ways, where an error is and why, unknown and
// duplicate fields, and that no bytes crash it.
#include "meta/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "base/strings.h"
#include "meta/object_meta.h"
#include "meta/reflect.h"
#include "meta/test_kind.h"

namespace berth::meta {
namespace {

using testing::Widget;

constexpr std::string_view kFull =
    R"({"metadata":{"name":"a","namespace":"default","uid":"u","generation":3,)"
    R"("creationTimestamp":"2026-08-22T10:00:00Z","labels":{"app":"web","tier":"x"},)"
    R"("ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"o","controller":true}],)"
    R"("finalizers":["example.com/f"]},"spec":{"power":"On","poolRef":{"name":"p"},)"
    R"("disks":[{"name":"root","size":"10Gi","volumeRef":{"name":"v"}},{"name":"b"}],)"
    R"("policy":"spread","priority":7,"resources":{"cpu":"500m","memory":"1Gi"},)"
    R"("ips":["10.0.0.1","2001:db8::1"],"prefix":"10.0.0.0/24","replicas":0,)"
    R"("selector":{"matchLabels":{"app":"web"}},"port":"http","data":{"k":"AAE="},)"
    R"("extra":{"any":[1,2.5,null,"x"]},"ratio":0.25,"tags":["a","b"]},)"
    R"("status":{"state":"Ready","seen":"2026-08-22T10:00:00.123456Z","since":"2026-08-22T10:00:00Z",)"
    R"("observedGeneration":3}})";

Widget Full() {
  auto decoded = DecodeJsonAs<Widget>(kFull, {.field_validation = FieldValidation::kStrict});
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return *std::move(decoded);
}

std::string ErrorOf(std::string_view json) {
  const auto decoded = DecodeJsonAs<Widget>(json);
  return decoded.ok() ? "" : std::string(decoded.status().message());
}

TEST(Json, EveryTypeSurvivesBothWays) {
  const Widget widget = Full();
  EXPECT_EQ(widget.spec.disks[0].size->ToString(), "10Gi");
  EXPECT_EQ(widget.spec.placement.priority, 7);
  EXPECT_EQ(widget.spec.data.at("k").bytes, std::string("\0\1", 2));
  EXPECT_EQ(widget.spec.replicas, 0);
  EXPECT_EQ(widget.status.seen.time.micros() % 1000000, 123456);
  EXPECT_EQ(EncodeJsonOf(widget), kFull);
}

TEST(Json, ValuesAndStructsTellTheSame) {
  const Widget widget = Full();
  const Value tree = ToValueOf(widget);
  EXPECT_EQ(tree, *ParseJson(kFull));
  EXPECT_EQ(WriteJson(tree), kFull);
  const auto again = FromValueAs<Widget>(tree, {.field_validation = FieldValidation::kStrict});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(DeepEqual(TypeInfoOf<Widget>(), &widget, &*again));
}

TEST(Json, RawJsonIsItsCompactText) {
  const auto read = DecodeJsonAs<ManagedFieldsEntry>(
      R"({"manager":"m", "fieldsV1": { "f:a" : {"v:\"\\n\"": {}}, "f:b":[1, 2.5, -3, null, true] }})");
  ASSERT_TRUE(read.ok()) << read.status();
  const std::string text = R"({"f:a":{"v:\"\\n\"":{}},"f:b":[1,2.5,-3,null,true]})";
  EXPECT_EQ(read->fields_v1.text, text);
  EXPECT_EQ(EncodeJsonOf(*read), R"({"manager":"m","fieldsV1":)" + text + "}");
  const Value tree = ToValueOf(*read);
  EXPECT_EQ(*tree.Find("fieldsV1"), *ParseJson(text));
  EXPECT_EQ(*FromValueAs<ManagedFieldsEntry>(tree), *read);
  const auto absent = DecodeJsonAs<ManagedFieldsEntry>(R"({"manager":"m","fieldsV1":null})");
  EXPECT_EQ(EncodeJsonOf(*absent), R"({"manager":"m"})");
  EXPECT_EQ(ToValueOf(*absent).Find("fieldsV1"), nullptr);
}

TEST(Json, LeavesOutWhatIsEmptyButNotWhatIsRequiredNorTheStatus) {
  Widget widget;
  EXPECT_EQ(EncodeJsonOf(widget), R"({"status":{}})");
  EXPECT_EQ(ToValue(TypeInfoOf<Widget>(), &widget), *ParseJson(R"({"status":{}})"));
  widget.spec.disks.emplace_back();
  widget.spec.pool_ref.emplace();
  EXPECT_EQ(EncodeJsonOf(widget), R"({"spec":{"poolRef":{},"disks":[{"name":""}]},"status":{}})");
}

TEST(Json, NullMeansAbsentEverywhere) {
  const auto widget = DecodeJsonAs<Widget>(
      R"({"metadata":{"creationTimestamp":null,"labels":null},"spec":{"power":null,"poolRef":null,)"
      R"("disks":null,"resources":{"cpu":null},"replicas":null,"port":null},"status":null})");
  ASSERT_TRUE(widget.ok()) << widget.status();
  EXPECT_FALSE(widget->spec.pool_ref.has_value());
  EXPECT_TRUE(widget->metadata.creation_timestamp.is_zero());
  EXPECT_TRUE(widget->spec.resources.at("cpu").IsZero());
}

TEST(Json, QuantitiesMayBeNumbers) {
  const auto widget = DecodeJsonAs<Widget>(
      R"({"spec":{"resources":{"a":4,"b":0.5,"c":18446744073709551615,"d":1e3,"e":" 2 "}}})");
  ASSERT_TRUE(widget.ok()) << widget.status();
  EXPECT_EQ(widget->spec.resources.at("a").ToString(), "4");
  EXPECT_EQ(widget->spec.resources.at("b").ToString(), "500m");
  EXPECT_EQ(widget->spec.resources.at("c").ToString(), "18446744073709551615");
  EXPECT_EQ(widget->spec.resources.at("d").ToString(), "1k");
  EXPECT_EQ(widget->spec.resources.at("e").ToString(), "2");
}

TEST(Json, TypeErrorsNameThePathAndBothTypes) {
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {
      {R"({"spec":{"power":1}})", "spec.power: expected a string, got a number"},
      {R"({"spec":[]})", "spec: expected an object, got a list"},
      {R"([])", "expected an object, got a list"},
      {R"(null)", "expected an object, got null"},
      {R"({"spec":{"disks":{}}})", "spec.disks: expected a list, got an object"},
      {R"({"spec":{"disks":[{},{"size":true}]}})",
       "spec.disks[1].size: expected a quantity, got a boolean"},
      {R"({"spec":{"priority":"7"}})", "spec.priority: expected an integer, got a string"},
      {R"({"spec":{"priority":1.5}})", "spec.priority: expected an integer of 64 bits, got 1.5"},
      {R"({"spec":{"priority":3000000000}})",
       "spec.priority: expected an integer of 32 bits, got 3000000000"},
      {R"({"spec":{"port":1.5}})", "spec.port: expected an integer or a string, got a number"},
      {R"({"spec":{"resources":{"cpu":"x"}}})",
       "spec.resources[cpu]: quantities must match the regular expression "
       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
      {R"({"spec":{"ips":["10.0.0.256"]}})",
       R"(spec.ips[0]: expected an IP address, got "10.0.0.256")"},
      {R"({"spec":{"prefix":"x"}})", R"(spec.prefix: expected an IP prefix, got "x")"},
      {R"({"spec":{"data":{"k":"?"}}})", "spec.data[k]: expected base64"},
      {R"({"status":{"since":"now"}})", R"(status.since: expected an RFC 3339 time, got "now")"},
  };
  for (const auto& [json, error] : kCases) EXPECT_EQ(ErrorOf(json), error) << json;
}

TEST(Json, SyntaxErrorsNameTheByte) {
  const std::pair<std::string, std::string_view> kCases[] = {
      {"", "invalid JSON at byte 0: unexpected end"},
      {"{", "invalid JSON at byte 1: unexpected end"},
      {"{]", "invalid JSON at byte 1: expected a key in quotes"},
      {R"({"a" 1})", "invalid JSON at byte 5: expected ':' behind a key"},
      {R"({"a":1 "b"})", "invalid JSON at byte 7: expected ',' or '}'"},
      {R"([1,])", "invalid JSON at byte 3: expected a value"},
      {R"({} x)", "invalid JSON at byte 3: unexpected text behind the value"},
      {R"({"a":tru})", "invalid JSON at byte 5: expected a value"},
      {R"([01])", "invalid JSON at byte 1: a number must not begin with 0"},
      {R"([1.])", "invalid JSON at byte 3: expected a digit"},
      {R"([123456789012345678901234567890])", "invalid JSON at byte 1: the number is out of range"},
      {R"([1e999])", "invalid JSON at byte 1: the number is out of range"},
      {R"(["\ud800"])", "invalid JSON at byte 2: half a surrogate pair"},
      {R"(["\udc00"])", "invalid JSON at byte 2: half a surrogate pair"},
      {R"(["\ud800\u0041"])", "invalid JSON at byte 2: half a surrogate pair"},
      {R"(["\x"])", "invalid JSON at byte 2: unknown escape in a string"},
      {"[\"\xff\"]", "invalid JSON at byte 2: invalid UTF-8"},
      {"[\"a\nb\"]", "invalid JSON at byte 3: a control character inside a string"},
      {"[\"abc", "invalid JSON at byte 5: unexpected end"},
      {std::string(300, '['), "invalid JSON at byte 256: nested deeper than 256 levels"},
  };
  for (const auto& [json, error] : kCases)
    EXPECT_EQ(ParseJson(json).status().message(), error) << json;
}

TEST(Json, RefusesWhatIsTooLarge) {
  const auto parsed = ParseJson("[1,2,3]", 4);
  ASSERT_FALSE(parsed.ok());
  EXPECT_TRUE(parsed.status().Is(Reason::kRequestTooLarge));
}

TEST(Json, ReportsUnknownAndDuplicateFieldsWithTheirPaths) {
  constexpr std::string_view kJson =
      R"({"spec":{"foo":1,"power":"On","power":"Off","disks":[{"name":"a","nam":1}],)"
      R"("resources":{"cpu":"1","cpu":"2"},"Power":"x","policy":"a","policy":"b"},"x":{"y":1}})";
  Widget widget;
  EXPECT_TRUE(DecodeJson(kJson, TypeInfoOf<Widget>(), &widget).ok());
  EXPECT_EQ(widget.spec.power, "Off");
  EXPECT_EQ(widget.spec.resources.at("cpu").ToString(), "2");
  EXPECT_EQ(widget.spec.placement.policy, "b");

  std::vector<std::string> warnings;
  Widget warned;
  EXPECT_TRUE(DecodeJson(kJson,
                         TypeInfoOf<Widget>(),
                         &warned,
                         {.field_validation = FieldValidation::kWarn},
                         &warnings)
                  .ok());
  const std::vector<std::string> expected = {R"(unknown field "spec.foo")",
                                             R"(duplicate field "spec.power")",
                                             R"(unknown field "spec.disks[0].nam")",
                                             R"(duplicate field "spec.resources[cpu]")",
                                             R"(unknown field "spec.Power")",
                                             R"(duplicate field "spec.policy")",
                                             R"(unknown field "x")"};
  EXPECT_EQ(warnings, expected);

  Widget strict;
  const auto status = DecodeJson(
      kJson, TypeInfoOf<Widget>(), &strict, {.field_validation = FieldValidation::kStrict});
  EXPECT_EQ(status.message(), "strict decoding error: " + Join(expected, ", "));
  EXPECT_TRUE(status.Is(Reason::kBadRequest));
}

TEST(Json, KnowsApiVersionAndKindOnTheTopLevelOnly) {
  TypeMeta type_meta;
  const DecodeOptions options{.field_validation = FieldValidation::kStrict,
                              .type_meta = &type_meta};
  EXPECT_TRUE(DecodeJsonAs<Widget>(R"({"apiVersion":"test/v1","kind":"Widget"})", options).ok());
  EXPECT_EQ(type_meta, (TypeMeta{"test/v1", "Widget"}));
  EXPECT_FALSE(DecodeJsonAs<Widget>(R"({"spec":{"kind":"Widget"}})", options).ok());
  EXPECT_FALSE(DecodeJsonAs<Widget>(R"({"kind":"a","kind":"b"})", options).ok());
  EXPECT_FALSE(DecodeJsonAs<Widget>(R"({"kind":1})", options).ok());
}

TEST(Json, ParsingKeepsTheLastOfDuplicateKeysEvenAmongMany) {
  std::string json = "{";
  for (int i = 0; i < 1000; ++i)
    json += "\"k" + std::to_string(i % 500) + "\":" + std::to_string(i) + ",";
  json.back() = '}';
  const auto value = ParseJson(json);
  ASSERT_TRUE(value.ok()) << value.status();
  ASSERT_EQ(value->members().size(), 500U);
  for (int i = 0; i < 500; ++i)
    EXPECT_EQ(value->members()[static_cast<size_t>(i)].value.as_int(), i + 500);
  EXPECT_EQ(WriteJson(*ParseJson(R"({"a":1,"b":2,"a":3})")), R"({"a":3,"b":2})");
}

TEST(Json, WritesStringsThatAnyReaderTakes) {
  std::string out;
  AppendJsonString("a\"\\\n\r\t\b\f\x01\x7f", out);
  EXPECT_EQ(out,
            R"("a\"\\\n\r\t\b\f\u0001)"
            "\x7f\"");
  out.clear();
  AppendJsonString("ä€😀\xff\xc3(\xed\xa0\x80", out);
  EXPECT_TRUE(IsValidUtf8(out));
  EXPECT_TRUE(out.starts_with("\"ä€😀\uFFFD\uFFFD("));
  EXPECT_TRUE(ParseJson(out).ok());
}

TEST(Json, EveryStringSurvivesWritingAndReading) {
  Random random(53);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (uint64_t n = random.Below(40); n > 0; --n) {
      text += random.Chance(0.9) ? 'a' : static_cast<char>(random.Below(128));
    }
    // A small string inside a larger buffer: growth must not bring in what lay there.
    std::string out = "[";
    AppendJsonString(text, out);
    out += ']';
    const auto parsed = ParseJson(out);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_EQ(parsed->items()[0].as_string(), text);
  }
}

TEST(Json, WritesNumbersAsGoDoes) {
  const std::pair<double, std::string_view> kCases[] = {
      {0.0, "0"},
      {-0.0, "0"},
      {1.5, "1.5"},
      {100, "100"},
      {1e19, "10000000000000000000"},
      {-1e18, "-1000000000000000000"},
      {-1e19, "-1e+19"},
      {1e20, "1e+20"},
      {1e21, "1e+21"},
      {1e-6, "0.000001"},
      {1e-7, "1e-7"},
      {-0.25, "-0.25"},
      {1e100, "1e+100"},
      {1.5e-10, "1.5e-10"},
      {NAN, "null"},
      {std::numeric_limits<double>::infinity(), "null"},
  };
  for (const auto& [value, text] : kCases) EXPECT_EQ(WriteJson(Value(value)), text);
  EXPECT_EQ(WriteJson(Value(std::numeric_limits<int64_t>::min())), "-9223372036854775808");
  EXPECT_EQ(ParseJson("[9223372036854775807]")->items()[0].as_int(),
            std::numeric_limits<int64_t>::max());
}

TEST(Json, PrintsPrettyAsKubectl) {
  EXPECT_EQ(
      WriteJsonPretty(*ParseJson(R"({"b":[1,{}],"a":{"x":null},"c":[]})")),
      "{\n    \"a\": {\n        \"x\": null\n    },\n    \"b\": [\n        1,\n        {}\n    ],\n"
      "    \"c\": []\n}");
}

TEST(Json, MutatedTextsNeverCrashAndAgreeWithTheSlowLook) {
  Random random(17);
  for (int i = 0; i < 8000; ++i) {
    std::string json(kFull);
    for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
      const size_t at = random.Below(json.size());
      switch (random.Below(4)) {
        case 0: json[at] = static_cast<char>(random.Next()); break;
        case 1: json.erase(at, 1 + random.Below(8)); break;
        case 2: json.insert(at, json.substr(random.Below(json.size()), random.Below(20))); break;
        default: json[at] = "{}[],:\"\\0n"[random.Below(10)];
      }
      if (json.empty()) json = "x";
    }
    Widget widget;
    const auto status = DecodeJson(
        json, TypeInfoOf<Widget>(), &widget, {.field_validation = FieldValidation::kStrict});
    const auto parsed = ParseJson(json);
    if (!parsed.ok()) {
      ASSERT_FALSE(status.ok()) << json;
      // Every refusal has a reason of our own, which names a byte.
      ASSERT_TRUE(parsed.status().message().starts_with("invalid JSON at byte")) << parsed.status();
      continue;
    }
    ASSERT_EQ(*ParseJson(WriteJson(*parsed)), *parsed) << json;
    const std::string encoded = EncodeJsonOf(widget);
    ASSERT_TRUE(DecodeJsonAs<Widget>(encoded, {.field_validation = FieldValidation::kStrict}).ok())
        << encoded;
  }
}

TEST(Reflect, ReadsPaths) {
  const Widget widget = Full();
  const auto& type = TypeInfoOf<Widget>();
  EXPECT_EQ(GetString(type, &widget, "spec.poolRef.name"), "p");
  EXPECT_EQ(GetString(type, &widget, "metadata.name"), "a");
  EXPECT_EQ(GetString(type, &widget, "metadata.labels.app"), "web");
  EXPECT_EQ(GetString(type, &widget, "spec.policy"), "spread");
  EXPECT_EQ(GetString(type, &widget, "spec.priority"), "7");
  EXPECT_EQ(GetString(type, &widget, "spec.resources.cpu"), "500m");
  EXPECT_EQ(GetString(type, &widget, "spec.none"), std::nullopt);
  EXPECT_EQ(GetString(type, &widget, "spec"), std::nullopt);
  EXPECT_EQ(GetString(type, &widget, "spec.power.x"), std::nullopt);
  Widget empty;
  EXPECT_EQ(GetString(type, &empty, "spec.poolRef.name"), std::nullopt);
  EXPECT_TRUE(HasPath(type, "spec.poolRef.name"));
  EXPECT_TRUE(HasPath(type, "metadata.labels.example.com/x"));
  EXPECT_FALSE(HasPath(type, "spec.poolRef.nam"));
  EXPECT_FALSE(HasPath(type, "spec.power.x"));
}

TEST(Reflect, EveryFieldTakesPartInEquality) {
  const Widget widget = Full();
  const auto& type = TypeInfoOf<Widget>();
  EXPECT_TRUE(DeepEqual(type, &widget, &widget));
  const Value tree = ToValueOf(widget);
  for (const char* part : {"spec", "status", "metadata"}) {
    for (const auto& member : tree.Find(part)->members()) {
      Value changed = tree;
      changed.Find(part)->Remove(member.key);
      const auto other = FromValueAs<Widget>(changed);
      ASSERT_TRUE(other.ok());
      EXPECT_FALSE(DeepEqual(type, &widget, &*other)) << part << "." << member.key;
      EXPECT_FALSE(DeepEqual(type, &*other, &widget)) << part << "." << member.key;
    }
  }
}

}  // namespace
}  // namespace berth::meta
