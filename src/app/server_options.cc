// SPDX-License-Identifier: Apache-2.0
#include "app/server_options.h"

#include <algorithm>

#include "base/strings.h"
#include "meta/names.h"
#include "net/url.h"

namespace berth::app {

namespace {

struct Endpoint {
  std::string host;
  uint16_t port = 0;
};

Result<Endpoint> ParseEndpoint(std::string_view text) {
  // Port 0 means that the kernel chooses, so it must be written.
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return BadRequest("listen address " + Quote(text) + " is not ADDRESS:PORT, as in " +
                      std::string(kDefaultListen));
  }
  const auto port = ParseUint(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (!port || *port > 65535 || host.empty()) {
    return BadRequest("listen address " + Quote(text) + " is not ADDRESS:PORT, as in " +
                      std::string(kDefaultListen) + "; ports are 0 (any) to 65535");
  }
  return Endpoint{.host = std::string(host), .port = static_cast<uint16_t>(*port)};
}

}  // namespace

std::string DefaultKeyFile(const std::string& data_dir) {
  return data_dir + "/pki/encryption-keys";
}

Status ParseListen(std::string_view text, ServerOptions& options) {
  TRY(const Endpoint endpoint, ParseEndpoint(text));
  options.host = endpoint.host;
  options.port = endpoint.port;
  return OkStatus();
}

Status ParseGatewayListen(std::string_view text, ServerOptions& options) {
  if (text.empty()) {
    options.gateway_host = options.host;
    options.gateway_port = options.port == 0 ? 0 : kDefaultGatewayPort;
    return OkStatus();
  }
  TRY(const Endpoint endpoint, ParseEndpoint(text));
  options.gateway_host = endpoint.host;
  options.gateway_port = endpoint.port;
  return OkStatus();
}

Status ParseDomains(std::string_view text, ServerOptions& options) {
  options.domains.clear();
  for (const auto part : Split(text, ',')) {
    const std::string domain(Trim(part));
    if (!meta::IsDnsSubdomain(ToLower(domain)))
      return BadRequest("domain " + Quote(domain) + " is not a DNS name");
    const bool twice = std::ranges::any_of(
        options.domains, [&](const std::string& other) { return EqualsIgnoreCase(other, domain); });
    if (twice) return BadRequest("domain " + Quote(domain) + " is named twice");
    options.domains.push_back(domain);
  }
  return OkStatus();
}

}  // namespace berth::app
