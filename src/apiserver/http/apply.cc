// SPDX-License-Identifier: Apache-2.0
// Server-side apply: PATCH with application/apply-patch+yaml.
#include <utility>

#include "apiserver/http/answers.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handlers.h"
#include "base/strings.h"
#include "meta/yaml.h"

namespace berth::apiserver {
namespace {

// Found missing, then found made by somebody else: each time by another one.
constexpr int kAttemptsMax = 5;

Result<ApplyRequest> ReadApply(Call& call, const DecodeTarget& target) {
  TRY(ApplyRequest request, ReadApplyRequest(call));
  if (target.kind.view != nullptr) {
    return Status(Reason::kUnsupportedMediaType,
                  "kind " + std::string(target.kind.kind) + " in " + target.api_version +
                      " is a view of another kind: apply it there");
  }
  TRY(meta::Value configuration, meta::ParseYaml(call.http.body));
  if (!configuration.is_object()) {
    return BadRequest("the configuration must be an object, not " +
                      std::string(configuration.type_name()));
  }
  if (configuration.GetString({"apiVersion"}).empty() ||
      configuration.GetString({"kind"}).empty()) {
    return BadRequest("the configuration must say its apiVersion and kind");
  }
  TRY(meta::Object object,
      DecodeObjectValue(configuration, meta::FieldValidation::kStrict, target, call.warnings));
  if (configuration.Get({"metadata", "managedFields"}) != nullptr &&
      !configuration.Get({"metadata", "managedFields"})->is_null()) {
    return BadRequest("metadata.managedFields must be nil");
  }
  TRY_STATUS(CheckAgainstPath(call, object));
  request.configuration = std::move(configuration);
  return request;
}

// A state that was read before cannot be the state of what is not there.
Status CheckMayBeNew(const Call& call, const meta::Value& configuration) {
  const auto uid = configuration.GetString({"metadata", "uid"});
  if (!uid.empty()) {
    return Conflict("uid mismatch: the provided object specified uid " + Printable(uid) +
                    ", and no existing object was found")
        .WithObject(ObjectOf(call));
  }
  if (!configuration.GetString({"metadata", "resourceVersion"}).empty()) {
    return Conflict("metadata.resourceVersion is set, and no existing object was found")
        .WithObject(ObjectOf(call));
  }
  return OkStatus();
}

}  // namespace

Handlers::Answer Handlers::Apply(CallPtr call) {
  const meta::KindInfo& kind = *call->info.kind;
  const DecodeTarget target{
      .scheme = scheme_, .kind = kind, .api_version = ServedApiVersion(*call)};
  CO_TRY(const ApplyRequest request, ReadApply(*call, target));
  ObjectKey key{.namespace_ = call->info.namespace_, .name = call->info.name};
  if (kind.scope == meta::Scope::kCluster) key.namespace_.clear();
  Mutation mutation = [this, &kind, &request](const meta::Object& current) {
    return ApplyTo(scheme_, kind, &current, request, loop_.WallNow());
  };
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    CO_TRY(WriteContext context, ContextFor(*call));
    context.ownership = Ownership::kApplied;
    const auto result = co_await registry_.Mutate(kind, key, mutation, std::move(context));
    if (result.ok()) co_return AnswerWith(*call, *result);
    if (!result.status().Is(Reason::kNotFound) || !call->info.subresource.empty()) {
      co_return result.status();
    }
    auto created = co_await CreateApplied(call, request);
    if (!created.status().Is(Reason::kAlreadyExists)) co_return created;
  }
  co_return Conflict("the object comes and goes: it was made by others " +
                     std::to_string(kAttemptsMax) + " times while it was applied")
      .WithObject(ObjectOf(*call));
}

Handlers::Answer Handlers::CreateApplied(CallPtr call, ApplyRequest request) {
  const meta::KindInfo& kind = *call->info.kind;
  CO_TRY_STATUS(CheckMayBeNew(*call, request.configuration));
  RequestInfo info = call->info;
  info.verb = "create";
  CO_TRY_STATUS(authorizer_.Check(call->identity, info));
  CO_TRY(WriteContext context, ContextFor(*call, info));
  context.ownership = Ownership::kApplied;
  CO_TRY(meta::Object object, ApplyTo(scheme_, kind, nullptr, request, loop_.WallNow()));
  CO_TRY_STATUS(CheckAgainstPath(*call, object));
  CO_TRY_STATUS(co_await adoption_.Admit(call, &object, &context));
  CO_TRY(const auto result, co_await registry_.Create(std::move(object), std::move(context)));
  co_return AnswerWith(*call, result);
}

}  // namespace berth::apiserver
