// SPDX-License-Identifier: Apache-2.0
// Defends what kubectl relies on: every reference resolves, every alias is described, PATCH says
// that it can dry-run.
#include <gtest/gtest.h>

#include <set>

#include "meta/json.h"
#include "meta/openapi/document.h"
#include "meta/openapi/gnostic.h"
#include "meta/test_kind.h"

namespace berth::meta {
namespace {

constexpr std::string_view kSubresources[] = {
    "binding", "console", "exec", "log", "portforward", "usage"};
const KindInfo& Gadget() {
  static const KindInfo gadget = [] {
    KindInfo kind = testing::kWidget;
    kind.kind = "Gadget";
    kind.plural = "gadgets";
    kind.singular = "gadget";
    kind.short_names = {};
    kind.subresources = kSubresources;
    return kind;
  }();
  return gadget;
}

const Scheme& TestScheme() {
  static const KindInfo* const kinds[] = {&testing::kWidget, &Gadget()};
  static const Scheme scheme(kinds, {"ironcore.dev", "OpenKCM.dev"});
  return scheme;
}

// All texts of members called "$ref", anywhere.
void CollectRefs(const Value& value, std::set<std::string>& refs) {
  if (value.is_array()) {
    for (const auto& item : value.items()) CollectRefs(item, refs);
  } else if (value.is_object()) {
    for (const auto& member : value.members()) {
      if (member.key == "$ref") refs.insert(member.value.as_string());
      CollectRefs(member.value, refs);
    }
  }
}

TEST(OpenApi, EveryReferenceOfVersion2Resolves) {
  const Value document = OpenApiV2(TestScheme(), "0.1.0");
  std::set<std::string> refs;
  CollectRefs(document, refs);
  EXPECT_GT(refs.size(), 8U);
  for (const auto& ref : refs) {
    ASSERT_TRUE(ref.starts_with("#/definitions/")) << ref;
    EXPECT_NE(document.Get({"definitions", ref.substr(14)}), nullptr) << ref;
  }
}

TEST(OpenApi, EveryReferenceOfVersion3Resolves) {
  for (const auto& served : TestScheme().groups()) {
    const Value document = OpenApiV3(served, "0.1.0");
    std::set<std::string> refs;
    CollectRefs(document, refs);
    EXPECT_GT(refs.size(), 8U);
    for (const auto& ref : refs) {
      ASSERT_TRUE(ref.starts_with("#/components/schemas/")) << ref;
      EXPECT_NE(document.Get({"components", "schemas", ref.substr(21)}), nullptr) << ref;
    }
  }
}

TEST(OpenApi, ADefinitionNamesItsKindUnderEveryDomain) {
  const Value document = OpenApiV2(TestScheme(), "0.1.0");
  const Value* kinds =
      document.Get({"definitions", "test.v1.Widget", "x-kubernetes-group-version-kind"});
  ASSERT_NE(kinds, nullptr);
  std::set<std::string> named;
  for (const Value& kind : kinds->items()) {
    named.insert(std::string(kind.GetString({"group"})) + ' ' +
                 std::string(kind.GetString({"kind"})));
  }
  EXPECT_EQ(named,
            (std::set<std::string>{"test.OpenKCM.dev Gadget",
                                   "test.OpenKCM.dev Widget",
                                   "test.ironcore.dev Gadget",
                                   "test.ironcore.dev Widget"}));
  EXPECT_NE(document.Get({"definitions", "test.v1.Widget", "properties", "apiVersion"}), nullptr);
  const Value* power = document.Get({"definitions", "test.v1.WidgetSpec", "properties", "power"});
  ASSERT_NE(power, nullptr);
  EXPECT_EQ(WriteJson(*power->Find("enum")), R"(["On","Off"])");
  EXPECT_EQ(power->GetString({"default"}), "On");
  EXPECT_EQ(document.Get({"definitions", "test.v1.WidgetSpec", "properties", "disks"})
                ->GetString({"x-kubernetes-patch-merge-key"}),
            "name");
  // Inlined fields stand on their parent's level.
  EXPECT_NE(document.Get({"definitions", "test.v1.WidgetSpec", "properties", "policy"}), nullptr);
}

TEST(OpenApi, PatchOfEveryDomainSaysThatItCanDryRun) {
  const Value document = OpenApiV2(TestScheme(), "0.1.0");
  for (const auto* group : {"test.ironcore.dev", "test.OpenKCM.dev"}) {
    const std::string path =
        "/apis/" + std::string(group) + "/v1/namespaces/{namespace}/widgets/{name}";
    const Value* patch = document.Get({"paths", path, "patch"});
    ASSERT_NE(patch, nullptr) << path;
    EXPECT_EQ(patch->GetString({"x-kubernetes-group-version-kind", "group"}), group);
    std::set<std::string> names;
    for (const auto& parameter : patch->Find("parameters")->items()) {
      names.emplace(parameter.GetString({"name"}));
    }
    EXPECT_TRUE(names.contains("dryRun"));
    EXPECT_TRUE(names.contains("fieldValidation"));
  }
}

TEST(OpenApi, EverySubresourceHasItsPath) {
  for (const auto& served : TestScheme().groups()) {
    const Value document = OpenApiV3(served, "0.1.0");
    const std::string at =
        "/apis/" + served.group + '/' + served.version + "/namespaces/{namespace}/gadgets/{name}/";
    for (const std::string_view name : kSubresources) {
      EXPECT_NE(document.Get({"paths", at + std::string(name)}), nullptr) << at << name;
    }
  }
}

TEST(OpenApi, OperationIdsAreUnique) {
  const Value document = OpenApiV2(TestScheme(), "0.1.0");
  std::set<std::string> ids;
  for (const auto& path : document.Find("paths")->members()) {
    for (const auto& method : path.value.members()) {
      if (method.key == "parameters") continue;
      const std::string id(method.value.GetString({"operationId"}));
      EXPECT_TRUE(ids.insert(id).second) << id;
    }
  }
  EXPECT_GT(ids.size(), 20U);
}

// Walks the wire format: every length fits, so the message is well formed on its first two levels.
TEST(OpenApi, GnosticFormIsWellFormedProtobuf) {
  const std::string bytes = ToGnostic(OpenApiV2(TestScheme(), "0.1.0"));
  std::set<uint64_t> fields;
  size_t at = 0;
  const auto number = [&] {
    uint64_t value = 0;
    for (int shift = 0; at < bytes.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes[at++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < bytes.size()) {
    const uint64_t tag = number();
    ASSERT_EQ(tag & 7, 2U) << "every field of a Document is a string or a message";
    fields.insert(tag >> 3);
    const uint64_t size = number();
    ASSERT_LE(size, bytes.size() - at);
    if (tag >> 3 == 1) EXPECT_EQ(bytes.substr(at, size), "2.0");
    at += size;
  }
  EXPECT_EQ(fields, (std::set<uint64_t>{1, 2, 8, 9}));
}

}  // namespace
}  // namespace berth::meta
