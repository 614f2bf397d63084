// SPDX-License-Identifier: Apache-2.0
// The codecs: what can be read can be written, and is then read as the same.
#include <string>
#include <vector>

#include "apis/registry.h"
#include "base/check.h"
#include "base/strings.h"
#include "meta/json.h"
#include "meta/k8s_proto/k8s_proto.h"
#include "meta/object.h"
#include "meta/yaml.h"
#include "test/fuzz/pieces.h"
#include "test/fuzz/targets.h"

namespace berth::fuzz {
namespace {

std::string Encoded(const meta::KindInfo& kind, const void* data) {
  std::string text;
  meta::EncodeJson(*kind.type, data, text);
  return text;
}

const meta::KindInfo& KindOfByte(uint8_t choice) {
  const auto kinds = apis::AllKinds();
  return *kinds[choice % kinds.size()];
}

void CheckStable(const meta::KindInfo& kind, const void* data) {
  const std::string once = Encoded(kind, data);
  CHECK(IsValidUtf8(once));
  meta::Object again(kind);
  const Status decoded = meta::DecodeJson(once, *kind.type, again.data());
  CHECK(decoded.ok()) << kind.kind << ": " << decoded << ": " << once;
  CHECK(Encoded(kind, again.data()) == once) << kind.kind << ": " << once;
}

}  // namespace

void Json(std::string_view bytes) {
  const meta::KindInfo& kind = KindOfByte(TakeByte(bytes));
  const auto value = meta::ParseJson(bytes);
  if (value.ok()) {
    const std::string text = meta::WriteJson(*value);
    CHECK(IsValidUtf8(text));
    const auto again = meta::ParseJson(text);
    CHECK(again.ok()) << again.status() << ": " << text;
    // What is too small for a double is -0 once, and 0 from then on.
    const std::string settled = meta::WriteJson(*again);
    const auto third = meta::ParseJson(settled);
    CHECK(third.ok() && meta::WriteJson(*third) == settled) << text;
  }
  meta::Object object(kind);
  std::vector<std::string> warnings;
  const meta::DecodeOptions options{.field_validation = meta::FieldValidation::kWarn};
  const Status decoded = meta::DecodeJson(bytes, *kind.type, object.data(), options, &warnings);
  CHECK(warnings.size() <= meta::kMaxFieldWarnings + 1);
  CHECK(value.ok() || !decoded.ok()) << "what is no JSON was decoded";
  if (decoded.ok()) CheckStable(kind, object.data());
}

void Yaml(std::string_view bytes) {
  const auto value = meta::ParseYaml(bytes);
  if (!value.ok()) return;
  const std::string text = meta::WriteYaml(*value);
  const auto again = meta::ParseYaml(text);
  CHECK(again.ok()) << again.status() << ": " << text;
  CHECK(meta::WriteYaml(*again) == text) << text;
}

void Protobuf(std::string_view bytes) {
  const meta::KindInfo& kind = KindOfByte(TakeByte(bytes));
  meta::Object object(kind);
  meta::TypeMeta type_meta;
  const Status decoded = meta::DecodeKubernetesProto(bytes, *kind.type, object.data(), &type_meta);
  if (decoded.ok()) CheckStable(kind, object.data());
}

}  // namespace berth::fuzz
