// SPDX-License-Identifier: Apache-2.0
// The subresource `binding` of machines, volumes and buckets.
#include "apis/meta_v1/binding.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apis/placement.h"
#include "apiserver/authz/escalation.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/handlers.h"
#include "apiserver/http/negotiation.h"
#include "apiserver/registry/write_parts.h"
#include "base/strings.h"
#include "client/binder.h"
#include "meta/json.h"
#include "meta/validate.h"
#include "meta/yaml.h"

namespace berth::apiserver {
namespace {

namespace v1 = apis::meta_v1;

// Decodes and checks a body that is no object of the API.
template <class T>
Result<T> ReadBody(const Call& call) {
  TRY(const auto form, NegotiateBody(call.http.headers.Get("Content-Type")));
  const meta::DecodeOptions strict{.field_validation = meta::FieldValidation::kStrict};
  T body;
  if (form == BodyForm::kJson) {
    TRY_STATUS(meta::DecodeJson(call.http.body, meta::TypeInfoOf<T>(), &body, strict));
  } else if (form == BodyForm::kYaml) {
    TRY(const auto value, meta::ParseYaml(call.http.body));
    TRY_STATUS(meta::FromValue(value, meta::TypeInfoOf<T>(), &body, strict));
  } else {
    return Status(Reason::kUnsupportedMediaType, "a binding is JSON or YAML");
  }
  if (!body.kind.empty() && body.kind != v1::kBindingKind) {
    return BadRequest("the kind in the data (" + Printable(body.kind) +
                      ") does not match the expected kind (Binding)");
  }
  if (!body.api_version.empty() && body.api_version != v1::kBindingApiVersion) {
    return BadRequest("the API version in the data (" + Printable(body.api_version) +
                      ") does not match the expected API version (" +
                      std::string(v1::kBindingApiVersion) + ")");
  }
  meta::FieldErrors errors;
  meta::ValidateFields(meta::TypeInfoOf<T>(), &body, errors);
  TRY_STATUS(errors.ToStatus(v1::kBindingKind, "berth.dev", call.info.name));
  return body;
}

const meta::KindInfo* PlaceableKind(const meta::Scheme& scheme, std::string_view name) {
  for (const meta::KindInfo* kind : scheme.kinds()) {
    if (apis::IsPlaceable(*kind) && kind->kind == name) return kind;
  }
  return nullptr;
}

Result<client::BindItem> ItemOf(const meta::Scheme& scheme,
                                const Call& call,
                                v1::BindingItem item) {
  const meta::KindInfo* kind = PlaceableKind(scheme, item.kind);
  if (kind == nullptr) {
    return BadRequest("kind " + Quote(item.kind) + " is not bound to pools");
  }
  return client::BindItem{.kind = kind,
                          .key = {.namespace_ = call.info.namespace_, .name = std::move(item.name)},
                          .uid = std::move(item.uid),
                          .generation = item.generation,
                          .placement = item.placement,
                          .pool = std::move(item.pool),
                          .pool_uid = std::move(item.pool_uid),
                          .resources = {item.amounts.begin(), item.amounts.end()},
                          .reservation = std::move(item.reservation),
                          .reservation_uid = std::move(item.reservation_uid)};
}

client::UnbindProof ProofOf(std::string_view proof) {
  if (proof == v1::kProofFenced) return client::UnbindProof::kFenced;
  if (proof == v1::kProofOperatorFenced) return client::UnbindProof::kOperatorFenced;
  if (proof == v1::kProofNeverBound) return client::UnbindProof::kNeverBound;
  return client::UnbindProof::kHostReleased;
}

}  // namespace

Result<client::BindRequest> Handlers::BindRequestOf(const Call& call) const {
  TRY(v1::Binding body, ReadBody<v1::Binding>(call));
  client::BindRequest request;
  request.holder = std::move(body.holder);
  request.term = body.term;
  for (v1::BindingItem& item : body.items) {
    TRY(client::BindItem made, ItemOf(scheme_, call, std::move(item)));
    // The path gave the right to bind its own kind only.
    RequestInfo right = call.info;
    right.group = scheme_.GroupOf(*made.kind);
    right.resource = made.kind->plural;
    right.name = made.key.name;
    TRY_STATUS(authorizer_.Check(call.identity, right));
    request.items.push_back(std::move(made));
  }
  if (request.items.empty() || request.items[0].kind != call.info.kind ||
      request.items[0].key.name != call.info.name) {
    return BadRequest("the first item of a binding is the object of its path");
  }
  return request;
}

Handlers::Answer Handlers::Bind(CallPtr call) {
  CO_TRY(const auto writer, WriterFor(*call));
  if (call->query.Has("dryRun")) co_return BadRequest("a binding has no dry run");
  CO_TRY(client::BindRequest request, BindRequestOf(*call));
  std::vector<client::BindRequest> requests;
  requests.push_back(std::move(request));
  const auto verdicts = co_await registry_.binder().BindBatch(std::move(requests));
  CO_TRY_STATUS(verdicts[0]);
  ObjectKey key{.namespace_ = call->info.namespace_, .name = call->info.name};
  CO_TRY(const StoredObject bound, co_await registry_.Get(*call->info.kind, std::move(key), ""));
  CO_TRY(const auto text, writer.Single(bound));
  co_return JsonTextAnswer(201, text);
}

rt::Task<Status> Handlers::CheckProof(CallPtr call, client::UnbindRequest request) const {
  if (request.proof != client::UnbindProof::kOperatorFenced) co_return OkStatus();
  const Result<StoredObject> stored = co_await registry_.Get(*request.kind, request.key, "");
  if (stored.status().Is(Reason::kNotFound)) co_return OkStatus();
  CO_TRY_STATUS(stored);
  CO_TRY(const meta::Object object, Decode(*request.kind, *stored));
  co_return CheckLettingGo(authorizer_, call->identity, object);
}

Handlers::Answer Handlers::Unbind(CallPtr call) {
  if (call->query.Has("dryRun")) co_return BadRequest("a binding has no dry run");
  CO_TRY(const v1::Unbinding body, ReadBody<v1::Unbinding>(*call));
  const client::UnbindRequest request{
      .kind = call->info.kind,
      .key = {.namespace_ = call->info.namespace_, .name = call->info.name},
      .uid = body.uid,
      .placement = body.placement,
      .proof = ProofOf(body.proof),
      .reason = body.reason,
      .message = body.message};
  // The placement says which pool it is, so that a later one needs no other right.
  CO_TRY_STATUS(co_await CheckProof(call, request));
  const std::vector<client::UnbindRequest> requests = {request};
  const std::vector<Status> verdicts = co_await registry_.binder().UnbindBatch(requests);
  CO_TRY_STATUS(verdicts[0]);
  co_return JsonAnswer(200, SuccessDocument(ObjectOf(*call)));
}

}  // namespace berth::apiserver
