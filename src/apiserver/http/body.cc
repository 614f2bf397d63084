// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/body.h"

#include "base/strings.h"
#include "meta/k8s_proto/k8s_proto.h"
#include "meta/yaml.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kManagers = "managedFields";

// The body may name the kind under any domain that serves it, but only the one of its path.
Status CheckTypeMeta(const meta::TypeMeta& sent, const DecodeTarget& target) {
  if (!sent.api_version.empty() && target.scheme.CanonicalApiVersion(sent.api_version) !=
                                       target.scheme.CanonicalApiVersion(target.api_version)) {
    return BadRequest("the API version in the data (" + Printable(sent.api_version) +
                      ") does not match the expected API version (" + target.api_version + ")");
  }
  if (!sent.kind.empty() && sent.kind != target.kind.kind) {
    return BadRequest("the kind in the data (" + Printable(sent.kind) +
                      ") does not match the expected kind (" + std::string(target.kind.kind) + ")");
  }
  return OkStatus();
}

Result<meta::Object> DecodeProtoBody(std::string_view body, const DecodeTarget& target) {
  if (!meta::HasKubernetesProto(*target.kind.type)) {
    return Status(Reason::kUnsupportedMediaType,
                  "kind " + std::string(target.kind.kind) + " in " + target.api_version +
                      " has no protobuf form, served are application/json and application/yaml");
  }
  meta::Object object(target.kind);
  meta::TypeMeta type_meta;
  const Status decoded =
      meta::DecodeKubernetesProto(body, *target.kind.type, object.data(), &type_meta);
  // The bytes of another kind may make no sense as this one; that it is another kind says more.
  TRY_STATUS(CheckTypeMeta(type_meta, target));
  TRY_STATUS(decoded);
  return object;
}

}  // namespace

Result<meta::FieldValidation> ReadFieldValidation(const Query& query) {
  const auto value = query.Get("fieldValidation");
  if (value.empty() || value == "Warn") return meta::FieldValidation::kWarn;
  if (value == "Ignore") return meta::FieldValidation::kIgnore;
  if (value == "Strict") return meta::FieldValidation::kStrict;
  return BadRequest("query parameter fieldValidation=" + Quote(value) +
                    " is none of Ignore, Warn, Strict");
}

Result<meta::Object> DecodeObjectBody(std::string_view body,
                                      BodyForm form,
                                      meta::FieldValidation validation,
                                      const DecodeTarget& target,
                                      std::vector<std::string>& warnings) {
  if (form == BodyForm::kProtobuf) return DecodeProtoBody(body, target);
  meta::Object object(target.kind);
  meta::TypeMeta type_meta;
  const meta::DecodeOptions options{.field_validation = validation, .type_meta = &type_meta};
  if (form == BodyForm::kYaml) {
    TRY(const auto value, meta::ParseYaml(body));
    TRY_STATUS(meta::FromValue(value, *target.kind.type, object.data(), options, &warnings));
    NoteReset(value, object);
  } else {
    TRY_STATUS(meta::DecodeJson(body, *target.kind.type, object.data(), options, &warnings));
    // Who sends managers back as they were read does not pay for this, nor who sends none.
    if (object.metadata().managed_fields.empty() && body.find(kManagers) != body.npos) {
      TRY(const auto value, meta::ParseJson(body));
      NoteReset(value, object);
    }
  }
  TRY_STATUS(CheckTypeMeta(type_meta, target));
  return object;
}

Result<meta::Object> DecodeObjectValue(const meta::Value& value,
                                       meta::FieldValidation validation,
                                       const DecodeTarget& target,
                                       std::vector<std::string>& warnings) {
  meta::Object object(target.kind);
  meta::TypeMeta type_meta;
  const meta::DecodeOptions options{.field_validation = validation, .type_meta = &type_meta};
  TRY_STATUS(meta::FromValue(value, *target.kind.type, object.data(), options, &warnings));
  TRY_STATUS(CheckTypeMeta(type_meta, target));
  return object;
}

void NoteReset(const meta::Value& sent, meta::Object& object) {
  const meta::Value* managers = sent.Get({"metadata", "managedFields"});
  if (managers == nullptr || !managers->is_array() || !managers->items().empty()) return;
  object.metadata().managed_fields.emplace_back();
}

meta::Value ObjectValue(const meta::Object& object, std::string_view api_version) {
  meta::Value value = meta::Value::Object();
  value.Set("apiVersion", api_version);
  value.Set("kind", object.kind().kind);
  for (auto& member : meta::ToValue(*object.kind().type, object.data()).members()) {
    value.Set(member.key, std::move(member.value));
  }
  return value;
}

void AppendObjectText(const meta::Object& object, std::string_view api_version, std::string& out) {
  out += R"({"apiVersion":)";
  meta::AppendJsonString(api_version, out);
  out += R"(,"kind":)";
  meta::AppendJsonString(object.kind().kind, out);
  out += ',';
  // Never empty: every object has metadata with at least a name.
  if (!meta::EncodeJsonMembers(*object.kind().type, object.data(), out)) out.pop_back();
  out += '}';
}

}  // namespace berth::apiserver
