// SPDX-License-Identifier: Apache-2.0
// Api speaks JSON with one server: it encodes bodies, turns metav1.Status answers into Status, and
// passes the server's warnings on to the user.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/transport.h"
#include "meta/value.h"

namespace berth::cli {

inline constexpr std::string_view kAcceptJson = "application/json";
inline constexpr std::string_view kMergePatch = "application/merge-patch+json";
// What `get` asks for: a table, or JSON from a server that makes none.
inline constexpr std::string_view kAcceptTable =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
// What `top` asks for: what objects use, instead of the objects.
inline constexpr std::string_view kAcceptUsages =
    "application/json;as=UsageList;g=berth.dev;v=v1alpha1";

// How much `-v` shows on standard error.
enum class Verbosity : uint8_t { kQuiet, kRequests, kBodies };

class Api {
 public:
  // `err` gets warnings and, as asked for, requests. Both outlive the Api.
  Api(std::unique_ptr<Transport> transport, std::ostream& err, Verbosity verbosity);

  using Query = std::vector<std::pair<std::string, std::string>>;

  Result<meta::Value> Get(std::string path,
                          Query query = {},
                          std::string_view accept = kAcceptJson);
  Result<meta::Value> Post(std::string path, const meta::Value& body, Query query = {});
  Result<meta::Value> Put(std::string path, const meta::Value& body, Query query = {});
  // `type` is "application/merge-patch+json" and its sisters; `body` is sent as it is.
  Result<meta::Value> Patch(std::string path,
                            std::string_view type,
                            std::string body,
                            Query query = {});
  Result<meta::Value> Delete(std::string path, const meta::Value& options, Query query = {});
  // The answer's text, whatever its type.
  Result<std::string> GetText(std::string path, Query query = {});
  // The whole answer, also one that says no.
  Result<Response> Exchange(Request request);
  Result<std::unique_ptr<Streams>> Open(std::vector<Request> requests);

 private:
  Result<meta::Value> Write(std::string_view method,
                            std::string path,
                            std::string_view type,
                            std::string body,
                            Query query);
  Result<meta::Value> SendForValue(Request request);
  void ShowWarnings(const net::Headers& headers);

  std::unique_ptr<Transport> transport_;
  std::ostream& err_;
  Verbosity verbosity_;
  std::vector<std::string> warned_;  // each warning is shown once
};

}  // namespace berth::cli
