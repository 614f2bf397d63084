// SPDX-License-Identifier: Apache-2.0
// The scale subresource: autoscaling/v1 Scale in front of any kind that says where its numbers are.
#include "apis/meta_v1/scale.h"

#include <limits>
#include <utility>

#include "apiserver/cache/keys.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handlers.h"
#include "apiserver/http/negotiation.h"
#include "apiserver/registry/write_parts.h"
#include "base/strings.h"
#include "meta/json.h"
#include "meta/k8s_proto/k8s_proto.h"
#include "meta/patch/patch.h"
#include "meta/yaml.h"

namespace berth::apiserver {
namespace {

using apis::meta_v1::Scale;
using meta::Value;

// The keys of a path such as ".spec.replicas".
std::vector<std::string_view> KeysOf(std::string_view path) { return Split(path.substr(1), '.'); }

const Value* FindAt(const Value& root, std::string_view path) {
  const Value* at = &root;
  for (const std::string_view key : KeysOf(path)) {
    if (at != nullptr) at = at->Find(key);
  }
  return at;
}

int32_t NumberAt(const Value& root, std::string_view path, int32_t otherwise) {
  const Value* found = FindAt(root, path);
  return found != nullptr && found->is_int() ? static_cast<int32_t>(found->as_int()) : otherwise;
}

void SetAt(Value& root, std::string_view path, Value value) {
  const std::vector<std::string_view> keys = KeysOf(path);
  Value* at = &root;
  for (size_t i = 0; i + 1 < keys.size(); ++i) {
    Value* next = at->Find(keys[i]);
    at = next != nullptr && next->is_object() ? next : &at->Set(keys[i], Value::Object());
  }
  at->Set(keys.back(), std::move(value));
}

Scale ScaleOf(const meta::KindInfo& kind, const meta::Object& object, const Value& tree) {
  Scale scale;
  scale.kind = "Scale";
  scale.api_version = "autoscaling/v1";
  const meta::ObjectMeta& metadata = object.metadata();
  scale.metadata.name = metadata.name;
  scale.metadata.namespace_ = metadata.namespace_;
  scale.metadata.uid = metadata.uid;
  scale.metadata.resource_version = metadata.resource_version;
  scale.metadata.creation_timestamp = metadata.creation_timestamp;
  scale.spec.replicas = NumberAt(tree, kind.scale->spec_replicas, 1);
  scale.status.replicas = NumberAt(tree, kind.scale->status_replicas, 0);
  const Value* selector = FindAt(tree, kind.scale->label_selector);
  if (selector != nullptr && selector->is_string()) scale.status.selector = selector->as_string();
  return scale;
}

net::HttpResponse AnswerScale(const Scale& scale) {
  return JsonTextAnswer(200, meta::EncodeJsonOf(scale));
}

Status CheckKind(std::string_view kind) {
  if (kind == "Scale" || kind.empty()) return OkStatus();
  return BadRequest("kind: expected Scale, got " + Quote(kind));
}

Status CheckScale(const Call& call, const Scale& wanted) {
  TRY_STATUS(CheckKind(wanted.kind));
  if (!wanted.metadata.name.empty() && wanted.metadata.name != call.info.name) {
    return BadRequest("metadata.name: " + Quote(wanted.metadata.name) +
                      " is not the object of the path, " + Quote(call.info.name));
  }
  if (wanted.spec.replicas < 0) {
    return BadRequest("spec.replicas: " + std::to_string(wanted.spec.replicas) +
                      " must not be negative");
  }
  return OkStatus();
}

Result<Scale> DecodeProtoScale(std::string_view body) {
  Scale scale;
  meta::TypeMeta type_meta;
  const Status decoded =
      meta::DecodeKubernetesProto(body, meta::TypeInfoOf<Scale>(), &scale, &type_meta);
  // The bytes of another kind may make no sense as this one; that it is another kind says more.
  TRY_STATUS(CheckKind(type_meta.kind));
  TRY_STATUS(decoded);
  scale.kind = type_meta.kind;
  scale.api_version = type_meta.api_version;
  return scale;
}

Result<Scale> SentScale(const Call& call) {
  TRY(const auto form, NegotiateBody(call.http.headers.Get("Content-Type")));
  if (form == BodyForm::kProtobuf) return DecodeProtoScale(call.http.body);
  TRY(const Value body,
      form == BodyForm::kYaml ? meta::ParseYaml(call.http.body) : meta::ParseJson(call.http.body));
  return meta::FromValueAs<Scale>(body);
}

Result<Scale> PatchedScale(const Call& call, const Scale& now) {
  TRY(const auto form, NegotiatePatch(call.http.headers.Get("Content-Type")));
  TRY(const auto patch, meta::ParseJson(call.http.body));
  TRY(const Value before, meta::ParseJson(meta::EncodeJsonOf(now)));
  TRY(const Value body,
      form == PatchForm::kJsonPatch ? meta::ApplyJsonPatch(before, patch)
                                    : meta::ApplyMergePatch(before, patch));
  return meta::FromValueAs<Scale>(body);
}

// The Scale that the request asks for, given the present one.
Result<Scale> WantedScale(const Call& call, const Scale& now) {
  TRY(const Scale wanted, call.info.verb == "update" ? SentScale(call) : PatchedScale(call, now));
  TRY_STATUS(CheckScale(call, wanted));
  return wanted;
}

bool IsApply(const Call& call) {
  const auto form = NegotiatePatch(call.http.headers.Get("Content-Type"));
  return call.info.verb == "patch" && form.ok() && *form == PatchForm::kApply;
}

// An applied Scale states one field of the object that it scales, or none.
Result<ApplyRequest> ReadScaleApply(const Call& call) {
  TRY(ApplyRequest request, ReadApplyRequest(call));
  TRY(const Value body, meta::ParseYaml(call.http.body));
  const meta::DecodeOptions strict{.field_validation = meta::FieldValidation::kStrict};
  TRY(const Scale wanted, meta::FromValueAs<Scale>(body, strict));
  TRY_STATUS(CheckScale(call, wanted));
  const meta::ScalePaths& paths = *call.info.kind->scale;
  request.configuration = Value::Object();
  if (const Value* replicas = body.Get({"spec", "replicas"})) {
    SetAt(request.configuration, paths.spec_replicas, *replicas);
  }
  SetAt(request.configuration, ".metadata.uid", wanted.metadata.uid);
  SetAt(request.configuration, ".metadata.resourceVersion", wanted.metadata.resource_version);
  return request;
}

}  // namespace

Handlers::Answer Handlers::Scale(CallPtr call) {
  const meta::KindInfo& kind = *call->info.kind;
  const ObjectKey key{.namespace_ = call->info.namespace_, .name = call->info.name};
  if (call->info.verb == "get") {
    CO_TRY(const auto stored,
           co_await registry_.Get(kind, key, std::string(call->query.Get("resourceVersion"))));
    CO_TRY(const meta::Object object, Decode(kind, stored));
    co_return AnswerScale(ScaleOf(kind, object, ObjectValue(object, ServedApiVersion(*call))));
  }
  CO_TRY(auto context, ContextFor(*call));
  Mutation mutation = [this, call, &kind](const meta::Object& current) -> Result<meta::Object> {
    Value tree = ObjectValue(current, ServedApiVersion(*call));
    const auto now = ScaleOf(kind, current, tree);
    TRY(const auto wanted, WantedScale(*call, now));
    SetAt(tree, kind.scale->spec_replicas, Value(wanted.spec.replicas));
    const DecodeTarget target{
        .scheme = scheme_, .kind = kind, .api_version = ServedApiVersion(*call)};
    std::vector<std::string> warnings;
    TRY(auto next, DecodeObjectValue(tree, meta::FieldValidation::kIgnore, target, warnings));
    // A state that the client has read is its precondition; a patch was made on the present one.
    if (!wanted.metadata.resource_version.empty()) {
      next.metadata().resource_version = wanted.metadata.resource_version;
    }
    return next;
  };
  if (IsApply(*call)) {
    CO_TRY(ApplyRequest request, ReadScaleApply(*call));
    mutation = [this, &kind, request = std::move(request)](const meta::Object& current) {
      return ApplyTo(scheme_, kind, &current, request, loop_.WallNow());
    };
    context.ownership = Ownership::kApplied;
  }
  context.subresource = Subresource::kNone;
  CO_TRY(const auto result,
         co_await registry_.Mutate(kind, key, std::move(mutation), std::move(context)));
  CO_TRY(const meta::Object object, Decode(kind, result.object));
  co_return AnswerScale(ScaleOf(kind, object, ObjectValue(object, ServedApiVersion(*call))));
}

}  // namespace berth::apiserver
