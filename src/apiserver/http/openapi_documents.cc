// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/openapi_documents.h"

#include <utility>

#include "apiserver/http/negotiation.h"
#include "base/strings.h"
#include "base/version.h"
#include "meta/json.h"
#include "meta/openapi/document.h"
#include "meta/openapi/gnostic.h"
#include "pki/digest.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kV2 = "/openapi/v2";
constexpr std::string_view kV3 = "/openapi/v3";

net::HttpResponse DocumentAnswer(std::string_view content_type, const Bytes& bytes) {
  net::HttpResponse response;
  response.headers.Set("Content-Type", std::string(content_type));
  response.body.push_back(bytes);
  return response;
}

}  // namespace

template <class Make>
Bytes OpenApiDocuments::Kept(std::string_view key, const Make& make) {
  const auto found = kept_.find(key);
  if (found != kept_.end()) return found->second;
  return kept_.emplace(std::string(key), make()).first->second;
}

Bytes OpenApiDocuments::V2Json() {
  return Kept("v2", [&] { return Bytes(meta::WriteJson(meta::OpenApiV2(scheme_, kVersion))); });
}

Bytes OpenApiDocuments::V2Gnostic() {
  return Kept("v2.pb", [&] { return Bytes(meta::ToGnostic(meta::OpenApiV2(scheme_, kVersion))); });
}

Bytes OpenApiDocuments::V3(std::string_view name) {
  for (const auto& served : scheme_.groups()) {
    const std::string path = meta::OpenApiV3Path(served);
    if (path != name) continue;
    return Kept(path, [&] { return Bytes(meta::WriteJson(meta::OpenApiV3(served, kVersion))); });
  }
  return {};
}

Bytes OpenApiDocuments::V3Index() {
  return Kept("v3", [&] {
    meta::Value paths = meta::Value::Object();
    for (const auto& served : scheme_.groups()) {
      const std::string path = meta::OpenApiV3Path(served);
      // Clients cache a document under its hash.
      const std::string hash = pki::Sha256Hex(V3(path).view());
      meta::Value entry = meta::Value::Object();
      entry.Set("serverRelativeURL", std::string(kV3) + '/' + path + "?hash=" + hash);
      paths.Set(path, std::move(entry));
    }
    meta::Value index = meta::Value::Object();
    index.Set("paths", std::move(paths));
    return Bytes(meta::WriteJson(index));
  });
}

Result<net::HttpResponse> OpenApiDocuments::Answer(std::string_view path, std::string_view accept) {
  if (path == kV2) {
    if (Accepts(accept, meta::kGnosticMediaTypeAsked) || Accepts(accept, meta::kGnosticMediaType)) {
      return DocumentAnswer(meta::kGnosticMediaType, V2Gnostic());
    }
    return DocumentAnswer("application/json", V2Json());
  }
  if (path == kV3) return DocumentAnswer("application/json", V3Index());
  if (path.starts_with(std::string(kV3) + '/')) {
    const Bytes document = V3(path.substr(kV3.size() + 1));
    if (!document.empty()) return DocumentAnswer("application/json", document);
  }
  return NotFound("there is no OpenAPI document at " + Quote(path));
}

}  // namespace berth::apiserver
