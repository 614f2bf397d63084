// SPDX-License-Identifier: Apache-2.0
#include "client/http/error_body.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/time.h"
#include "meta/json.h"
#include "net/status_map.h"

namespace berth::client {
namespace {

using meta::Value;

constexpr size_t kQuotedBodyMax = 200;
constexpr int64_t kRetryAfterMax = 3600;

CauseKind CauseKindOf(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(CauseKind::kTypeInvalid); ++i) {
    const auto kind = static_cast<CauseKind>(i);
    if (CauseKindName(kind) == name) return kind;
  }
  return CauseKind::kInvalid;
}

std::vector<Cause> CausesOf(const Value& object) {
  std::vector<Cause> out;
  const Value* causes = object.Get({"details", "causes"});
  if (causes == nullptr || !causes->is_array()) return out;
  for (const Value& cause : causes->items()) {
    out.push_back({.kind = CauseKindOf(cause.GetString({"reason"})),
                   .field = Printable(cause.GetString({"field"})),
                   .message = Printable(cause.GetString({"message"}))});
  }
  return out;
}

// What others name otherwise, and what has no name of its own (408, 431), is what its code means.
Reason ReasonOf(std::string_view name, int code) {
  const Reason named = ReasonFromName(name);
  const bool is_ours = !name.empty() && ReasonName(named) == name;
  return is_ours ? named : net::ReasonOfHttpStatus(code);
}

int64_t IntAt(const Value& object, std::initializer_list<std::string_view> path) {
  const Value* value = object.Get(path);
  return value != nullptr && value->type() == Value::Type::kInt ? value->as_int() : 0;
}

}  // namespace

Status StatusOfObject(const Value& object) {
  const std::string_view name = object.GetString({"reason"});
  const auto code = static_cast<int>(std::clamp<int64_t>(IntAt(object, {"code"}), 0, 999));
  const int known = code == 0 ? 500 : code;
  Reason reason = ReasonOf(name, known);
  if (reason == Reason::kOk) reason = Reason::kInternal;  // a failure that claims to be none
  std::string message = Printable(object.GetString({"message"}));
  if (message.empty()) message = fmt::format("the server answered {}", known);
  Status out(reason, std::move(message), CausesOf(object));
  out = out.WithObject({.group = Printable(object.GetString({"details", "group"})),
                        .kind = Printable(object.GetString({"details", "kind"})),
                        .name = Printable(object.GetString({"details", "name"})),
                        .uid = Printable(object.GetString({"details", "uid"}))});
  const int64_t retry = IntAt(object, {"details", "retryAfterSeconds"});
  if (retry <= 0) return out;
  return out.WithRetryAfter(Duration::Seconds(std::min(retry, kRetryAfterMax)));
}

Status StatusOfAnswer(int http_status, std::string_view body) {
  const auto value = meta::ParseJson(body);
  if (value.ok() && value->GetString({"kind"}) == "Status") return StatusOfObject(*value);
  Reason reason = net::ReasonOfHttpStatus(http_status);
  if (reason == Reason::kOk) reason = Reason::kInternal;
  std::string text = Printable(Trim(body.substr(0, kQuotedBodyMax)));
  if (text.empty()) text = "no further words";
  return {reason, fmt::format("the server answered {}: {}", http_status, text)};
}

}  // namespace berth::client
