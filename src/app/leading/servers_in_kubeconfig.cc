// SPDX-License-Identifier: Apache-2.0
#include "app/leading/servers_in_kubeconfig.h"

#include <algorithm>

#include "base/result.h"
#include "cli/kubeconfig/kubeconfig.h"
#include "meta/value.h"
#include "meta/yaml.h"
#include "pki/private_file.h"

namespace berth::app {

Status NameServers(const std::string& path,
                   const std::string& own,
                   const std::vector<std::string>& others) {
  std::vector<std::string> wanted;
  if (!others.empty()) wanted.push_back(own);
  const size_t count = std::min(others.size(), cli::kServersMax - 1);
  wanted.insert(wanted.end(), others.begin(), others.begin() + static_cast<ptrdiff_t>(count));

  TRY(const std::string text, pki::ReadPrivateFile(path));
  TRY(meta::Value root, meta::ParseYaml(text));
  TRY(const cli::Kubeconfig known, cli::KubeconfigFromValue(root, ""));
  meta::Value* clusters = root.Find("clusters");
  if (clusters == nullptr || !clusters->is_array()) return OkStatus();
  bool changed = false;
  for (meta::Value& item : clusters->items()) {
    const auto entry = known.clusters.find(std::string(item.GetString({"name"})));
    if (entry == known.clusters.end() || entry->second.server != own) continue;
    meta::Value* cluster = item.Find("cluster");
    if (cluster == nullptr || entry->second.servers == wanted) continue;
    cli::SetServers(*cluster, wanted);
    changed = true;
  }
  return changed ? pki::WritePrivateFile(path, meta::WriteYaml(root)) : OkStatus();
}

}  // namespace berth::app
