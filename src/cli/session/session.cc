// SPDX-License-Identifier: Apache-2.0
#include "cli/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/strings.h"
#include "cli/failure.h"

namespace berth::cli {
namespace {

constexpr std::array kGlobalFlags = {
    Flag{.name = "kubeconfig",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "Kubeconfig to use instead of $KUBECONFIG and ~/.kube/config.",
         .completion = Completion::kFiles},
    Flag{.name = "context",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "Context of the kubeconfig to use.",
         .completion = Completion::kContexts},
    Flag{.name = "cluster",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "Cluster of the kubeconfig to use.",
         .completion = Completion::kClusters},
    Flag{.name = "user",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "User of the kubeconfig to be.",
         .completion = Completion::kUsers},
    Flag{.name = "namespace",
         .letter = 'n',
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "Namespace to work in.",
         .completion = Completion::kNamespaces},
    Flag{.name = "server",
         .letter = 's',
         .kind = FlagKind::kText,
         .value_name = "URL",
         .help = "Server to talk to, or several of one cluster: URL,URL."},
    Flag{.name = "token",
         .kind = FlagKind::kText,
         .value_name = "TOKEN",
         .help = "Bearer token to be known by; visible to other users of this host."},
    Flag{.name = "certificate-authority",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "Certificate that the server's certificate must descend from.",
         .completion = Completion::kFiles},
    Flag{.name = "as",
         .kind = FlagKind::kText,
         .value_name = "USER",
         .help = "Act as this user; needs the right to impersonate."},
    Flag{.name = "as-group",
         .kind = FlagKind::kList,
         .value_name = "GROUP",
         .help = "Act as a member of this group; may be repeated."},
    Flag{.name = "request-timeout",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long one request may take; 0 means for ever.",
         .fallback = "0"},
    Flag{.name = "v",
         .letter = 'v',
         .kind = FlagKind::kNumber,
         .value_name = "LEVEL",
         .help = "Show requests on standard error: 6 lines, 8 bodies too.",
         .fallback = "0"},
};

Verbosity VerbosityOf(int64_t level) {
  if (level >= 8) return Verbosity::kBodies;
  return level >= 6 ? Verbosity::kRequests : Verbosity::kQuiet;
}

// Without any file there is no server: which files were meant is what helps.
Status NameMissingFiles(const KubeconfigFiles& files, const Status& status) {
  const bool none = std::ranges::none_of(
      files.paths, [](const std::string& path) { return std::filesystem::exists(path); });
  if (!none || files.origin != KubeconfigOrigin::kVariable) return status;
  return Advise(
      NotFound(fmt::format("no server is known: $KUBECONFIG names {}, which does not exist",
                           Printable(Join(files.paths, ":")))),
      FailureOf(status).next_step);
}

}  // namespace

std::span<const Flag> GlobalFlags() { return kGlobalFlags; }

KubeconfigFiles Session::kubeconfig_files() const {
  return FindKubeconfigFiles(environment_, arguments_.Text("kubeconfig"));
}

Result<Kubeconfig> Session::LoadConfig() const { return LoadKubeconfig(kubeconfig_files()); }

Result<Connection> Session::GetConnection() {
  if (connection_) return *connection_;
  const KubeconfigFiles files = kubeconfig_files();
  TRY(const Kubeconfig config, LoadKubeconfig(files));
  ConnectionFlags flags{.context = arguments_.Text("context"),
                        .cluster = arguments_.Text("cluster"),
                        .user = arguments_.Text("user"),
                        .namespace_ = arguments_.Text("namespace"),
                        .server = arguments_.Text("server"),
                        .token = arguments_.Text("token"),
                        .certificate_authority = arguments_.Text("certificate-authority"),
                        .as_user = arguments_.Text("as"),
                        .as_groups = arguments_.List("as-group"),
                        .request_timeout = {}};
  if (const Duration limit = arguments_.Span("request-timeout"); limit > Duration()) {
    flags.request_timeout = limit;
  }
  auto resolved = ResolveConnection(config, flags);
  if (!resolved.ok()) return NameMissingFiles(files, resolved.status());
  connection_ = *std::move(resolved);
  return *connection_;
}

Result<std::string> Session::Namespace() {
  TRY(const Connection connection, GetConnection());
  return connection.namespace_;
}

Result<Api*> Session::GetApi() {
  if (api_ == nullptr) {
    TRY(const Connection connection, GetConnection());
    TRY(std::unique_ptr<Transport> transport, environment_.connect(connection));
    api_ = std::make_unique<Api>(
        std::move(transport), *environment_.err, VerbosityOf(arguments_.Number("v")));
  }
  return api_.get();
}

Result<Discovery*> Session::GetDiscovery() {
  if (discovery_ == nullptr) {
    TRY(Api * api, GetApi());
    discovery_ = std::make_unique<Discovery>(*api);
  }
  return discovery_.get();
}

}  // namespace berth::cli
