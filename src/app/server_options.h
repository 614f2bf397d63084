// SPDX-License-Identifier: Apache-2.0
// What a server is told at start. Parsed from flags, environment and nothing else; each component
// gets its part.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pki/certificate_authority.h"
#include "store/etcd/etcd_options.h"

namespace berth::app {

inline constexpr std::string_view kDefaultListen = "127.0.0.1:7443";
inline constexpr uint16_t kDefaultGatewayPort = 7444;
inline constexpr std::string_view kEmbeddedStore = "embedded";
inline constexpr std::string_view kDefaultDomains = "ironcore.dev,OpenKCM.dev";

struct ServerOptions {
  std::string data_dir;
  std::string host = "127.0.0.1";          // numeric
  uint16_t port = 7443;                    // 0: the kernel chooses
  std::string gateway_host = "127.0.0.1";  // where poollets connect; numeric
  uint16_t gateway_port = kDefaultGatewayPort;
  std::vector<std::string> names;  // further names and addresses that clients use
  std::vector<std::string> domains;
  std::optional<store::EtcdOptions> etcd;  // none: the store is in the data folder
  std::string key_file;  // of what is encrypted at rest; made if missing. "": DefaultKeyFile
  pki::NoAuthority no_authority = pki::NoAuthority::kMakesOne;
  std::string audit_policy;  // a file that says what the audit log tells; "": the usual
  // With etcd: this server has led, and another one does now. Stop it, and start another one.
  std::function<void()> on_deposed = {};
  // Not empty: a file of 16 bytes that is told when commits begin and end, for crash tests.
  std::string commit_trace;
};

// Beside the authority, so that a copy of one has the other.
std::string DefaultKeyFile(const std::string& data_dir);

// Reads "ADDR:PORT" into host and port. BadRequest names the text.
Status ParseListen(std::string_view text, ServerOptions& options);
// The same for where poollets connect. "": beside `listen`, on port 7444, or on any free one if
// `listen` is on any free one.
Status ParseGatewayListen(std::string_view text, ServerOptions& options);
// Reads "ironcore.dev,OpenKCM.dev". BadRequest for a domain that is none, or one that is named
// twice.
Status ParseDomains(std::string_view text, ServerOptions& options);

}  // namespace berth::app
