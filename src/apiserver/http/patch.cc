// SPDX-License-Identifier: Apache-2.0
#include "meta/patch/patch.h"

#include <utility>

#include "apiserver/cache/keys.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handlers.h"
#include "apiserver/registry/write_parts.h"
#include "base/strings.h"
#include "meta/field_errors.h"

namespace berth::apiserver {
namespace {

Result<meta::Value> Patched(const Call& call, PatchForm form, const meta::Value& current) {
  TRY(const auto patch, meta::ParseJson(call.http.body));
  switch (form) {
    case PatchForm::kJsonPatch: return meta::ApplyJsonPatch(current, patch);
    case PatchForm::kMergePatch: return meta::ApplyMergePatch(current, patch);
    case PatchForm::kStrategicMergePatch:
      return meta::ApplyStrategicMergePatch(current, patch, *call.info.kind->type);
    case PatchForm::kApply: break;  // has a handler of its own
  }
  return Internal("unknown form of patch");
}

Status RefuseForce() {
  meta::FieldErrors errors;
  errors.Forbidden(meta::FieldPath("force"), "may not be specified for non-apply patch");
  return errors.ToStatus("PatchOptions", "meta.k8s.io", "");
}

}  // namespace

Result<meta::Object> Handlers::ApplyPatch(Call& call, const meta::Object& current) const {
  TRY(const auto form, NegotiatePatch(call.http.headers.Get("Content-Type")));
  TRY(const auto validation, ReadFieldValidation(call.query));
  const std::string api_version = ServedApiVersion(call);
  const meta::Value before = ObjectValue(FromStored(*call.info.kind, current), api_version);
  TRY(const auto after, Patched(call, form, before));
  DecodeTarget target{.scheme = scheme_, .kind = *call.info.kind, .api_version = api_version};
  call.warnings.clear();  // a patch that runs again after a conflict warns once
  TRY(auto object, DecodeObjectValue(after, validation, target, call.warnings));
  NoteReset(after, object);
  TRY_STATUS(CheckAgainstPath(call, object));
  return ToStored(std::move(object));
}

Handlers::Answer Handlers::Patch(CallPtr call) {
  CO_TRY_STATUS(WriterFor(*call));
  CO_TRY(const auto form, NegotiatePatch(call->http.headers.Get("Content-Type")));
  if (form == PatchForm::kApply) co_return co_await Apply(call);
  if (call->query.Has("force")) co_return RefuseForce();
  CO_TRY(auto context, ContextFor(*call));
  ObjectKey key{.namespace_ = call->info.namespace_, .name = call->info.name};
  if (call->info.kind->scope == meta::Scope::kCluster) key.namespace_.clear();
  Mutation mutation = [this, call](const meta::Object& current) {
    return ApplyPatch(*call, current);
  };
  CO_TRY(
      const auto result,
      co_await registry_.Mutate(
          StoredKind(*call->info.kind), std::move(key), std::move(mutation), std::move(context)));
  co_return AnswerWith(*call, result);
}

}  // namespace berth::apiserver
