// SPDX-License-Identifier: Apache-2.0
#include "app/server_flags.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "cli/files.h"
#include "net/url.h"
#include "pki/private_file.h"

namespace berth::app {
namespace {

Result<std::string> ReadFlagFile(const cli::Arguments& arguments, const std::string& flag) {
  const std::string path = arguments.Text(flag);
  if (path.empty()) return std::string();
  Result<std::string> text = cli::ReadFile(path);
  if (!text.ok()) return text.status().Wrap("--" + flag);
  if (text->empty()) return BadRequest("--" + flag + " " + Quote(path) + ": the file is empty");
  return text;
}

Status RequireBoth(const cli::Arguments& arguments, std::string_view one, std::string_view other) {
  const bool has_one = !arguments.Text(one).empty();
  if (has_one == !arguments.Text(other).empty()) return OkStatus();
  const std::string_view there = has_one ? one : other;
  const std::string_view missing = has_one ? other : one;
  return BadRequest("--" + std::string(there) + " needs --" + std::string(missing) + " beside it");
}

bool IsThisHost(std::string_view endpoint) {
  const auto parsed = net::ParseHostPort(endpoint, 0);
  if (!parsed.ok()) return false;
  const std::string& host = parsed->host;
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

std::optional<std::string> PlainRemoteMember(const store::EtcdOptions& etcd) {
  if (etcd.uses_tls()) return std::nullopt;
  const auto remote = std::ranges::find_if_not(etcd.endpoints, IsThisHost);
  if (remote == etcd.endpoints.end()) return std::nullopt;
  return *remote;
}

Result<std::optional<store::EtcdOptions>> ReadEtcdOptions(const cli::Arguments& arguments,
                                                          const std::string& where) {
  if (where == kEmbeddedStore) {
    for (const cli::Flag& flag : kEtcdFlags) {
      if (arguments.Text(flag.name).empty()) continue;
      return BadRequest("--" + std::string(flag.name) +
                        " is for a store like etcd://HOST:PORT, and " + "--store is " +
                        Quote(where));
    }
    return std::optional<store::EtcdOptions>();
  }
  store::EtcdOptions etcd;
  TRY_STATUS(store::ParseEtcdUrl(where, etcd));
  TRY_STATUS(RequireBoth(arguments, "etcd-cert", "etcd-key"));
  TRY_STATUS(RequireBoth(arguments, "etcd-user", "etcd-password-file"));
  TRY(etcd.credentials.ca_pem, ReadFlagFile(arguments, "etcd-ca"));
  TRY(etcd.credentials.certificate_pem, ReadFlagFile(arguments, "etcd-cert"));
  if (!etcd.credentials.certificate_pem.empty()) {
    if (!etcd.uses_tls()) return BadRequest("--etcd-cert needs --etcd-ca beside it");
    TRY(etcd.credentials.key_pem, pki::ReadPrivateFile(arguments.Text("etcd-key")));
  }
  etcd.user = arguments.Text("etcd-user");
  if (!etcd.user.empty()) {
    if (const auto remote = PlainRemoteMember(etcd)) {
      return BadRequest(
          "--etcd-user needs --etcd-ca beside it: without TLS the password would be "
          "sent in clear to " +
          Quote(*remote));
    }
    TRY(const std::string password, pki::ReadPrivateFile(arguments.Text("etcd-password-file")));
    etcd.password = Trim(password);
  }
  return std::optional(std::move(etcd));
}

Result<ServerOptions> ReadServerOptions(const cli::Arguments& arguments,
                                        const cli::Environment& environment) {
  ServerOptions options;
  options.data_dir = arguments.Text("data-dir");
  if (options.data_dir.empty()) options.data_dir = DefaultDataDir(environment);
  options.key_file = arguments.Text("encryption-keys");
  if (arguments.Switch("no-new-authority")) options.no_authority = pki::NoAuthority::kIsRefused;
  options.audit_policy = arguments.Text("audit-policy");
  TRY_STATUS(ParseListen(arguments.Text("listen"), options));
  TRY_STATUS(ParseGatewayListen(arguments.Text("gateway-listen"), options));
  TRY_STATUS(ParseDomains(arguments.Text("domains"), options));
  options.names = arguments.List("tls-name");
  options.commit_trace = arguments.Text("debug-commit-trace");
  TRY(options.etcd, ReadEtcdOptions(arguments, arguments.Text("store")));
  if (options.etcd.has_value() && !options.commit_trace.empty()) {
    return BadRequest("--debug-commit-trace is for the embedded store");
  }
  return options;
}

}  // namespace berth::app
