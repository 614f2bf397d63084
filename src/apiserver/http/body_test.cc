// SPDX-License-Identifier: Apache-2.0
// Defends which bodies are read as protobuf, and what a client is told about the others.
#include "apiserver/http/body.h"

#include <gtest/gtest.h>

#include "apis/k8s/namespace.h"
#include "apis/registry.h"

namespace berth::apiserver {
namespace {

using namespace std::string_literals;

// A Namespace named x.
const std::string kNamespaceBytes =
    "k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x05\x0a\x03\x0a\x01x\x1a\0\x22\0"s;

Result<meta::Object> DecodeProto(std::string_view kind, std::string_view body) {
  static const meta::Scheme scheme(apis::AllKinds(), {"ironcore.dev"});
  for (const meta::KindInfo* info : apis::AllKinds()) {
    if (info->kind != kind) continue;
    std::vector<std::string> warnings;
    const DecodeTarget target{.scheme = scheme, .kind = *info, .api_version = "v1"};
    return DecodeObjectBody(
        body, BodyForm::kProtobuf, meta::FieldValidation::kStrict, target, warnings);
  }
  return NotFound("kind " + std::string(kind));
}

TEST(DecodeObjectBody, ReadsProtobufOfABuiltInKind) {
  const auto object = DecodeProto("Namespace", kNamespaceBytes);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(object->metadata().name, "x");
}

TEST(DecodeObjectBody, NamesTheKindThatWasSentInsteadOfTheOneExpected) {
  const auto status = DecodeProto("Secret", kNamespaceBytes).status();
  EXPECT_TRUE(status.Is(Reason::kBadRequest)) << status;
  EXPECT_NE(status.message().find("the kind in the data (Namespace)"), std::string_view::npos)
      << status;
}

TEST(DecodeObjectBody, RefusesProtobufThatIsCutOff) {
  const auto status = DecodeProto("Namespace", kNamespaceBytes.substr(0, 24)).status();
  EXPECT_TRUE(status.Is(Reason::kBadRequest)) << status;
  EXPECT_NE(status.message().find("invalid protobuf at byte"), std::string_view::npos) << status;
}

TEST(DecodeObjectBody, HasNoProtobufForKindsOfOurOwn) {
  const auto status = DecodeProto("Machine", kNamespaceBytes).status();
  EXPECT_TRUE(status.Is(Reason::kUnsupportedMediaType)) << status;
  EXPECT_NE(status.message().find("kind Machine"), std::string_view::npos) << status;
}

}  // namespace
}  // namespace berth::apiserver
