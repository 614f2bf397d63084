// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/answers.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "meta/json.h"
#include "net/status_map.h"

namespace berth::apiserver {
namespace {

using meta::Value;

// Kubernetes' own bounds: 4 KiB of warnings, so that no proxy refuses the header block.
constexpr size_t kMaxWarnings = 16;
constexpr size_t kMaxWarningBytes = 256;

void SetIfNotEmpty(Value& object, std::string_view key, std::string_view text) {
  if (!text.empty()) object.Set(key, text);
}

// A second owner of a field is a Conflict only where it is applied.
std::string_view CauseName(const Status& status, const Cause& cause) {
  const bool is_managed = status.Is(Reason::kConflict) && cause.kind == CauseKind::kDuplicate;
  return is_managed ? "FieldManagerConflict" : CauseKindName(cause.kind);
}

Value Details(const Status& status) {
  Value details = Value::Object();
  SetIfNotEmpty(details, "name", status.object().name);
  SetIfNotEmpty(details, "group", status.object().group);
  SetIfNotEmpty(details, "kind", status.object().kind);
  SetIfNotEmpty(details, "uid", status.object().uid);
  std::vector<Value> causes;
  for (const auto& cause : status.causes()) {
    Value item = Value::Object();
    item.Set("reason", CauseName(status, cause));
    item.Set("message", cause.message);
    SetIfNotEmpty(item, "field", cause.field);
    causes.push_back(std::move(item));
  }
  if (!causes.empty()) details.Set("causes", Value::Array(std::move(causes)));
  if (const auto after = status.retry_after()) {
    details.Set("retryAfterSeconds", std::max<int64_t>(1, after->seconds()));
  }
  return details;
}

Value StatusBase(std::string_view outcome) {
  Value document = Value::Object();
  document.Set("kind", "Status");
  document.Set("apiVersion", "v1");
  document.Set("metadata", Value::Object());
  document.Set("status", outcome);
  return document;
}

}  // namespace

Value StatusDocument(const Status& status) {
  Value document = StatusBase("Failure");
  document.Set("message", status.message());
  document.Set("reason", ReasonName(status.reason()));
  Value details = Details(status);
  if (!details.members().empty()) document.Set("details", std::move(details));
  document.Set("code", net::HttpStatusOf(status.reason()));
  return document;
}

Value SuccessDocument(const ErrorObject& object) {
  Value document = StatusBase("Success");
  Value details = Value::Object();
  SetIfNotEmpty(details, "name", object.name);
  SetIfNotEmpty(details, "group", object.group);
  SetIfNotEmpty(details, "kind", object.kind);
  SetIfNotEmpty(details, "uid", object.uid);
  document.Set("details", std::move(details));
  return document;
}

net::HttpResponse JsonTextAnswer(int code, std::string_view json) {
  net::HttpResponse response;
  response.status = code;
  response.headers.Set("Content-Type", "application/json");
  response.body.emplace_back(json);
  return response;
}

net::HttpResponse JsonAnswer(int code, const Value& document) {
  return JsonTextAnswer(code, meta::WriteJson(document));
}

net::HttpResponse RefusalAnswer(int code, std::string_view message) {
  const Reason reason = net::ReasonOfHttpStatus(code);
  std::string name(ReasonName(reason));
  if (net::HttpStatusOf(reason) != code) {
    name = net::HttpPhrase(code);
    std::erase(name, ' ');
  }
  Value document = StatusBase("Failure");
  document.Set("message", message);
  document.Set("reason", name);
  document.Set("code", code);
  return JsonAnswer(code, document);
}

net::HttpResponse TextAnswer(int code, std::string_view text) {
  net::HttpResponse response;
  response.status = code;
  response.headers.Set("Content-Type", "text/plain; charset=utf-8");
  response.headers.Set("X-Content-Type-Options", "nosniff");
  response.body.emplace_back(text);
  return response;
}

net::HttpResponse StatusAnswer(const Status& status) {
  auto response = JsonAnswer(net::HttpStatusOf(status.reason()), StatusDocument(status));
  if (const auto after = status.retry_after()) {
    response.headers.Set("Retry-After", std::to_string(std::max<int64_t>(1, after->seconds())));
  }
  if (status.Is(Reason::kUnauthorized)) response.headers.Set("WWW-Authenticate", "Bearer");
  return response;
}

void AddWarnings(net::HttpResponse& response, const std::vector<std::string>& warnings) {
  const size_t count = std::min(warnings.size(), kMaxWarnings);
  for (size_t i = 0; i < count; ++i) {
    response.headers.Add(
        "Warning", "299 - " + Quote(std::string_view(warnings[i]).substr(0, kMaxWarningBytes)));
  }
}

}  // namespace berth::apiserver
