// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/host_volumes.h"

#include <fmt/core.h>

#include <string_view>

#include "apis/storage/volume_pool.h"
#include "cli/objects/fetch.h"

namespace berth::cli {
namespace {

using meta::Value;

// Empty if the server has no such kind, or does not show it.
Result<std::vector<Value>> ListShown(Session& session,
                                     std::string_view kind,
                                     const ListSelection& selection) {
  TRY(Api * api, session.GetApi());
  TRY(Discovery * discovery, session.GetDiscovery());
  const Result<Resource> resource = discovery->FindByWord(kind);
  if (resource.status().Is(Reason::kNotFound)) return std::vector<Value>();
  TRY_STATUS(resource);
  Result<FetchedList> list = FetchList(*api, *resource, selection);
  if (list.status().Is(Reason::kForbidden)) return std::vector<Value>();
  TRY_STATUS(list);
  return std::move(list->items);
}

}  // namespace

std::string VolumeNameOf(const Value& machine, const Value& disk) {
  if (disk.Find("ephemeral") == nullptr) return std::string(disk.GetString({"volumeRef", "name"}));
  return fmt::format("{}-{}", machine.GetString({"metadata", "name"}), disk.GetString({"name"}));
}

Result<std::vector<std::string>> HostVolumes::Of(const Value& machine) {
  std::vector<std::string> tied;
  const Value* disks = machine.Get({"spec", "volumes"});
  if (disks == nullptr || !disks->is_array()) return tied;
  const std::string space(machine.GetString({"metadata", "namespace"}));
  for (const Value& disk : disks->items()) {
    std::string name = VolumeNameOf(machine, disk);
    if (name.empty()) continue;
    if (!found_) TRY_STATUS(Read());
    if (found_->contains({space, name})) tied.push_back(std::move(name));
  }
  return tied;
}

Status HostVolumes::Read() {
  std::set<std::string, std::less<>> pools;
  TRY(const std::vector<Value> all_pools, ListShown(session_, "volumepool", {}));
  for (const Value& pool : all_pools) {
    if (pool.GetString({"spec", "reach"}) != apis::storage::kReachHost) continue;
    pools.emplace(pool.GetString({"metadata", "name"}));
  }
  std::set<std::pair<std::string, std::string>> found;
  if (!pools.empty()) {
    const ListSelection selection{.namespace_ = namespace_};
    TRY(const std::vector<Value> volumes, ListShown(session_, "volume", selection));
    for (const Value& volume : volumes) {
      if (!pools.contains(volume.GetString({"spec", "volumePoolRef", "name"}))) continue;
      found.emplace(volume.GetString({"metadata", "namespace"}),
                    volume.GetString({"metadata", "name"}));
    }
  }
  found_ = std::move(found);
  return OkStatus();
}

}  // namespace berth::cli
