// SPDX-License-Identifier: Apache-2.0
// The Binder over HTTPS: the subresource `binding`.
#include <utility>

#include "apis/meta_v1/binding.h"
#include "base/strings.h"
#include "client/http/https_client.h"
#include "client/http/question.h"
#include "meta/json.h"

namespace berth::client {

namespace v1 = apis::meta_v1;

namespace {

std::string_view NameOf(UnbindProof proof) {
  switch (proof) {
    case UnbindProof::kHostReleased: return v1::kProofHostReleased;
    case UnbindProof::kFenced: return v1::kProofFenced;
    case UnbindProof::kOperatorFenced: return v1::kProofOperatorFenced;
    case UnbindProof::kNeverBound: return v1::kProofNeverBound;
  }
  return "";
}

Result<v1::Binding> BindingOf(const BindRequest& request) {
  if (request.items.empty()) return BadRequest("a binding has no items");
  v1::Binding out{.api_version = std::string(v1::kBindingApiVersion),
                  .kind = std::string(v1::kBindingKind),
                  .holder = request.holder,
                  .term = request.term,
                  .items = {}};
  for (const BindItem& item : request.items) {
    if (item.kind == nullptr) return BadRequest("an item of a binding has no kind");
    if (item.key.namespace_ != request.items[0].key.namespace_) {
      return BadRequest("a binding over HTTPS is of one namespace, " + Quote(item.key.namespace_) +
                        " is not " + Quote(request.items[0].key.namespace_));
    }
    out.items.push_back({.kind = std::string(item.kind->kind),
                         .name = item.key.name,
                         .uid = item.uid,
                         .generation = item.generation,
                         .placement = item.placement,
                         .pool = item.pool,
                         .pool_uid = item.pool_uid,
                         .amounts = {item.resources.begin(), item.resources.end()},
                         .reservation = item.reservation,
                         .reservation_uid = item.reservation_uid});
  }
  return out;
}

}  // namespace

rt::Task<Result<std::vector<meta::Object>>> HttpsClient::Bind(BindRequest request) {
  CO_TRY(const v1::Binding body, BindingOf(request));
  const BindItem& first = request.items[0];
  Question question;
  question.method = "POST";
  question.path =
      Path(*first.kind, first.key.namespace_, first.key.name, Subresource::kNone) + "/binding";
  question.body = meta::EncodeJsonOf(body);
  std::vector<meta::Object> bound;
  CO_TRY(meta::Object object, co_await AskForObject(first.kind, std::move(question)));
  bound.push_back(std::move(object));
  for (size_t i = 1; i < request.items.size(); ++i) {
    CO_TRY(meta::Object joint, co_await Get(*request.items[i].kind, request.items[i].key));
    bound.push_back(std::move(joint));
  }
  co_return bound;
}

rt::Task<std::vector<Result<std::vector<meta::Object>>>> HttpsClient::BindBatch(
    std::vector<BindRequest> requests) {
  const auto start = [&](size_t i) { return Bind(std::move(requests[i])); };
  co_return co_await InTurns<Result<std::vector<meta::Object>>>(requests.size(), start);
}

rt::Task<Status> HttpsClient::Unbind(UnbindRequest request) {
  if (request.kind == nullptr) co_return BadRequest("an unbinding has no kind");
  const v1::Unbinding body{.api_version = std::string(v1::kBindingApiVersion),
                           .kind = std::string(v1::kBindingKind),
                           .uid = request.uid,
                           .placement = request.placement,
                           .proof = std::string(NameOf(request.proof)),
                           .reason = request.reason,
                           .message = request.message};
  Question question;
  question.method = "DELETE";
  question.path =
      Path(*request.kind, request.key.namespace_, request.key.name, Subresource::kNone) +
      "/binding";
  question.body = meta::EncodeJsonOf(body);
  const auto answer = co_await Ask(std::move(question));
  co_return answer.status();
}

rt::Task<std::vector<Status>> HttpsClient::UnbindBatch(std::vector<UnbindRequest> requests) {
  const auto start = [&](size_t i) { return Unbind(std::move(requests[i])); };
  co_return co_await InTurns<Status>(requests.size(), start);
}

rt::Task<Status> HttpsClient::CreateBound(meta::Object object,
                                          BindItem item,
                                          std::string holder,
                                          int64_t term) {
  const WriteOptions plain;
  CO_TRY(const meta::Object made, co_await Create(std::move(object), plain));
  item.kind = &made.kind();
  item.key = {.namespace_ = made.metadata().namespace_, .name = made.metadata().name};
  item.uid = made.metadata().uid;
  item.generation = made.metadata().generation;
  item.placement = 0;
  BindRequest request;
  request.holder = std::move(holder);
  request.term = term;
  const ObjectKey key = item.key;
  request.items.push_back(std::move(item));
  Result<std::vector<meta::Object>> bound = co_await Bind(std::move(request));
  if (bound.ok()) co_return OkStatus();
  DeleteOptions options;
  options.uid = made.metadata().uid;
  const Status deleted = co_await Delete(made.kind(), key, options);
  if (!deleted.ok()) co_return bound.status().Wrap("it stays, unbound: " + deleted.ToString());
  co_return bound.status();
}

rt::Task<std::vector<Status>> HttpsClient::CreateBoundBatch(meta::Object model,
                                                            std::vector<BindItem> items,
                                                            std::string holder,
                                                            int64_t term) {
  const auto start = [&](size_t i) {
    meta::Object copy = model;
    copy.metadata().name = items[i].key.name;
    return CreateBound(std::move(copy), std::move(items[i]), holder, term);
  };
  co_return co_await InTurns<Status>(items.size(), start);
}

}  // namespace berth::client
