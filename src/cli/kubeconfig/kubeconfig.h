// SPDX-License-Identifier: Apache-2.0
// A Kubeconfig says where servers are, who we are, and which of both to use: kubectl's file format.
// Several files are merged as kubectl merges them: the first that says something wins.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "meta/value.h"

namespace berth::cli {

// The extension of a cluster that names all servers of it; kubectl keeps it and uses `server`.
inline constexpr std::string_view kServersExtension = "berth.dev/servers";
inline constexpr size_t kServersMax = 16;

struct ClusterEntry {
  std::string server;
  std::vector<std::string> servers;        // all of them, in the extension berth.dev/servers
  std::string certificate_authority;       // a file
  std::string certificate_authority_data;  // PEM; wins over the file
  std::string tls_server_name;
  bool insecure_skip_tls_verify = false;
  bool operator==(const ClusterEntry&) const = default;
};

struct UserEntry {
  std::string client_certificate;  // files
  std::string client_key;
  std::string client_certificate_data;  // PEM; wins over the files
  std::string client_key_data;
  std::string token;
  std::string token_file;
  std::string as;  // whom to impersonate, "" for nobody
  std::vector<std::string> as_groups;
  // A way to log in that we do not have: "exec", "auth-provider", "username".
  std::string foreign;
  bool operator==(const UserEntry&) const = default;
};

struct ContextEntry {
  std::string cluster;
  std::string user;
  std::string namespace_;
  bool operator==(const ContextEntry&) const = default;
};

struct Kubeconfig {
  std::string current_context;
  std::map<std::string, ClusterEntry> clusters;
  std::map<std::string, UserEntry> users;
  std::map<std::string, ContextEntry> contexts;
  bool operator==(const Kubeconfig&) const = default;
};

// Reads the parsed file. Relative paths in it are relative to `folder`. Unknown members are
// ignored; members of the wrong type are BadRequest with their path.
Result<Kubeconfig> KubeconfigFromValue(const meta::Value& value, std::string_view folder);

// Adds what `into` does not have yet.
void MergeKubeconfig(Kubeconfig& into, const Kubeconfig& more);

// Writes the servers into a cluster's object of the file, and keeps what else is there. None
// removes them.
void SetServers(meta::Value& cluster, const std::vector<std::string>& servers);

enum class Secrets : uint8_t { kRedacted, kShown };
// The file again, for `config view`.
meta::Value KubeconfigToValue(const Kubeconfig& config, Secrets secrets);

}  // namespace berth::cli
