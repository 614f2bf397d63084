// SPDX-License-Identifier: Apache-2.0
// Defends the three kinds of patches and the three-way merge: their rules, their bounds, and that
// no patch crashes them.
#include "meta/patch/patch.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "meta/json.h"
#include "meta/test_kind.h"

namespace berth::meta {
namespace {

Value Json(std::string_view text) {
  auto value = ParseJson(text);
  EXPECT_TRUE(value.ok()) << text << ": " << value.status();
  return value.ok() ? *std::move(value) : Value();
}

struct Case {
  std::string_view current;
  std::string_view patch;
  std::string_view expected;  // JSON, or "!" and how the message begins
};

template <class Apply>
void Check(std::span<const Case> cases, const Apply& apply) {
  for (const auto& test : cases) {
    const auto result = apply(Json(test.current), Json(test.patch));
    if (test.expected.starts_with('!')) {
      ASSERT_FALSE(result.ok()) << test.patch << " gave " << WriteJson(*result);
      EXPECT_NE(result.status().message().find(test.expected.substr(1)), std::string_view::npos)
          << test.patch << ": " << result.status();
    } else {
      ASSERT_TRUE(result.ok()) << test.patch << ": " << result.status();
      EXPECT_EQ(WriteJson(*result), test.expected) << test.patch;
    }
  }
}

TEST(JsonPatch, FollowsRfc6902) {
  constexpr Case kCases[] = {
      {R"({"a":1})", R"([])", R"({"a":1})"},
      {R"({"a":1})", R"([{"op":"add","path":"/b","value":[1]}])", R"({"a":1,"b":[1]})"},
      {R"({"a":1})", R"([{"op":"add","path":"/a","value":2}])", R"({"a":2})"},
      {R"({"a":[1,3]})", R"([{"op":"add","path":"/a/1","value":2}])", R"({"a":[1,2,3]})"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/-","value":2}])", R"({"a":[1,2]})"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/1","value":2}])", R"({"a":[1,2]})"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/2","value":2}])", "!the list has 1 items"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/01","value":2}])", "!the list has 1 items"},
      {R"({"a":1})", R"([{"op":"add","path":"","value":{"x":1}}])", R"({"x":1})"},
      {R"({"a":1})", R"([{"op":"add","path":"/b/c","value":1}])", "!its parent does not exist"},
      {R"({"a":1})", R"([{"op":"add","path":"/a/c","value":1}])", "!its parent does not exist"},
      {R"({"a":1})", R"([{"op":"add","path":"/b","value":null}])", R"({"a":1,"b":null})"},
      {R"({"a":1})", R"([{"op":"add","path":"/b"}])", R"(!"add" needs a value)"},
      {R"({"a":1,"b":2})", R"([{"op":"remove","path":"/a"}])", R"({"b":2})"},
      {R"({"a":[1,2,3]})", R"([{"op":"remove","path":"/a/1"}])", R"({"a":[1,3]})"},
      {R"({"a":1})", R"([{"op":"remove","path":"/b"}])", R"(!path "/b" does not exist)"},
      {R"({"a":1})", R"([{"op":"replace","path":"/a","value":{"b":1}}])", R"({"a":{"b":1}})"},
      {R"({"a":1})", R"([{"op":"replace","path":"/b","value":1}])", R"(!path "/b" does not exist)"},
      {R"({"a":{"b":1},"c":{}})",
       R"([{"op":"move","from":"/a/b","path":"/c/d"}])",
       R"({"a":{},"c":{"d":1}})"},
      {R"({"a":[1,2,3]})", R"([{"op":"move","from":"/a/0","path":"/a/2"}])", R"({"a":[2,3,1]})"},
      {R"({"a":{"b":1}})", R"([{"op":"move","from":"/a","path":"/a/b"}])", "!into itself"},
      {R"({"a":1,"ab":2})", R"([{"op":"move","from":"/a","path":"/ab"}])", R"({"ab":1})"},
      {R"({"a":{"b":1}})",
       R"([{"op":"copy","from":"/a","path":"/a/c"}])",
       R"({"a":{"b":1,"c":{"b":1}}})"},
      {R"({"a":[1,"x"]})", R"([{"op":"test","path":"/a","value":[1.0,"x"]}])", R"({"a":[1,"x"]})"},
      {R"({"a":1})",
       R"([{"op":"test","path":"/a","value":2}])",
       R"(!operation 0: testing value "/a" failed)"},
      {R"({"a":1})", R"([{"op":"test","path":"/b","value":null}])", R"({"a":1})"},
      {R"({"a/b":1,"m~n":2})",
       R"([{"op":"remove","path":"/a~1b"},{"op":"remove","path":"/m~0n"}])",
       "{}"},
      {R"({"a":1})", R"([{"op":"remove","path":"/a~2"}])", "!'~' must be followed by 0 or 1"},
      {R"({"a":1})", R"([{"op":"remove","path":"a"}])", "!must begin with '/'"},
      {R"({"a":1})", R"([{"op":"grow","path":"/a"}])", R"(!unknown operation "grow")"},
      {R"({"a":1})", R"([{"op":"move","path":"/a"}])", R"(!"move" needs from)"},
      {R"({"a":1})", R"([{"op":"remove"}])", "!needs a path"},
      {R"({"a":1})", R"([1])", "!an operation must be an object"},
      {R"({"a":1})", R"({"op":"remove"})", "!must be a list of operations"},
      {R"({"a":1})", R"([{"op":"remove","path":""}])", "!the whole object"},
  };
  Check(kCases, ApplyJsonPatch);
}

TEST(JsonPatch, IsBounded) {
  Value many = Value::Array();
  for (size_t i = 0; i <= kMaxJsonPatchOperations; ++i) {
    many.Append(Json(R"({"op":"test","path":"/a","value":1})"));
  }
  EXPECT_TRUE(ApplyJsonPatch(Json(R"({"a":1})"), many).status().Is(Reason::kRequestTooLarge));
  Value doubling = Value::Array();
  for (int i = 0; i < 60; ++i) {
    doubling.Append(Json(R"({"op":"copy","from":"/a","path":"/a/-"})"));
  }
  EXPECT_TRUE(ApplyJsonPatch(Json(R"({"a":["xxxxxxxxxxxxxxxx"]})"), doubling)
                  .status()
                  .Is(Reason::kRequestTooLarge));
  Value list = Value::Array();
  for (int i = 0; i < 100000; ++i) list.Append(i);
  Value object = Value::Object();
  object.Set("a", std::move(list));
  Value shifting = Value::Array();
  for (int i = 0; i < 9000; ++i) shifting.Append(Json(R"({"op":"add","path":"/a/0","value":1})"));
  EXPECT_TRUE(ApplyJsonPatch(object, shifting).status().Is(Reason::kRequestTooLarge));
}

TEST(MergePatch, FollowsRfc7386) {
  constexpr Case kCases[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", "{}"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
      {R"({"a":1})", R"([1])", "!must be an object, not a list"},
  };
  Check(kCases, ApplyMergePatch);
}

TEST(MergePatch, IsNotQuadratic) {
  Value current = Value::Object();
  Value patch = Value::Object();
  for (int i = 0; i < 60000; ++i) {
    current.members().push_back({"a" + std::to_string(i), i});
    patch.members().push_back({"a" + std::to_string(59999 - i), i % 2 == 0 ? Value() : Value(i)});
  }
  const auto merged = ApplyMergePatch(current, patch);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->members().size(), 30000U);
}

Result<Value> Strategic(const Value& current, const Value& patch) {
  return ApplyStrategicMergePatch(current, patch, TypeInfoOf<testing::Widget>());
}

TEST(StrategicMerge, MergesListsByTheirKey) {
  constexpr Case kCases[] = {
      // Items with the same key are merged, others appended.
      {R"({"spec":{"disks":[{"name":"a","size":"1"},{"name":"b"}]}})",
       R"({"spec":{"disks":[{"name":"b","size":"2"},{"name":"c"}]}})",
       R"({"spec":{"disks":[{"name":"a","size":"1"},{"name":"b","size":"2"},{"name":"c"}]}})"},
      {R"({"spec":{"disks":[{"name":"a"},{"name":"b"}]}})",
       R"({"spec":{"disks":[{"name":"a","$patch":"delete"}]}})",
       R"({"spec":{"disks":[{"name":"b"}]}})"},
      {R"({"spec":{"disks":[{"name":"a"},{"name":"b"}]}})",
       R"({"spec":{"disks":[{"$patch":"replace"},{"name":"c"}]}})",
       R"({"spec":{"disks":[{"name":"c"}]}})"},
      {R"({"spec":{"disks":[{"name":"a","size":"1","device":"x"}]}})",
       R"({"spec":{"disks":[{"name":"a","$patch":"replace","size":"2"}]}})",
       R"({"spec":{"disks":[{"name":"a","size":"2"}]}})"},
      // The order that the patch asks for; what the patch does not know keeps its place.
      {R"({"spec":{"disks":[{"name":"a"},{"name":"x"},{"name":"b"}]}})",
       R"({"spec":{"$setElementOrder/disks":[{"name":"b"},{"name":"a"}]}})",
       R"({"spec":{"disks":[{"name":"x"},{"name":"b"},{"name":"a"}]}})"},
      {R"({"spec":{"disks":[{"name":"a"},{"name":"b"}]}})",
       R"({"spec":{"$setElementOrder/disks":[{"name":"c"},{"name":"a"}],)"
       R"("disks":[{"name":"c","size":"1"},{"name":"b","$patch":"delete"}]}})",
       R"({"spec":{"disks":[{"name":"c","size":"1"},{"name":"a"}]}})"},
      {R"({"spec":{}})",
       R"({"spec":{"$setElementOrder/disks":[{"name":"c"}],"disks":[{"name":"c"}]}})",
       R"({"spec":{"disks":[{"name":"c"}]}})"},
      // An item without its key is refused.
      {R"({"spec":{"disks":[{"name":"a"}]}})",
       R"({"spec":{"disks":[{"size":"1"}]}})",
       "!does not have this key"},
      {R"({"spec":{"disks":[{"name":"a"}]}})", R"({"spec":{"disks":[1]}})", "!got a number"},
      // Nested merges and removals inside an item.
      {R"({"spec":{"disks":[{"name":"a","volumeRef":{"name":"v"},"size":"1"}]}})",
       R"({"spec":{"disks":[{"name":"a","size":null,"volumeRef":{"name":"w"}}]}})",
       R"({"spec":{"disks":[{"name":"a","volumeRef":{"name":"w"}}]}})"},
  };
  Check(kCases, Strategic);
}

TEST(StrategicMerge, OtherListsAreReplacedAndSetsAreMerged) {
  constexpr Case kCases[] = {
      {R"({"spec":{"ips":["10.0.0.1"]}})",
       R"({"spec":{"ips":["10.0.0.2"]}})",
       R"({"spec":{"ips":["10.0.0.2"]}})"},
      {R"({"spec":{"tags":["a","b"]}})",
       R"({"spec":{"tags":["c","a"]}})",
       R"({"spec":{"tags":["c","a","b"]}})"},
      {R"({"spec":{"tags":["a","b"]}})",
       R"({"spec":{"$deleteFromPrimitiveList/tags":["a"]}})",
       R"({"spec":{"tags":["b"]}})"},
      {R"({"spec":{"tags":["a","b"]}})",
       R"({"spec":{"$setElementOrder/tags":["c","b"],"$deleteFromPrimitiveList/tags":["a"],"tags":["c"]}})",
       R"({"spec":{"tags":["c","b"]}})"},
      {R"({"spec":{}})", R"({"spec":{"$deleteFromPrimitiveList/tags":["a"]}})", R"({"spec":{}})"},
      {R"({"spec":{"unknown":[1]}})", R"({"spec":{"unknown":[2]}})", R"({"spec":{"unknown":[2]}})"},
  };
  Check(kCases, Strategic);
}

TEST(StrategicMerge, ObjectsFollowTheirDirectives) {
  constexpr Case kCases[] = {
      {R"({"spec":{"power":"On","ratio":1}})",
       R"({"spec":{"$patch":"replace","power":"Off"}})",
       R"({"spec":{"power":"Off"}})"},
      {R"({"spec":{"power":"On"}})", R"({"spec":{"$patch":"delete"}})", R"({"spec":{}})"},
      {R"({"spec":{"power":"On"}})",
       R"({"spec":{"$patch":"merge","ratio":1}})",
       R"({"spec":{"power":"On","ratio":1}})"},
      {R"({"spec":{"power":"On"}})", R"({"spec":{"$patch":"grow"}})", R"(!unknown $patch "grow")"},
      {R"({"spec":{"power":"On","ratio":1}})",
       R"({"spec":{"$retainKeys":["power"],"power":"Off"}})",
       R"({"spec":{"power":"Off"}})"},
      {R"({"spec":{"power":"On"}})",
       R"({"spec":{"$retainKeys":["ratio"],"power":"Off"}})",
       "!is not in $retainKeys"},
      {R"({"spec":{"power":"On","ratio":1.5}})",
       R"({"spec":{"$retainKeys":[1]}})",
       "!must be a list of field names, not of"},
      {R"({"spec":{"power":"On"}})", R"({"spec":{"power":null}})", R"({"spec":{}})"},
      {R"({"spec":{"power":"On"}})", R"({"spec":null})", "{}"},
      {R"({})",
       R"({"spec":{"power":null,"poolRef":{"name":"a"},"disks":[{"name":"x","$patch":"delete"},{"name":"y"}]}})",
       R"({"spec":{"poolRef":{"name":"a"},"disks":[{"name":"y"}]}})"},
      {R"({"metadata":{"labels":{"a":"1"}}})",
       R"({"metadata":{"labels":{"b":"2","a":null}}})",
       R"({"metadata":{"labels":{"b":"2"}}})"},
      {R"({"metadata":{"finalizers":["x"]}})",
       R"({"metadata":{"finalizers":["y"]}})",
       R"({"metadata":{"finalizers":["y","x"]}})"},
      {R"({"a":1})", R"([])", "!must be an object, not a list"},
      {R"({"spec":{"power":"On"}})", R"({"spec":[1]})", R"({"spec":[1]})"},
  };
  Check(kCases, Strategic);
}

TEST(ThreeWay, RemovesOnlyWhatWasAppliedBefore) {
  struct Test {
    std::string_view original;
    std::string_view modified;
    std::string_view current;
    std::string_view patch;
  };
  constexpr Test kTests[] = {
      {"{}", R"({"spec":{"power":"On"}})", R"({"spec":{"power":"On","ratio":1}})", "{}"},
      {R"({"spec":{"power":"On","ratio":1}})",
       R"({"spec":{"power":"Off"}})",
       R"({"spec":{"power":"On","ratio":1,"port":1}})",
       R"({"spec":{"power":"Off","ratio":null}})"},
      {R"({"spec":{"ratio":1}})", R"({"spec":{}})", R"({"spec":{}})", "{}"},
      {R"({"spec":{"disks":[{"name":"a"},{"name":"b"}]}})",
       R"({"spec":{"disks":[{"name":"a","size":"1"}]}})",
       R"({"spec":{"disks":[{"name":"a"},{"name":"b"},{"name":"x"}]}})",
       R"({"spec":{"$setElementOrder/disks":[{"name":"a"}],"disks":[{"size":"1","name":"a"},{"$patch":"delete","name":"b"}]}})"},
      {"null",
       R"({"spec":{"disks":[{"name":"b"},{"name":"a"}]}})",
       R"({"spec":{"disks":[{"name":"a"},{"name":"b"}]}})",
       R"({"spec":{"$setElementOrder/disks":[{"name":"b"},{"name":"a"}]}})"},
      {"{}",
       R"({"spec":{"ips":["10.0.0.1"]}})",
       R"({"spec":{"ips":["10.0.0.2"]}})",
       R"({"spec":{"ips":["10.0.0.1"]}})"},
      {R"({"metadata":{"labels":{"a":"1","b":"2"}}})",
       R"({"metadata":{"labels":{"a":"1"}}})",
       R"({"metadata":{"labels":{"a":"1","b":"2","c":"3"}}})",
       R"({"metadata":{"labels":{"b":null}}})"},
  };
  for (const auto& test : kTests) {
    const Value patch = ThreeWayMergePatch(Json(test.original),
                                           Json(test.modified),
                                           Json(test.current),
                                           TypeInfoOf<testing::Widget>());
    EXPECT_EQ(WriteJson(patch), test.patch) << test.modified;
  }
  EXPECT_EQ(WriteJson(ThreeWayJsonMergePatch(Json(R"({"a":1,"b":{"x":1,"y":2}})"),
                                             Json(R"({"b":{"x":2},"l":[2]})"),
                                             Json(R"({"a":1,"b":{"x":1,"y":2,"z":3},"l":[1]})"))),
            R"({"b":{"x":2,"y":null},"l":[2],"a":null})");
}

Value RandomWidget(Random& random) {
  Value disks = Value::Array();
  for (const char* name : {"a", "b", "c", "d"}) {
    if (random.Chance(0.4)) continue;
    Value disk = Value::Object();
    disk.Set("name", name);
    if (random.Chance(0.5)) disk.Set("size", std::to_string(random.Below(3)));
    if (random.Chance(0.3)) disk.Set("device", "oda");
    auto& items = disks.items();
    items.insert(items.begin() + static_cast<ptrdiff_t>(random.Below(items.size() + 1)),
                 std::move(disk));
  }
  Value spec = Value::Object();
  if (random.Chance(0.8)) spec.Set("disks", std::move(disks));
  if (random.Chance(0.5)) spec.Set("power", random.Chance(0.5) ? "On" : "Off");
  if (random.Chance(0.5)) {
    Value resources = Value::Object();
    for (const char* name : {"cpu", "memory"}) {
      if (random.Chance(0.5)) resources.Set(name, std::to_string(random.Below(3)));
    }
    spec.Set("resources", std::move(resources));
  }
  Value widget = Value::Object();
  widget.Set("spec", std::move(spec));
  return widget;
}

TEST(ThreeWay, ApplyingItsPatchGivesWhatWasWanted) {
  Random random(41);
  for (int i = 0; i < 2500; ++i) {
    const Value current = RandomWidget(random);
    const Value modified = RandomWidget(random);
    // Everything that is there was applied before: then nothing else may remain.
    const Value patch =
        ThreeWayMergePatch(current, modified, current, TypeInfoOf<testing::Widget>());
    const auto result = Strategic(current, patch);
    ASSERT_TRUE(result.ok()) << result.status() << WriteJson(patch);
    ASSERT_EQ(*result, modified) << WriteJson(current) << "\n"
                                 << WriteJson(patch) << "\n"
                                 << WriteJson(*result) << "\n"
                                 << WriteJson(modified);
    const Value again =
        ThreeWayMergePatch(modified, modified, *result, TypeInfoOf<testing::Widget>());
    ASSERT_EQ(WriteJson(again), "{}");
  }
}

TEST(Patches, RandomPatchesNeverCrash) {
  Random random(43);
  constexpr std::string_view kCurrent =
      R"({"metadata":{"name":"a","labels":{"x":"y"},"finalizers":["f"]},"spec":{"disks":[{"name":"a","size":"1"},)"
      R"({"name":"b"}],"tags":["p","q"],"resources":{"cpu":"1"},"selector":{"matchLabels":{"a":"b"}}}})";
  constexpr std::string_view kStrategic =
      R"({"metadata":{"labels":{"x":null},"$deleteFromPrimitiveList/finalizers":["f"]},"spec":{"$setElementOrder/disks":)"
      R"([{"name":"b"},{"name":"c"}],"disks":[{"name":"c","size":"2"},{"name":"a","$patch":"delete"}],"$retainKeys":)"
      R"(["disks","tags"],"$setElementOrder/tags":["q"],"tags":["r"]}})";
  constexpr std::string_view kJsonPatch =
      R"([{"op":"add","path":"/spec/disks/0","value":{"name":"z"}},{"op":"move","from":"/spec/tags/0","path":)"
      R"("/spec/tags/-"},{"op":"copy","from":"/spec","path":"/spec/x"},{"op":"remove","path":"/metadata/labels"},)"
      R"({"op":"test","path":"/spec/tags/1","value":"p"},{"op":"replace","path":"/spec/disks","value":[]}])";
  const Value current = Json(kCurrent);
  for (int i = 0; i < 8000; ++i) {
    std::string text(random.Chance(0.5) ? kStrategic : kJsonPatch);
    for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
      // Swap or copy pieces between commas and braces, so that much stays well-formed.
      const size_t from = random.Below(text.size());
      const size_t size = random.Below(12);
      if (random.Chance(0.5)) {
        text.replace(random.Below(text.size()), size, text.substr(from, size));
      } else {
        text[from] = "{}[],:\"01abc$"[random.Below(13)];
      }
    }
    const auto patch = ParseJson(text);
    if (!patch.ok()) continue;
    for (const auto& result : {ApplyJsonPatch(current, *patch),
                               ApplyMergePatch(current, *patch),
                               Strategic(current, *patch)}) {
      if (result.ok()) {
        ASSERT_TRUE(ParseJson(WriteJson(*result)).ok()) << text;
      }
    }
    if (patch->is_object()) {
      ThreeWayMergePatch(*patch, current, *patch, TypeInfoOf<testing::Widget>());
      ThreeWayMergePatch(current, *patch, current, TypeInfoOf<testing::Widget>());
    }
  }
}

}  // namespace
}  // namespace berth::meta
