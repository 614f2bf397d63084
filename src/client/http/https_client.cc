// SPDX-License-Identifier: Apache-2.0
#include "client/http/https_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/strings.h"
#include "client/http/error_body.h"
#include "client/http/object_stream.h"
#include "client/http/question.h"
#include "meta/json.h"
#include "net/url.h"
#include "rt/join_all.h"

namespace berth::client {

using meta::KindInfo;
using meta::Object;
using meta::Value;

namespace {

// A list of 100,000 machines in one piece is 150 MB.
constexpr uint64_t kAnswerBytesMax = 512ULL << 20;
constexpr std::string_view kMetadataList =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

std::string_view NameOf(Subresource subresource) {
  switch (subresource) {
    case Subresource::kNone: return "";
    case Subresource::kStatus: return "status";
    case Subresource::kFinalize: return "finalize";
  }
  return "";
}

std::string_view ContentTypeOf(PatchType type) {
  switch (type) {
    case PatchType::kJson: return "application/json-patch+json";
    case PatchType::kMerge: return "application/merge-patch+json";
    case PatchType::kStrategicMerge: return "application/strategic-merge-patch+json";
  }
  return kJson;
}

std::string BodyOf(const Object& object, const meta::Scheme& scheme) {
  std::string out = fmt::format(R"({{"apiVersion":"{}","kind":"{}",)",
                                scheme.ApiVersionOf(object.kind()),
                                object.kind().kind);
  if (!meta::EncodeJsonMembers(*object.kind().type, object.data(), out)) out.pop_back();
  return out + "}";
}

std::string BodyOf(const DeleteOptions& options) {
  Value out = Value::Object();
  out.Set("apiVersion", "v1");
  out.Set("kind", "DeleteOptions");
  switch (options.propagation) {
    case Propagation::kBackground: out.Set("propagationPolicy", "Background"); break;
    case Propagation::kForeground: out.Set("propagationPolicy", "Foreground"); break;
    case Propagation::kOrphan: out.Set("propagationPolicy", "Orphan"); break;
  }
  Value preconditions = Value::Object();
  if (!options.uid.empty()) preconditions.Set("uid", options.uid);
  if (!options.resource_version.empty()) {
    preconditions.Set("resourceVersion", options.resource_version);
  }
  if (!preconditions.members().empty()) out.Set("preconditions", std::move(preconditions));
  return meta::WriteJson(out);
}

void AddSelectors(const std::string& labels, const std::string& fields, net::Query& out) {
  if (!labels.empty()) out.Add("labelSelector", labels);
  if (!fields.empty()) out.Add("fieldSelector", fields);
}

net::Query WriteQuery(DryRun dry_run) {
  net::Query out;
  if (dry_run == DryRun::kYes) out.Add("dryRun", "All");
  return out;
}

Result<ObjectList> ReadList(const KindInfo& kind, std::string_view body, Detail detail) {
  TRY(const Value list, meta::ParseJson(body, kAnswerBytesMax));
  ObjectList out;
  out.resource_version = list.GetString({"metadata", "resourceVersion"});
  out.continue_token = list.GetString({"metadata", "continue"});
  const Value* items = list.Find("items");
  if (items == nullptr || !items->is_array()) return out;
  out.items.reserve(items->items().size());
  for (const Value& item : items->items()) {
    TRY(Object object, ReadObject(kind, item, detail));
    out.items.push_back(std::move(object));
  }
  return out;
}

}  // namespace

HttpsClient::HttpsClient(net::HttpClient& http,
                         const meta::Scheme& scheme,
                         HttpsClientOptions options)
    : http_(http), scheme_(scheme), options_(std::move(options)) {}

std::string HttpsClient::Path(const KindInfo& kind,
                              std::string_view namespace_,
                              std::string_view name,
                              Subresource subresource) const {
  const std::string group = scheme_.GroupOf(kind);
  std::string out = group.empty() ? fmt::format("/api/{}", kind.version)
                                  : fmt::format("/apis/{}/{}", group, kind.version);
  if (kind.scope == meta::Scope::kNamespaced && !namespace_.empty()) {
    out += fmt::format("/namespaces/{}", net::PercentEncode(namespace_));
  }
  out += fmt::format("/{}", kind.plural);
  if (!name.empty()) out += fmt::format("/{}", net::PercentEncode(name));
  if (const auto part = NameOf(subresource); !part.empty()) out += fmt::format("/{}", part);
  return out;
}

net::HttpClientRequest HttpsClient::Request(Question question) const {
  net::HttpClientRequest out;
  out.method = std::move(question.method);
  out.target = std::move(question.path);
  if (!question.query.pairs().empty()) out.target += "?" + question.query.Encode();
  out.headers.Set("Accept", std::string(question.accept));
  out.headers.Set("User-Agent", options_.user_agent);
  if (!options_.token.empty()) {
    out.headers.Set("Authorization", fmt::format("Bearer {}", options_.token));
  }
  if (!question.body.empty()) {
    out.headers.Set("Content-Type", std::string(question.content_type));
    out.body.emplace_back(question.body);
  }
  return out;
}

rt::Task<Result<std::string>> HttpsClient::Ask(Question question) {
  net::SendOptions options;
  options.deadline = options_.deadline;
  options.body_max = kAnswerBytesMax;
  net::HttpClientRequest request = Request(std::move(question));
  CO_TRY(net::HttpClientResponse answer, co_await http_.Send(std::move(request), options));
  if (answer.status < 200 || answer.status > 299) {
    co_return StatusOfAnswer(answer.status, answer.body);
  }
  co_return std::move(answer.body);
}

rt::Task<Result<Object>> HttpsClient::AskForObject(const KindInfo* kind, Question question) {
  CO_TRY(const std::string body, co_await Ask(std::move(question)));
  co_return ReadObject(*kind, body);
}

rt::Task<Result<Object>> HttpsClient::Get(const KindInfo& kind, ObjectKey key) {
  Question question;
  question.path = Path(kind, key.namespace_, key.name, Subresource::kNone);
  co_return co_await AskForObject(&kind, std::move(question));
}

rt::Task<Result<ObjectList>> HttpsClient::List(const KindInfo& kind, ListOptions options) {
  const KindInfo* asked = &kind;
  Question question;
  question.path = Path(kind, options.namespace_, "", Subresource::kNone);
  AddSelectors(options.label_selector, options.field_selector, question.query);
  if (options.limit > 0) question.query.Add("limit", std::to_string(options.limit));
  if (!options.continue_token.empty()) question.query.Add("continue", options.continue_token);
  if (!options.resource_version.empty()) {
    question.query.Add("resourceVersion", options.resource_version);
  }
  if (options.detail == Detail::kMetadata) question.accept = kMetadataList;
  CO_TRY(const std::string body, co_await Ask(std::move(question)));
  co_return ReadList(*asked, body, options.detail);
}

rt::Task<Result<std::unique_ptr<ObjectWatch>>> HttpsClient::Watch(const KindInfo& kind,
                                                                  WatchOptions options) {
  const KindInfo* asked = &kind;
  Question question;
  question.path = Path(kind, options.namespace_, "", Subresource::kNone);
  AddSelectors(options.label_selector, options.field_selector, question.query);
  question.query.Add("watch", "true");
  question.query.Add("allowWatchBookmarks", "true");
  if (!options.resource_version.empty()) {
    question.query.Add("resourceVersion", options.resource_version);
  }
  if (options.detail == Detail::kMetadata) {
    question.accept =
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
  }
  net::HttpClientRequest request = Request(std::move(question));
  CO_TRY(std::unique_ptr<net::HttpStream> stream,
         co_await http_.Open(std::move(request), options_.deadline));
  if (stream->status() != 200) {
    CO_TRY(const std::string body, co_await ReadRefusal(stream.get()));
    co_return StatusOfAnswer(stream->status(), body);
  }
  co_return MakeObjectStream(*asked, std::move(stream), options.detail);
}

rt::Task<Result<Object>> HttpsClient::Create(Object object, WriteOptions options) {
  Question question;
  question.method = "POST";
  const KindInfo& kind = object.kind();
  question.path = Path(kind, object.metadata().namespace_, "", options.subresource);
  question.query = WriteQuery(options.dry_run);
  question.body = BodyOf(object, scheme_);
  co_return co_await AskForObject(&kind, std::move(question));
}

rt::Task<std::vector<Result<Object>>> HttpsClient::CreateBatch(std::vector<Object> objects,
                                                               WriteOptions options) {
  const auto start = [&](size_t i) { return Create(std::move(objects[i]), options); };
  co_return co_await InTurns<Result<Object>>(objects.size(), start);
}

rt::Task<Result<Object>> HttpsClient::Update(Object object, WriteOptions options) {
  if (object.metadata().resource_version.empty()) {
    co_return BadRequest(fmt::format("update {} {}: metadata.resourceVersion is missing",
                                     object.kind().singular,
                                     Quote(object.metadata().name)));
  }
  Question question;
  question.method = "PUT";
  const KindInfo& kind = object.kind();
  question.path =
      Path(kind, object.metadata().namespace_, object.metadata().name, options.subresource);
  question.query = WriteQuery(options.dry_run);
  question.body = BodyOf(object, scheme_);
  co_return co_await AskForObject(&kind, std::move(question));
}

rt::Task<Result<Object>> HttpsClient::Patch(
    const KindInfo& kind, ObjectKey key, PatchType type, std::string body, WriteOptions options) {
  Question question;
  question.method = "PATCH";
  question.path = Path(kind, key.namespace_, key.name, options.subresource);
  question.query = WriteQuery(options.dry_run);
  question.content_type = ContentTypeOf(type);
  question.body = std::move(body);
  co_return co_await AskForObject(&kind, std::move(question));
}

rt::Task<Status> HttpsClient::Delete(const KindInfo& kind, ObjectKey key, DeleteOptions options) {
  Question question;
  question.method = "DELETE";
  question.path = Path(kind, key.namespace_, key.name, Subresource::kNone);
  question.query = WriteQuery(options.dry_run);
  if (options.force == Force::kYes) {
    question.query.Add("gracePeriodSeconds", "0");
    question.query.Add("force", "true");
  }
  question.body = BodyOf(options);
  const auto answer = co_await Ask(std::move(question));
  co_return answer.status();
}

}  // namespace berth::client
