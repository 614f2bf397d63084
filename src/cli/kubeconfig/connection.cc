// SPDX-License-Identifier: Apache-2.0
#include "cli/kubeconfig/connection.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "meta/yaml.h"

namespace berth::cli {
namespace {

// Where `berth up` keeps its data by default, as root and as anybody else.
constexpr std::string_view kSystemKubeconfig = "/var/lib/berth/kubeconfig";
constexpr std::string_view kUserKubeconfig = ".local/share/berth/kubeconfig";

bool CanRead(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

template <class T>
Result<T> Look(const std::map<std::string, T>& entries,
               const std::string& name,
               std::string_view what) {
  const auto found = entries.find(name);
  if (found != entries.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, entry] : entries) names.push_back(known);
  std::string message = fmt::format("the kubeconfig has no {} {}", what, Quote(name));
  if (const auto nearest = Nearest(name, names)) {
    message += fmt::format("; did you mean {}?", Quote(*nearest));
  }
  return Advise(NotFound(std::move(message)), "berth config get-contexts shows what there is");
}

// The data itself, or the content of the file.
Result<std::string> DataOrFile(const std::string& data,
                               const std::string& file,
                               std::string_view what) {
  if (!data.empty() || file.empty()) return data;
  auto content = ReadFile(file);
  if (!content.ok()) return content.status().Wrap(what);
  return content;
}

void AddServer(const std::string& server, Connection& out) {
  if (out.server.empty()) {
    out.server = server;
  } else if (server != out.server && std::ranges::find(out.others, server) == out.others.end()) {
    out.others.push_back(server);
  }
}

Status ApplyCluster(const ClusterEntry& cluster, std::string_view name, Connection& out) {
  if (cluster.insecure_skip_tls_verify) {
    return Advise(
        BadRequest(fmt::format("cluster {} sets insecure-skip-tls-verify; berth always checks the "
                               "server's certificate",
                               Quote(name))),
        "put the server's CA into certificate-authority-data");
  }
  out.server = cluster.server;
  for (const std::string& other : cluster.servers) AddServer(other, out);
  out.tls_server_name = cluster.tls_server_name;
  TRY(out.certificate_authority,
      DataOrFile(cluster.certificate_authority_data,
                 cluster.certificate_authority,
                 fmt::format("cluster {}: certificate-authority", Quote(name))));
  return OkStatus();
}

Status ApplyUser(const UserEntry& user, std::string_view name, Connection& out) {
  if (!user.foreign.empty()) {
    return Advise(
        BadRequest(fmt::format(
            "user {} logs in with {}, which berth does not do", Quote(name), user.foreign)),
        "use a token (berth token create) or a client certificate");
  }
  TRY(out.client_certificate,
      DataOrFile(user.client_certificate_data,
                 user.client_certificate,
                 fmt::format("user {}: client-certificate", Quote(name))));
  TRY(out.client_key,
      DataOrFile(
          user.client_key_data, user.client_key, fmt::format("user {}: client-key", Quote(name))));
  out.impersonate_user = user.as;
  out.impersonate_groups = user.as_groups;
  // kubectl's order: the file, which may be renewed, wins over the token beside it.
  out.token = user.token;
  if (user.token_file.empty()) return OkStatus();
  auto token = ReadFile(user.token_file);
  if (!token.ok()) return token.status().Wrap(fmt::format("user {}: tokenFile", Quote(name)));
  out.token = std::string(Trim(*token));
  return OkStatus();
}

// Flags replace what the kubeconfig says as a whole: another user is not in the first one's groups.
Status ApplyImpersonation(const ConnectionFlags& flags, Connection& out) {
  if (!flags.as_user.empty()) {
    out.impersonate_user = flags.as_user;
    out.impersonate_groups = flags.as_groups;
  } else if (!flags.as_groups.empty()) {
    out.impersonate_groups = flags.as_groups;
  }
  if (out.impersonate_groups.empty() || !out.impersonate_user.empty()) return OkStatus();
  return Advise(BadRequest("a group cannot be impersonated without a user"),
                "--as=USER --as-group=GROUP");
}

Status CheckServer(const std::string& server) {
  if (server.starts_with("https://")) return OkStatus();
  if (server.starts_with("http://")) {
    return BadRequest(fmt::format(
        "server {}: berth speaks https only; nothing is sent in the clear", Quote(server)));
  }
  return BadRequest(fmt::format("server {} is not an https URL", Quote(server)));
}

// "https://" may be left out on the command line.
std::string WithScheme(const std::string& server) {
  return server.contains("://") ? server : fmt::format("https://{}", server);
}

// "a,b,c": whatever the kubeconfig names is not asked.
Status ApplyServers(const std::string& flag, Connection& out) {
  if (flag.empty()) return OkStatus();
  out.server.clear();
  out.others.clear();
  for (const std::string_view server : Split(flag, ',')) {
    if (Trim(server).empty()) {
      return BadRequest(
          fmt::format("--server {}: a name between the commas is missing", Quote(flag)));
    }
    AddServer(WithScheme(std::string(Trim(server))), out);
  }
  if (out.others.size() < kServersMax) return OkStatus();
  return BadRequest(fmt::format(
      "--server names {} servers; at most {} are allowed", out.others.size() + 1, kServersMax));
}

}  // namespace

KubeconfigFiles FindKubeconfigFiles(const Environment& environment, const std::string& flag) {
  if (!flag.empty()) return {.origin = KubeconfigOrigin::kFlag, .paths = {flag}};
  KubeconfigFiles out;
  for (const std::string_view path : Split(environment.Variable("KUBECONFIG"), ':')) {
    if (!path.empty()) out.paths.emplace_back(path);
  }
  if (!out.paths.empty()) {
    out.origin = KubeconfigOrigin::kVariable;
    return out;
  }
  std::vector<std::pair<KubeconfigOrigin, std::string>> places;
  if (const auto home = environment.Variable("HOME"); !home.empty()) {
    places.emplace_back(KubeconfigOrigin::kHome, fmt::format("{}/.kube/config", home));
  }
  if (const auto data = environment.Variable("BERTH_DATA_DIR"); !data.empty()) {
    places.emplace_back(KubeconfigOrigin::kDataDir, fmt::format("{}/kubeconfig", data));
  }
  if (const auto home = environment.Variable("HOME"); !home.empty()) {
    places.emplace_back(KubeconfigOrigin::kDataDir, fmt::format("{}/{}", home, kUserKubeconfig));
  }
  places.emplace_back(KubeconfigOrigin::kDataDir, kSystemKubeconfig);
  for (auto& [origin, path] : places) {
    if (CanRead(path)) return {.origin = origin, .paths = {std::move(path)}};
  }
  return out;
}

Result<Kubeconfig> LoadKubeconfig(const KubeconfigFiles& files) {
  Kubeconfig out;
  for (const std::string& path : files.paths) {
    const auto content = ReadFile(path);
    if (!content.ok()) {
      if (content.status().Is(Reason::kNotFound) && files.origin == KubeconfigOrigin::kVariable) {
        continue;
      }
      return content.status().Wrap("kubeconfig");
    }
    const auto value = meta::ParseYaml(*content);
    if (!value.ok()) return value.status().Wrap(fmt::format("kubeconfig {}", Printable(path)));
    const std::string folder = std::filesystem::absolute(path).parent_path().string();
    const auto config = KubeconfigFromValue(*value, folder);
    if (!config.ok()) return config.status().Wrap(fmt::format("kubeconfig {}", Printable(path)));
    MergeKubeconfig(out, *config);
  }
  return out;
}

std::string FileToChange(const KubeconfigFiles& files) {
  for (const std::string& path : files.paths) {
    if (std::filesystem::exists(path)) return path;
  }
  return files.paths.empty() ? std::string() : files.paths.back();
}

Result<Connection> ResolveConnection(const Kubeconfig& config, const ConnectionFlags& flags) {
  Connection out;
  ContextEntry context;
  out.context = flags.context.empty() ? config.current_context : flags.context;
  if (!out.context.empty()) {
    TRY(context, Look(config.contexts, out.context, "context"));
  }
  if (!flags.cluster.empty()) context.cluster = flags.cluster;
  if (!flags.user.empty()) context.user = flags.user;
  if (!context.namespace_.empty()) out.namespace_ = context.namespace_;
  if (!flags.namespace_.empty()) out.namespace_ = flags.namespace_;

  if (!context.cluster.empty()) {
    TRY(const ClusterEntry cluster, Look(config.clusters, context.cluster, "cluster"));
    TRY_STATUS(ApplyCluster(cluster, context.cluster, out));
  }
  if (!context.user.empty()) {
    TRY(const UserEntry user, Look(config.users, context.user, "user"));
    TRY_STATUS(ApplyUser(user, context.user, out));
  }
  TRY_STATUS(ApplyServers(flags.server, out));
  if (!flags.certificate_authority.empty()) {
    TRY(out.certificate_authority,
        DataOrFile("", flags.certificate_authority, "--certificate-authority"));
  }
  if (!flags.token.empty()) {
    // A token on the command line means "as this one": a client certificate would win at the
    // server.
    out.token = flags.token;
    out.client_certificate.clear();
    out.client_key.clear();
  }
  TRY_STATUS(ApplyImpersonation(flags, out));
  out.request_timeout = flags.request_timeout;
  if (out.server.empty()) {
    return Advise(NotFound("no server is known: there is no kubeconfig with a current context"),
                  "start a server with berth up, or set KUBECONFIG to its kubeconfig");
  }
  TRY_STATUS(CheckServer(out.server));
  for (const std::string& other : out.others) TRY_STATUS(CheckServer(other));
  return out;
}

}  // namespace berth::cli
