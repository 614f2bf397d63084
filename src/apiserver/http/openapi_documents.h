// SPDX-License-Identifier: Apache-2.0
// Serves /openapi/v2 and /openapi/v3. Documents are built when first asked for and kept as bytes.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "meta/scheme.h"
#include "net/http.h"

namespace berth::apiserver {

class OpenApiDocuments {
 public:
  explicit OpenApiDocuments(const meta::Scheme& scheme) : scheme_(scheme) {}

  // NotFound for a path that names no document.
  Result<net::HttpResponse> Answer(std::string_view path, std::string_view accept);

 private:
  Bytes V2Json();
  Bytes V2Gnostic();
  Bytes V3Index();
  // Empty if `name` ("apis/GROUP/VERSION") is not served.
  Bytes V3(std::string_view name);
  // The bytes kept under `key`, made by `make` the first time.
  template <class Make>
  Bytes Kept(std::string_view key, const Make& make);

  const meta::Scheme& scheme_;
  std::map<std::string, Bytes, std::less<>>
      kept_;  // two of v2, one of v3 per group-version, the index
};

}  // namespace berth::apiserver
