// SPDX-License-Identifier: Apache-2.0
#include "client/ties/find_tie.h"

#include <map>
#include <utility>

#include "apis/compute/host_tie.h"
#include "apis/compute/machine.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_pool.h"

namespace berth::client {
namespace {

// "" if the volume or its pool is not there, or it has no pool yet.
rt::Task<Result<std::string>> FindReach(Client& client, ObjectKey volume_key) {
  const auto volume = co_await client.Get(apis::storage::kVolumeKind, volume_key);
  if (volume.status().Is(Reason::kNotFound)) co_return std::string();
  CO_TRY_STATUS(volume);
  const auto& reference = volume->as<apis::storage::Volume>().spec.volume_pool_ref;
  if (!reference) co_return std::string();
  const ObjectKey pool_key{.namespace_ = "", .name = reference->name};
  const auto pool = co_await client.Get(apis::storage::kVolumePoolKind, pool_key);
  if (pool.status().Is(Reason::kNotFound)) co_return std::string();
  CO_TRY_STATUS(pool);
  co_return std::string(apis::storage::ReachOf(pool->as<apis::storage::VolumePool>().spec));
}

}  // namespace

rt::Task<Result<std::string>> FindHostTie(Client& client, meta::Object machine) {
  const auto& it = machine.as<apis::compute::Machine>();
  std::map<std::string, std::string> reaches;
  for (const std::string& name : apis::compute::VolumesOf(it)) {
    ObjectKey key{.namespace_ = it.metadata.namespace_, .name = name};
    CO_TRY(reaches[name], co_await FindReach(client, std::move(key)));
  }
  co_return apis::compute::HostTieOf(
      it, [&reaches](const std::string& volume) { return reaches[volume]; });
}

}  // namespace berth::client
