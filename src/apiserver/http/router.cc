// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/router.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "net/url.h"

namespace berth::apiserver {
namespace {

// Methods are told apart by their case: "get" is none of them.
constexpr std::string_view kNoVerb = "other";

std::string ObjectVerb(std::string_view method) {
  if (method == "GET" || method == "HEAD") return "get";
  if (method == "POST") return "create";  // of a subresource
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return "delete";
  return std::string(kNoVerb);
}

Result<std::string> CollectionVerb(std::string_view method, const Query& query) {
  if (method == "GET" || method == "HEAD") {
    TRY(const bool is_watch, QueryBool(query, "watch"));
    return std::string(is_watch ? "watch" : "list");
  }
  return method == "DELETE" ? "deletecollection" : ObjectVerb(method);
}

// A list or watch of fieldSelector=metadata.name=X is about X, so that a rule with resourceNames
// can allow it.
std::string NameFromSelector(const Query& query) {
  constexpr std::string_view kPrefix = "metadata.name=";
  for (auto term : Split(query.Get("fieldSelector"), ',')) {
    if (!term.starts_with(kPrefix)) continue;
    term.remove_prefix(kPrefix.size());
    if (term.starts_with('=')) term.remove_prefix(1);
    return std::string(term);
  }
  return {};
}

// The parts behind /api/v1 or /apis/GROUP/VERSION. A namespace is itself a resource: in
// namespaces/NS[/status] it is the object, in namespaces/NS/RESOURCE it is the scope.
// Returns whether the path says in which namespace the resource is.
bool ReadResource(const std::vector<std::string>& parts, RequestInfo& info) {
  size_t at = 0;
  if (parts.size() >= 2 && parts[0] == "namespaces") {
    info.namespace_ = parts[1];
    const bool of_namespace =
        parts.size() == 2 ||
        (parts.size() == 3 && (parts[2] == "status" || parts[2] == "finalize"));
    if (!of_namespace) at = 2;
  }
  info.resource = parts[at];
  if (parts.size() > at + 1) info.name = parts[at + 1];
  if (parts.size() > at + 2) info.subresource = parts[at + 2];
  return at != 0;
}

// The decoded segments of a path, at least one. No name that we store has a slash or a control
// character, and letting one through would make one key look like another.
Result<std::vector<std::string>> DecodeSegments(std::string_view path) {
  while (path.ends_with('/') && path.size() > 1) path.remove_suffix(1);
  if (path.starts_with('/')) path.remove_prefix(1);
  std::vector<std::string> segments;
  for (const auto raw : Split(path, '/')) {
    auto segment = net::PercentDecode(raw);
    const bool clean = segment.has_value() && IsValidUtf8(*segment) && *segment != "." &&
                       *segment != ".." && std::ranges::none_of(*segment, [](char c) {
                         return c == '/' || (c >= 0 && c < 0x20) || c == 0x7f;
                       });
    if (!clean) return BadRequest("path segment " + Quote(raw.substr(0, 253)) + " names nothing");
    segments.push_back(*std::move(segment));
  }
  return segments;
}

}  // namespace

Result<RequestInfo> ParseRequest(const meta::Scheme& scheme,
                                 std::string_view method,
                                 std::string_view path,
                                 const Query& query) {
  RequestInfo info;
  info.path = path;
  info.verb = ToLower(method);
  TRY(auto parts, DecodeSegments(path));
  size_t used = 0;
  if (parts[0] == "api" && parts.size() >= 2) {
    info.version = parts[1];
    used = 2;
  } else if (parts[0] == "apis" && parts.size() >= 3) {
    info.requested_group = parts[1];
    info.version = parts[2];
    used = 3;
  } else {
    return info;
  }
  parts.erase(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(used));
  if (parts.empty() || parts[0].empty()) return info;  // discovery
  info.is_resource = true;
  info.group = scheme.CanonicalGroup(info.requested_group);
  // A resource path has at most namespaces/NS/RESOURCE/NAME/SUB; more is nothing that is served.
  constexpr size_t kMaxParts = 5;
  if (parts.size() > kMaxParts) return info;
  const bool is_in_namespace = ReadResource(parts, info);
  if (info.name.empty()) {
    TRY(info.verb, CollectionVerb(method, query));
  } else {
    info.verb = ObjectVerb(method);
  }
  const bool has_gap =
      std::ranges::any_of(parts, [](const std::string& part) { return part.empty(); });
  if (!has_gap) {
    info.kind = scheme.FindResource(info.requested_group, info.version, info.resource);
  }
  // What belongs to the cluster is in no namespace, nor is the right to see it given there.
  if (is_in_namespace && info.kind != nullptr && info.kind->scope == meta::Scope::kCluster) {
    info.kind = nullptr;
  }
  if (info.verb == "list" || info.verb == "watch") {
    info.name = NameFromSelector(query);
    info.field_selector = query.Get("fieldSelector");
  }
  return info;
}

}  // namespace berth::apiserver
