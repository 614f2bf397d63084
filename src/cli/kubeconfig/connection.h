// SPDX-License-Identifier: Apache-2.0
// A Connection is everything needed to talk to one cluster as one user: what a kubeconfig and the
// command line come to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/arguments.h"
#include "cli/environment.h"
#include "cli/kubeconfig/kubeconfig.h"

namespace berth::cli {

struct Connection {
  std::string server;                 // "https://127.0.0.1:8443"
  std::vector<std::string> others;    // servers of the same cluster, tried when it is gone
  std::string certificate_authority;  // PEM; empty: what the system trusts
  std::string tls_server_name;        // empty: the server's host
  std::string client_certificate;     // PEM; empty: none
  std::string client_key;
  std::string token;
  std::string namespace_ = "default";
  std::string impersonate_user;  // "" for nobody
  std::vector<std::string> impersonate_groups;
  std::string context;                      // its name, for messages; "" without a kubeconfig
  std::optional<Duration> request_timeout;  // none: wait as long as it takes
};

enum class KubeconfigOrigin : uint8_t { kFlag, kVariable, kHome, kDataDir, kNone };

struct KubeconfigFiles {
  KubeconfigOrigin origin = KubeconfigOrigin::kNone;
  std::vector<std::string> paths;
};

// Where to look, first hit: --kubeconfig, $KUBECONFIG (several, separated by ':'), ~/.kube/config,
// $BERTH_DATA_DIR/kubeconfig, ~/.local/share/berth/kubeconfig, /var/lib/berth/kubeconfig. All but
// the first two only if they can be read.
KubeconfigFiles FindKubeconfigFiles(const Environment& environment, const std::string& flag);

// Reads and merges the files. A missing file of $KUBECONFIG is skipped; --kubeconfig must exist.
Result<Kubeconfig> LoadKubeconfig(const KubeconfigFiles& files);

// Where `config use-context` writes: the first file that exists, else the last.
std::string FileToChange(const KubeconfigFiles& files);

// The global flags that choose a connection, as one table. NotFound names a context, cluster or
// user that is not there and suggests the nearest.
struct ConnectionFlags {
  std::string context;
  std::string cluster;
  std::string user;
  std::string namespace_;
  std::string server;  // or several, separated by ','
  std::string token;
  std::string certificate_authority;  // a file
  std::string as_user;
  std::vector<std::string> as_groups;
  std::optional<Duration> request_timeout;
};

Result<Connection> ResolveConnection(const Kubeconfig& config, const ConnectionFlags& flags);

}  // namespace berth::cli
