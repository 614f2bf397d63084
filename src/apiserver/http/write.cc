// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "apiserver/authz/servers_own.h"
#include "apiserver/authz/write_guards.h"
#include "apiserver/cache/keys.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handlers.h"
#include "apiserver/registry/write_parts.h"
#include "base/strings.h"

namespace berth::apiserver {

Result<WriteContext> Handlers::ContextFor(Call& call, const RequestInfo& request) const {
  TRY(auto context, ReadWriteContext(call));
  TRY_STATUS(CheckServersOwn(authorizer_, call.identity, request));
  WriteGuards guards = GuardsFor(authorizer_, call.identity, request);
  context.guard = std::move(guards.write);
  context.force_guard = std::move(guards.force);
  return context;
}

Result<meta::Object> Handlers::DecodeBody(Call& call) const {
  TRY(const auto form, NegotiateBody(call.http.headers.Get("Content-Type")));
  TRY(const auto validation, ReadFieldValidation(call.query));
  DecodeTarget target{
      .scheme = scheme_, .kind = *call.info.kind, .api_version = ServedApiVersion(call)};
  TRY(auto object, DecodeObjectBody(call.http.body, form, validation, target, call.warnings));
  TRY_STATUS(CheckAgainstPath(call, object));
  return object;
}

Result<net::HttpResponse> Handlers::AnswerWith(Call& call, const WriteResult& result) const {
  TRY(const auto writer, WriterFor(call));
  // Only a dry run pays for the answer where the object would go.
  if (call.query.Has("dryRun") && call.info.subresource.empty()) {
    TRY(const auto object, Decode(StoredKind(*call.info.kind), result.object));
    placement_.WarnOfPlace(call, object);
  }
  TRY(const auto text, writer.Single(result.object));
  return JsonTextAnswer(result.created ? 201 : 200, text);
}

Handlers::Answer Handlers::Create(CallPtr call) {
  CO_TRY_STATUS(
      WriterFor(*call));  // a form that cannot be answered is refused before anything is written
  CO_TRY(auto context, ContextFor(*call));
  CO_TRY(auto object, DecodeBody(*call));
  if (call->info.kind->scope == meta::Scope::kNamespaced && call->info.namespace_.empty()) {
    co_return BadRequest("an object of kind " + std::string(call->info.kind->kind) +
                         " is created in a namespace: POST to .../namespaces/NAME/" +
                         call->info.resource);
  }
  CO_TRY_STATUS(co_await adoption_.Admit(call, &object, &context));
  call->created_name = object.metadata().name;
  CO_TRY(const auto result,
         co_await registry_.Create(ToStored(std::move(object)), std::move(context)));
  if (call->created_name.empty()) {
    CO_TRY(const auto created, Decode(StoredKind(*call->info.kind), result.object));
    call->created_name = created.metadata().name;  // made from generateName
  }
  co_return AnswerWith(*call, result);
}

Handlers::Answer Handlers::Update(CallPtr call) {
  CO_TRY_STATUS(WriterFor(*call));
  CO_TRY(auto context, ContextFor(*call));
  CO_TRY(auto object, DecodeBody(*call));
  CO_TRY(const auto result,
         co_await registry_.Update(ToStored(std::move(object)), std::move(context)));
  co_return AnswerWith(*call, result);
}

}  // namespace berth::apiserver
