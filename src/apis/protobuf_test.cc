// SPDX-License-Identifier: Apache-2.0
// Defends that every kind of Kubernetes that we serve can be read in protobuf, field by field, as
// Kubernetes' own Go code writes it (testdata/protobuf.txt: type, bytes in hex, the same as JSON).
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "apis/k8s/access_review.h"
#include "apis/k8s/namespace.h"
#include "apis/meta_v1/delete_options.h"
#include "apis/meta_v1/scale.h"
#include "apis/registry.h"
#include "base/strings.h"
#include "meta/json.h"
#include "meta/k8s_proto/k8s_proto.h"
#include "meta/k8s_proto/messages.h"
#include "meta/reflect.h"

namespace berth::apis {
namespace {

// Kinds that every Kubernetes client knows; they speak protobuf.
bool IsBuiltIn(const meta::KindInfo& kind) {
  return kind.naming == meta::GroupNaming::kFixed && kind.group != "berth.dev";
}

using namespace std::string_literals;
using meta::TypeInfo;

// In the envelope instead, as of every object.
const std::set<std::string> kWithoutNumber = {
    "io.k8s.api.autoscaling.v1.Scale.apiVersion",
    "io.k8s.api.autoscaling.v1.Scale.kind",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions.apiVersion",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions.kind",
};

void Collect(const TypeInfo& type, std::map<std::string_view, const TypeInfo*>& structs) {
  if (type.element != nullptr) return Collect(*type.element, structs);
  if (type.kind != meta::TypeKind::kStruct || !structs.emplace(type.name, &type).second) return;
  for (const meta::Field& field : type.fields) Collect(*field.type, structs);
}

std::map<std::string_view, const TypeInfo*> BuiltInStructs() {
  std::map<std::string_view, const TypeInfo*> structs;
  for (const meta::KindInfo* kind : AllKinds()) {
    if (IsBuiltIn(*kind)) Collect(*kind->type, structs);
  }
  Collect(meta::TypeInfoOf<meta_v1::DeleteOptions>(), structs);
  Collect(meta::TypeInfoOf<meta_v1::Scale>(), structs);
  return structs;
}

TEST(Protobuf, EveryStructOfABuiltInKindHasATableOfAllItsFields) {
  for (const auto& [name, type] : BuiltInStructs()) {
    const auto* message = meta::FindProtoMessage(name);
    ASSERT_NE(message, nullptr) << name;
    std::set<std::string_view> numbered;
    for (const auto& field : message->fields) numbered.insert(field.name);
    for (const meta::Field& field : type->fields) {
      const std::string path = std::string(name) + "." + std::string(field.name);
      EXPECT_NE(numbered.contains(field.name), kWithoutNumber.contains(path)) << path;
    }
  }
}

TEST(Protobuf, EveryTableNamesFieldsThatExistUnderDifferentNumbers) {
  const auto structs = BuiltInStructs();
  for (const auto& message : meta::ProtoMessages()) {
    const auto type = structs.find(message.name);
    ASSERT_NE(type, structs.end()) << message.name;
    std::set<uint32_t> numbers;
    for (const auto& field : message.fields) {
      EXPECT_NE(meta::FindField(*type->second, field.name).field, nullptr)
          << message.name << "." << field.name;
      EXPECT_TRUE(numbers.insert(field.number).second) << message.name << " " << field.number;
    }
  }
}

TEST(Protobuf, OurOwnKindsHaveNone) {
  for (const meta::KindInfo* kind : AllKinds()) {
    EXPECT_EQ(meta::HasKubernetesProto(*kind->type), IsBuiltIn(*kind)) << kind->kind;
  }
}

std::string Unhex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return bytes;
}

// What the struct holds after `decode`, as JSON.
std::string JsonAfter(const TypeInfo& type, const std::function<Status(void*)>& decode) {
  void* object = type.ops->create();
  const Status status = decode(object);
  std::string json;
  if (status.ok()) meta::EncodeJson(type, object, json);
  type.ops->destroy(object);
  EXPECT_TRUE(status.ok()) << type.name << ": " << status;
  return json;
}

// Of a struct with fields for what the envelope says.
void SetTypeMeta(const TypeInfo& type, const meta::TypeMeta& from, void* out) {
  const auto set = [&](std::string_view field, const std::string& text) {
    *reinterpret_cast<std::string*>(static_cast<char*>(out) + meta::FindField(type, field).offset) =
        text;
  };
  set("apiVersion", from.api_version);
  set("kind", from.kind);
}

TEST(Protobuf, ReadsWhatKubernetesWrites) {
  std::ifstream file(std::string(BERTH_APIS_TESTDATA) + "/protobuf.txt");
  const auto structs = BuiltInStructs();
  size_t kinds = 0;
  for (std::string line; std::getline(file, line); ++kinds) {
    std::istringstream words(line);
    std::string name;
    std::string hex;
    std::string json;
    words >> name >> hex;
    std::getline(words, json);
    ASSERT_TRUE(structs.contains(name)) << name;
    const TypeInfo& type = *structs.at(name);
    const bool own_type_meta = meta::FindField(type, "kind").field != nullptr;
    meta::TypeMeta in_json;
    meta::TypeMeta in_proto;
    const std::string wanted = JsonAfter(type, [&](void* out) {
      return meta::DecodeJson(json,
                              type,
                              out,
                              {.field_validation = meta::FieldValidation::kStrict,
                               .type_meta = own_type_meta ? nullptr : &in_json});
    });
    const std::string body = Unhex(hex);
    const std::string got = JsonAfter(type, [&](void* out) {
      const Status status = meta::DecodeKubernetesProto(body, type, out, &in_proto);
      if (own_type_meta) SetTypeMeta(type, in_proto, out);
      return status;
    });
    EXPECT_EQ(got, wanted) << name;
    if (!own_type_meta) EXPECT_EQ(in_proto, in_json) << name;
  }
  // One line per built-in kind, and those of DeleteOptions and Scale.
  size_t built_in = 0;
  for (const meta::KindInfo* kind : AllKinds()) {
    if (IsBuiltIn(*kind)) ++built_in;
  }
  EXPECT_EQ(kinds, built_in + 2);
}

TEST(Protobuf, ReadsANamespaceByteByByte) {
  const std::string body =
      "k8s\0"s
      "\x0a\x0f\x0a\x02v1\x12\x09Namespace"  // typeMeta
      "\x12\x12"                             // raw
      "\x0a\x03\x0a\x01x"                    // metadata.name
      "\x12\x05\x0a\x03"
      "fin"                 // spec.finalizers
      "\x1a\x04\x0a\x02Ok"  // status.phase
      "\x1a\0\x22\0"s;      // contentEncoding, contentType
  k8s::Namespace space;
  meta::TypeMeta type_meta;
  const Status status =
      meta::DecodeKubernetesProto(body, meta::TypeInfoOf<k8s::Namespace>(), &space, &type_meta);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(type_meta, (meta::TypeMeta{.api_version = "v1", .kind = "Namespace"}));
  EXPECT_EQ(space.metadata.name, "x");
  EXPECT_EQ(space.spec.finalizers, std::vector<std::string>{"fin"});
  EXPECT_EQ(space.status.phase, "Ok");
}

TEST(Protobuf, ReadsASelfSubjectAccessReviewByteByByte) {
  const std::string body =
      "k8s\0"s
      "\x12\x18"          // raw
      "\x0a\0"s           // metadata
      "\x12\x14\x0a\x12"  // spec.resourceAttributes
      "\x12\x06"
      "create"             // verb
      "\x2a\x08machines";  // resource
  k8s::SelfSubjectAccessReview review;
  const Status status = meta::DecodeKubernetesProto(
      body, meta::TypeInfoOf<k8s::SelfSubjectAccessReview>(), &review, nullptr);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(review.spec.resource_attributes.has_value());
  EXPECT_EQ(review.spec.resource_attributes->verb, "create");
  EXPECT_EQ(review.spec.resource_attributes->resource, "machines");
  EXPECT_FALSE(review.spec.non_resource_attributes.has_value());
}

}  // namespace
}  // namespace berth::apis
