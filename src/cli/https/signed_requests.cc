// SPDX-License-Identifier: Apache-2.0
#include "cli/https/signed_requests.h"

#include <fmt/core.h>

#include <utility>

#include "base/strings.h"
#include "base/version.h"
#include "net/tls.h"
#include "net/url.h"

namespace berth::cli {

Result<std::unique_ptr<net::HttpClient>> NewHttpClient(rt::AsioLoop& loop,
                                                       const Connection& connection) {
  const net::TlsClientOptions tls{.ca_pem = connection.certificate_authority,
                                  .certificate_pem = connection.client_certificate,
                                  .key_pem = connection.client_key};
  net::HttpClientOptions options;
  TRY(options.tls, net::TlsContext::NewClient(tls));
  options.url = connection.server;
  options.server_name = connection.tls_server_name;
  return net::HttpClient::New(loop, std::move(options));
}

Result<SignedRequests> SignedRequests::For(const Connection& connection) {
  auto url = net::ParseUrl(connection.server);
  if (!url.ok()) return url.status().Wrap(fmt::format("server {}", Quote(connection.server)));
  SignedRequests out;
  out.prefix_ = url->path == "/" ? "" : url->path;
  while (out.prefix_.ends_with('/')) out.prefix_.pop_back();
  if (!connection.token.empty()) out.authorization_ = fmt::format("Bearer {}", connection.token);
  out.impersonate_user_ = connection.impersonate_user;
  out.impersonate_groups_ = connection.impersonate_groups;
  return out;
}

net::HttpClientRequest SignedRequests::Make(Request request) const {
  net::HttpClientRequest out;
  out.target = prefix_ + TargetOf(request);
  out.method = std::move(request.method);
  out.headers = std::move(request.headers);
  out.headers.Set("User-Agent", fmt::format("berth/{}", kVersion));
  if (!authorization_.empty()) out.headers.Set("Authorization", authorization_);
  if (!impersonate_user_.empty()) out.headers.Set("Impersonate-User", impersonate_user_);
  for (const std::string& group : impersonate_groups_) out.headers.Add("Impersonate-Group", group);
  if (!request.body.empty()) out.body.emplace_back(request.body);
  return out;
}

}  // namespace berth::cli
