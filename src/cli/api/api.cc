// SPDX-License-Identifier: Apache-2.0
#include "cli/api/api.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "client/http/error_body.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr size_t kWarningsMax = 64;  // shown per command
// A list of 100,000 machines in one piece is 150 MB.
constexpr size_t kAnswerBytesMax = 512 << 20;
constexpr std::string_view kBodyJson = "application/json";

// A Warning header is `299 - "text"` with quotes and backslashes escaped.
std::string WarningText(std::string_view header) {
  const size_t open = header.find('"');
  if (open == std::string_view::npos) return Printable(header);
  std::string out;
  for (size_t i = open + 1; i < header.size() && header[i] != '"'; ++i) {
    if (header[i] == '\\' && i + 1 < header.size()) ++i;
    out += header[i];
  }
  return Printable(out);
}

}  // namespace

Api::Api(std::unique_ptr<Transport> transport, std::ostream& err, Verbosity verbosity)
    : transport_(std::move(transport)), err_(err), verbosity_(verbosity) {}

Result<Response> Api::Exchange(Request request) {
  const std::string line = fmt::format("{} {}", request.method, TargetOf(request));
  if (verbosity_ >= Verbosity::kBodies && !request.body.empty()) {
    err_ << "> " << Printable(request.body) << "\n";
  }
  auto response = transport_->Send(std::move(request));
  if (!response.ok()) {
    if (verbosity_ >= Verbosity::kRequests) err_ << line << ": no answer\n";
    return response.status();
  }
  if (verbosity_ >= Verbosity::kRequests) err_ << line << " " << response->status << "\n";
  if (verbosity_ >= Verbosity::kBodies) err_ << "< " << Printable(response->body) << "\n";
  ShowWarnings(response->headers);
  return response;
}

void Api::ShowWarnings(const net::Headers& headers) {
  for (const std::string_view header : headers.GetAll("Warning")) {
    std::string text = WarningText(header);
    if (warned_.size() >= kWarningsMax || std::ranges::find(warned_, text) != warned_.end()) {
      continue;
    }
    err_ << "Warning: " << text << "\n";
    warned_.push_back(std::move(text));
  }
}

Result<Value> Api::SendForValue(Request request) {
  const std::string line = fmt::format("{} {}", request.method, request.path);
  TRY(const Response response, Exchange(std::move(request)));
  if (response.status < 200 || response.status > 299)
    return client::StatusOfAnswer(response.status, response.body);
  auto value = meta::ParseJson(response.body, kAnswerBytesMax);
  if (!value.ok()) {
    return Internal(fmt::format("{}: the answer is not JSON: {}", line, value.status().message()));
  }
  return value;
}

Result<Value> Api::Get(std::string path, Query query, std::string_view accept) {
  Request request{.path = std::move(path), .query = std::move(query)};
  request.headers.Set("Accept", std::string(accept));
  return SendForValue(std::move(request));
}

Result<Value> Api::Write(std::string_view method,
                         std::string path,
                         std::string_view type,
                         std::string body,
                         Query query) {
  Request request{.method = std::string(method),
                  .path = std::move(path),
                  .query = std::move(query),
                  .body = std::move(body)};
  request.headers.Set("Accept", std::string(kAcceptJson));
  request.headers.Set("Content-Type", std::string(type));
  return SendForValue(std::move(request));
}

Result<Value> Api::Post(std::string path, const Value& body, Query query) {
  return Write("POST", std::move(path), kBodyJson, meta::WriteJson(body), std::move(query));
}

Result<Value> Api::Put(std::string path, const Value& body, Query query) {
  return Write("PUT", std::move(path), kBodyJson, meta::WriteJson(body), std::move(query));
}

Result<Value> Api::Patch(std::string path, std::string_view type, std::string body, Query query) {
  return Write("PATCH", std::move(path), type, std::move(body), std::move(query));
}

Result<Value> Api::Delete(std::string path, const Value& options, Query query) {
  return Write("DELETE", std::move(path), kBodyJson, meta::WriteJson(options), std::move(query));
}

Result<std::string> Api::GetText(std::string path, Query query) {
  TRY(Response response, Exchange({.path = std::move(path), .query = std::move(query)}));
  if (response.status < 200 || response.status > 299)
    return client::StatusOfAnswer(response.status, response.body);
  return std::move(response.body);
}

Result<std::unique_ptr<Streams>> Api::Open(std::vector<Request> requests) {
  if (verbosity_ >= Verbosity::kRequests) {
    for (const Request& request : requests) err_ << "GET " << TargetOf(request) << "\n";
  }
  return transport_->Open(std::move(requests));
}

}  // namespace berth::cli
