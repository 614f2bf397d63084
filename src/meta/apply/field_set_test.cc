// SPDX-License-Identifier: Apache-2.0
#include "meta/apply/field_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "meta/apply/fields_v1.h"
#include "meta/json.h"

namespace berth::meta {
namespace {

Value Json(std::string_view text) {
  auto value = ParseJson(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *std::move(value) : Value();
}

using Paths = std::set<PathElements>;

Paths PathsOf(const FieldSet& set) {
  Paths paths;
  set.ForEach([&](const PathElements& path) { paths.insert(path); });
  return paths;
}

FieldSet RandomSet(Random& random) {
  FieldSet set;
  for (uint64_t n = random.Below(8); n > 0; --n) {
    PathElements path;
    for (uint64_t depth = 1 + random.Below(4); depth > 0; --depth) {
      constexpr std::string_view kElements[] = {"f:a", "f:b", R"(k:{"name":"x"})", "v:1", "i:0"};
      path.emplace_back(kElements[random.Below(std::size(kElements))]);
    }
    set.Insert(path);
  }
  return set;
}

TEST(FieldSet, BehavesAsASetOfPaths) {
  Random random(7);
  for (int i = 0; i < 400; ++i) {
    const FieldSet a = RandomSet(random);
    const FieldSet b = RandomSet(random);
    const Paths left = PathsOf(a);
    const Paths right = PathsOf(b);
    Paths expected;
    std::ranges::set_union(left, right, std::inserter(expected, expected.end()));
    FieldSet both = a;
    both.Unite(b);
    ASSERT_EQ(PathsOf(both), expected);
    ASSERT_EQ(both.size(), expected.size());

    expected.clear();
    std::ranges::set_difference(left, right, std::inserter(expected, expected.end()));
    FieldSet rest = a;
    rest.Subtract(b);
    ASSERT_EQ(PathsOf(rest), expected);
    ASSERT_EQ(rest.empty(), expected.empty());

    expected.clear();
    std::ranges::set_intersection(left, right, std::inserter(expected, expected.end()));
    ASSERT_EQ(PathsOf(a.Intersection(b)), expected);
    ASSERT_EQ(a.Intersection(b), b.Intersection(a));
    ASSERT_EQ(a == b, left == right);
    for (const PathElements& path : left) ASSERT_TRUE(a.Contains(path));
  }
}

TEST(FieldSet, PathsReadAsInKubernetes) {
  EXPECT_EQ(PathText({"f:spec", "f:volumes", R"(k:{"name":"root"})", "f:device"}),
            R"(.spec.volumes[name="root"].device)");
  EXPECT_EQ(PathText({"f:ports", R"(k:{"port":80,"protocol":"TCP"})"}),
            R"(.ports[port=80,protocol="TCP"])");
  EXPECT_EQ(PathText({"f:finalizers", R"(v:"a/b")"}), R"(.finalizers[="a/b"])");
  EXPECT_EQ(PathText({"f:list", "i:3"}), ".list[3]");
}

TEST(FieldsV1, ARoundTripChangesNothing) {
  Random random(11);
  for (int i = 0; i < 400; ++i) {
    const FieldSet set = RandomSet(random);
    const Value written = WriteFieldsV1(set);
    const auto read = ReadFieldsV1(Json(WriteJson(written)));
    ASSERT_TRUE(read.ok()) << read.status() << WriteJson(written);
    ASSERT_EQ(*read, set) << WriteJson(written);
  }
}

TEST(FieldsV1, HasKubernetesForm) {
  FieldSet set;
  set.Insert({"f:spec", "f:volumes", R"(k:{"name":"root"})"});
  set.Insert({"f:spec", "f:volumes", R"(k:{"name":"root"})", "f:device"});
  set.Insert({"f:spec", "f:power"});
  set.Insert({"f:metadata", "f:finalizers", R"(v:"x")"});
  EXPECT_EQ(WriteJson(WriteFieldsV1(set)),
            R"({"f:metadata":{"f:finalizers":{"v:\"x\"":{}}},"f:spec":{"f:power":{},"f:volumes":)"
            R"({"k:{\"name\":\"root\"}":{".":{},"f:device":{}}}}})");
}

TEST(FieldsV1, ElementsOfOthersBecomeCanonical) {
  const auto set = ReadFieldsV1(Json(R"({"k:{ \"b\": 1.0, \"a\":\"x\" }":{},"v: 7":{".":{}}})"));
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_TRUE(set->Contains({R"(k:{"a":"x","b":1})"})) << WriteJson(WriteFieldsV1(*set));
  EXPECT_TRUE(set->Contains({"v:7"}));
}

TEST(FieldsV1, WhatIsNoSetIsRefused) {
  for (const std::string_view text : {R"([])",
                                      R"("f:a")",
                                      R"({"f:a":1})",
                                      R"({"f:a":{"b":{}}})",
                                      R"({"":{}})",
                                      R"({"k:":{}})",
                                      R"({"k:{}":{}})",
                                      R"({"k:[1]":{}})",
                                      R"({"k:{\"a\":{}}":{}})",
                                      R"({"v:{}":{}})",
                                      R"({"v:":{}})",
                                      R"({"i:x":{}})",
                                      R"({"i:-1":{}})",
                                      R"({"x:y":{}})"}) {
    const auto set = ReadFieldsV1(Json(text));
    EXPECT_TRUE(set.status().Is(Reason::kBadRequest)) << text;
  }
}

TEST(FieldsV1, HostileInputIsBounded) {
  std::string wide = "{";
  for (size_t i = 0; i <= kMaxOwnedFields; ++i) {
    wide += (i == 0 ? "\"f:" : ",\"f:") + std::to_string(i) + "\":{}";
  }
  EXPECT_TRUE(ReadFieldsV1(Json(wide + "}")).status().Is(Reason::kBadRequest));
  std::string deep;
  for (size_t i = 0; i + 2 < kMaxJsonDepth; ++i) deep += R"({"f:a":)";
  deep += "{}" + std::string(kMaxJsonDepth - 2, '}');
  const auto set = ReadFieldsV1(Json(deep));
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->size(), 1);
}

}  // namespace
}  // namespace berth::meta
