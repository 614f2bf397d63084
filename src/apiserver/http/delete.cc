// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "apis/meta_v1/delete_options.h"
#include "apiserver/cache/keys.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/handlers.h"
#include "apiserver/http/negotiation.h"
#include "base/strings.h"
#include "meta/at_rest.h"
#include "meta/json.h"
#include "meta/k8s_proto/k8s_proto.h"
#include "meta/yaml.h"

namespace berth::apiserver {
namespace {

using apis::meta_v1::DeleteOptions;

std::optional<client::Propagation> PropagationOf(const DeleteOptions& options) {
  if (options.propagation_policy == apis::meta_v1::kPropagationForeground)
    return client::Propagation::kForeground;
  if (options.propagation_policy == apis::meta_v1::kPropagationOrphan)
    return client::Propagation::kOrphan;
  if (options.propagation_policy.has_value()) return client::Propagation::kBackground;
  if (!options.orphan_dependents.has_value()) return std::nullopt;
  return *options.orphan_dependents ? client::Propagation::kOrphan
                                    : client::Propagation::kBackground;
}

Status DecodeDeleteOptions(const Call& call, DeleteOptions& options) {
  TRY(const auto form, NegotiateBody(call.http.headers.Get("Content-Type")));
  const auto& type = meta::TypeInfoOf<DeleteOptions>();
  if (form == BodyForm::kJson) return meta::DecodeJson(call.http.body, type, &options);
  if (form == BodyForm::kYaml) {
    TRY(const auto value, meta::ParseYaml(call.http.body));
    return meta::FromValue(value, type, &options);
  }
  meta::TypeMeta type_meta;
  const Status decoded = meta::DecodeKubernetesProto(call.http.body, type, &options, &type_meta);
  options.api_version = type_meta.api_version;
  options.kind = type_meta.kind;
  return decoded;
}

// Any group's DeleteOptions are the same, but another kind could pass for them: someone sent the
// object itself, and its preconditions or policy would be missing.
Status CheckKind(const DeleteOptions& options) {
  if (options.kind.empty() || options.kind == "DeleteOptions") return OkStatus();
  return BadRequest("the kind in the data (" + Printable(options.kind) +
                    ") does not match the expected kind (DeleteOptions)");
}

// Options come in the body or, from older clients, as query parameters; the body wins.
Result<DeleteOptions> ReadDeleteOptions(const Call& call) {
  DeleteOptions options;
  if (!Trim(call.http.body).empty()) {
    const Status decoded = DecodeDeleteOptions(call, options);
    // Another kind may make no sense as DeleteOptions; that it is another kind says more.
    TRY_STATUS(CheckKind(options).Wrap("delete options"));
    TRY_STATUS(decoded.Wrap("delete options"));
  }
  if (!options.propagation_policy.has_value() && call.query.Has("propagationPolicy")) {
    options.propagation_policy = call.query.Get("propagationPolicy");
  }
  if (!options.orphan_dependents.has_value() && call.query.Has("orphanDependents")) {
    TRY(options.orphan_dependents, QueryBool(call.query, "orphanDependents"));
  }
  if (!options.grace_period_seconds.has_value()) {
    TRY(options.grace_period_seconds, QueryCount(call.query, "gracePeriodSeconds"));
  }
  meta::FieldErrors errors;
  CheckDeleteOptions(options, errors);
  TRY_STATUS(errors.ToStatus("DeleteOptions", "", call.info.name));
  return options;
}

Result<DeleteRequest> ReadDeleteRequest(const Call& call, WriteContext& context) {
  TRY(const auto options, ReadDeleteOptions(call));
  if (!options.dry_run.empty()) context.dry_run = DryRun::kYes;
  DeleteRequest request;
  request.propagation = PropagationOf(options);
  TRY(const bool is_forced, QueryBool(call.query, "force"));
  if (is_forced) request.force = client::Force::kYes;
  request.grace_period_seconds = options.grace_period_seconds;
  if (options.preconditions.has_value()) {
    request.uid = options.preconditions->uid.value_or("");
    request.resource_version = options.preconditions->resource_version.value_or("");
  }
  return request;
}

}  // namespace

Handlers::Answer Handlers::Delete(CallPtr call) {
  CO_TRY(auto writer, WriterFor(*call));
  CO_TRY(auto context, ContextFor(*call));
  CO_TRY(auto request, ReadDeleteRequest(*call, context));
  ObjectKey key{.namespace_ = call->info.namespace_, .name = call->info.name};
  if (call->info.kind->scope == meta::Scope::kCluster) key.namespace_.clear();
  CO_TRY(const auto result,
         co_await registry_.Delete(
             StoredKind(*call->info.kind), std::move(key), std::move(request), std::move(context)));
  if (!result.gone) {
    CO_TRY(const auto text, writer.Single(result.object));
    co_return JsonTextAnswer(200, text);
  }
  ErrorObject object = ObjectOf(*call);
  const auto view = meta::AtRestView::Parse(result.object.at_rest.view());
  if (view.ok()) object.uid = view->uid();
  co_return JsonAnswer(200, SuccessDocument(object));
}

Handlers::Answer Handlers::DeleteCollection(CallPtr call) {
  CO_TRY(auto writer, WriterFor(*call));
  CO_TRY(auto context, ContextFor(*call));
  CO_TRY(auto request, ReadDeleteRequest(*call, context));
  ListRequest which;
  CO_TRY(which.selection, ReadSelection(*call));
  CO_TRY(const auto limit, QueryCount(call->query, "limit"));
  which.limit = static_cast<size_t>(limit.value_or(0));
  which.continue_token = call->query.Get("continue");
  CO_TRY(
      const auto page,
      co_await registry_.DeleteCollection(
          StoredKind(*call->info.kind), std::move(which), std::move(request), std::move(context)));
  std::string text = writer.ListHead(page);
  for (size_t i = 0; i < page.items.size(); ++i) {
    CO_TRY_STATUS(writer.ListItem(page.items[i], i == 0, text));
  }
  text += writer.ListTail();
  co_return JsonTextAnswer(200, text);
}

}  // namespace berth::apiserver
