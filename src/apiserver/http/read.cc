// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "apiserver/cache/keys.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/handlers.h"
#include "apiserver/registry/continue_token.h"
#include "base/strings.h"
#include "net/status_map.h"
#include "rt/sleep.h"

namespace berth::apiserver {
namespace {

// A list is sent in pieces of this size: large enough to fill TLS records, small enough that a list
// of 100,000 objects never stands in memory twice.
constexpr size_t kListPieceBytes = 256 * 1024;

Result<TableObject> ReadTableObject(const Query& query) {
  const auto value = query.Get("includeObject");
  if (value.empty() || value == "Metadata") return TableObject::kMetadata;
  if (value == "None") return TableObject::kNone;
  if (value == "Object") return TableObject::kObject;
  return BadRequest("query parameter includeObject=" + Quote(value) +
                    " is none of None, Metadata, Object");
}

// As Kubernetes: the answer to a token that is too old has one that is not.
Result<net::HttpResponse> ExpiredListAnswer(const Status& expired, std::string_view token) {
  TRY(const std::string present, TokenOfThePresent(token));
  meta::Value document = StatusDocument(expired);
  meta::Value metadata = meta::Value::Object();
  metadata.Set("continue", present);
  document.Set("metadata", std::move(metadata));
  return JsonAnswer(net::HttpStatusOf(expired.reason()), document);
}

}  // namespace

Handlers::Handlers(Deps deps)
    : loop_(deps.loop),
      scheme_(deps.scheme),
      registry_(deps.registry),
      authorizer_(deps.authorizer),
      placement_(deps.placement),
      adoption_({.registry = deps.registry, .authorizer = deps.authorizer, .hosts = deps.hosts}),
      watchers_(deps.metrics.GetGauge("berth_apiserver_watchers", "Watches being served.")),
      fan_out_(deps.loop) {}

std::string Handlers::ServedApiVersion(const Call& call) const {
  return meta::JoinApiVersion(scheme_.ServedSpelling(call.info.requested_group), call.info.version);
}

Result<ObjectWriter> Handlers::WriterFor(const Call& call) const {
  TRY(auto form, NegotiateAccept(call.http.headers.Get("Accept")));
  TRY(const auto table_object, ReadTableObject(call.query));
  WriterOptions options;
  options.kind = call.info.kind;
  options.api_version = ServedApiVersion(call);
  const auto& groups = scheme_.groups();
  while (options.group_index < groups.size() &&
         meta::JoinApiVersion(groups[options.group_index].group,
                              groups[options.group_index].version) != options.api_version) {
    ++options.group_index;
  }
  options.form = std::move(form);
  options.table_object = table_object;
  options.now = loop_.WallNow();
  return ObjectWriter(std::move(options));
}

Handlers::Answer Handlers::Get(CallPtr call) {
  CO_TRY(const auto writer, WriterFor(*call));
  ObjectKey key{.namespace_ = call->info.namespace_, .name = call->info.name};
  if (call->info.kind->scope == meta::Scope::kCluster) key.namespace_.clear();
  CO_TRY(const auto object,
         co_await registry_.Get(StoredKind(*call->info.kind),
                                std::move(key),
                                std::string(call->query.Get("resourceVersion"))));
  CO_TRY(const auto text, writer.Single(object));
  co_return JsonTextAnswer(200, text);
}

Handlers::Answer Handlers::List(CallPtr call) {
  CO_TRY(auto writer, WriterFor(*call));
  CO_TRY(auto selection, ReadSelection(*call));
  CO_TRY(const auto limit, QueryCount(call->query, "limit"));
  ListRequest request;
  request.selection = std::move(selection);
  request.limit = static_cast<size_t>(limit.value_or(0));
  request.continue_token = call->query.Get("continue");
  request.resource_version = call->query.Get("resourceVersion");
  request.resource_version_match = call->query.Get("resourceVersionMatch");
  auto listed = co_await registry_.List(StoredKind(*call->info.kind), std::move(request));
  if (!listed.ok() && listed.status().Is(Reason::kExpired) &&
      !call->query.Get("continue").empty()) {
    co_return ExpiredListAnswer(listed.status(), call->query.Get("continue"));
  }
  CO_TRY(ListPage page, std::move(listed));
  for (const PassedOver& one : page.passed_over) {
    call->warnings.push_back(std::string(call->info.kind->plural) + " " + Quote(one.key) +
                             " cannot be read and is left out");
  }

  size_t bytes = 0;
  for (const auto& item : page.items) bytes += item.at_rest.size();
  if (bytes <= kListPieceBytes) {
    std::string text = writer.ListHead(page);
    for (size_t i = 0; i < page.items.size(); ++i) {
      CO_TRY_STATUS(writer.ListItem(page.items[i], i == 0, text));
    }
    text += writer.ListTail();
    co_return JsonTextAnswer(200, text);
  }
  net::HttpResponse response;
  response.headers.Set("Content-Type", "application/json");
  auto shared = std::make_shared<ListPage>(std::move(page));
  response.stream = [this, call, writer, shared](net::BodyWriter& body) {
    return StreamList(call, writer, std::move(*shared), &body);
  };
  co_return response;
}

rt::Task<Status> Handlers::StreamList(CallPtr /*call*/,
                                      ObjectWriter writer,
                                      ListPage page,
                                      net::BodyWriter* body) const {
  std::string piece = writer.ListHead(page);
  piece.reserve(kListPieceBytes + kListPieceBytes / 4);
  for (size_t i = 0; i < page.items.size(); ++i) {
    CO_TRY_STATUS(writer.ListItem(page.items[i], i == 0, piece));
    page.items[i] = {};  // the rest of a slow answer holds no bytes that were sent already
    if (piece.size() < kListPieceBytes) continue;
    std::vector<Bytes> parts;
    parts.emplace_back(piece);
    CO_TRY_STATUS(co_await body->Write(std::move(parts)));
    piece.clear();
    // A client that reads as fast as we write must not have the loop to itself.
    CO_TRY_STATUS(co_await rt::Yield());
  }
  piece += writer.ListTail();
  std::vector<Bytes> parts;
  parts.emplace_back(piece);
  co_return co_await body->Write(std::move(parts));
}

}  // namespace berth::apiserver
