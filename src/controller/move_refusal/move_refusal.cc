// SPDX-License-Identifier: Apache-2.0
#include "controller/move_refusal/move_refusal.h"

#include <utility>

#include "apis/compute/host_tie.h"
#include "apis/compute/machine.h"
#include "apis/core/placement.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_pool.h"
#include "base/strings.h"
#include "client/ties/find_tie.h"
#include "rt/chaos.h"
#include "rt/join_all.h"

namespace berth::controller {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::storage::VolumePool;

constexpr size_t kWorkers = 2;

// Of a pool only its reach matters.
void KeepReach(meta::Object& pool) { pool.as<VolumePool>().status = {}; }

std::string_view ReachOf(const meta::Object* pool) {
  return pool == nullptr ? std::string_view() : apis::storage::ReachOf(pool->as<VolumePool>().spec);
}

}  // namespace

void MoveRefusal::Movers::OnListBegin() {
  volumes_of_.clear();
  users_of_.clear();
}

void MoveRefusal::Movers::OnEvent(client::WatchEvent event) {
  if (event.type == client::WatchEvent::Type::kDeleted) {
    Forget(client::KeyOf(event.object));
  } else {
    Put(event.object);
  }
}

void MoveRefusal::Movers::Put(const meta::Object& object) {
  const auto& machine = object.as<Machine>();
  const bool is_followed =
      apis::core::AsksToMove(machine.spec.placement) || apis::compute::HasMovableCondition(machine);
  if (!is_followed && volumes_of_.empty()) return;  // as in most clusters, for every machine
  const client::ObjectKey key = client::KeyOf(object);
  Forget(key);
  if (!is_followed) return;
  // Nothing can tie it, and nobody has said that something does: most reports change nothing here.
  if (machine.spec.volumes.empty() && !apis::compute::HasMovableCondition(machine)) return;
  std::vector<client::ObjectKey>& volumes = volumes_of_[key];
  for (std::string& name : apis::compute::VolumesOf(machine)) {
    volumes.push_back({.namespace_ = key.namespace_, .name = std::move(name)});
    users_of_[volumes.back()].insert(key);
  }
  Look(key);
}

void MoveRefusal::Movers::Forget(const client::ObjectKey& machine) {
  const auto found = volumes_of_.find(machine);
  if (found == volumes_of_.end()) return;
  for (const client::ObjectKey& volume : found->second) {
    const auto users = users_of_.find(volume);
    if (users == users_of_.end()) continue;  // a machine that names it twice
    users->second.erase(machine);
    if (users->second.empty()) users_of_.erase(users);
  }
  volumes_of_.erase(found);
}

void MoveRefusal::Movers::Look(const client::ObjectKey& machine) {
  owner_.runner_.queue().Add(machine.namespace_ + '/' + machine.name);
}

void MoveRefusal::Movers::LookAtUsers(const client::ObjectKey& volume) {
  const auto users = users_of_.find(volume);
  if (users == users_of_.end()) return;
  for (const client::ObjectKey& machine : users->second) Look(machine);
}

void MoveRefusal::Movers::LookAtAll() {
  for (const auto& [machine, volumes] : volumes_of_) {
    if (!volumes.empty()) Look(machine);
  }
}

void MoveRefusal::Volumes::OnEvent(client::WatchEvent event) {
  if (event.type == client::WatchEvent::Type::kBookmark) return;
  owner_.movers_.LookAtUsers(client::KeyOf(event.object));
}

MoveRefusal::MoveRefusal(rt::Loop& loop, client::Client& client)
    : loop_(loop),
      client_(client),
      movers_(*this),
      volume_sink_(*this),
      machines_(loop, client, kMachineKind, movers_, {}),
      volumes_(loop,
               client,
               apis::storage::kVolumeKind,
               volume_sink_,
               client::ReflectorOptions{.namespace_ = "",
                                        .label_selector = "",
                                        .field_selector = "",
                                        .detail = client::Detail::kMetadata}),
      pools_(
          loop,
          client,
          apis::storage::kVolumePoolKind,
          [this](const meta::Object* before, const meta::Object* now) { OnPool(before, now); },
          KeepReach),
      runner_(loop, "move refusal", *this, kWorkers) {}

rt::Task<Status> MoveRefusal::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(machines_.Run());
  tasks.push_back(volumes_.Run());
  tasks.push_back(pools_.Run());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

// Rare: somebody says that the disks of a pool can be reached from elsewhere, or not any more.
void MoveRefusal::OnPool(const meta::Object* before, const meta::Object* now) {
  if (ReachOf(before) != ReachOf(now)) movers_.LookAtAll();
}

rt::Task<Result<std::optional<Duration>>> MoveRefusal::Reconcile(std::string key) {
  const auto words = Split(key, '/');
  const client::ObjectKey name{.namespace_ = std::string(words[0]), .name = std::string(words[1])};
  auto machine = co_await client_.Get(kMachineKind, name);
  if (machine.status().Is(Reason::kNotFound)) co_return std::optional<Duration>();
  CO_TRY_STATUS(machine);
  CO_TRY(const std::string tie, co_await client::FindHostTie(client_, *machine));
  if (!apis::compute::SetMovable(machine->as<Machine>(), tie, loop_.WallNow())) {
    co_return std::optional<Duration>();
  }
  REACHED("move_refusal.said");
  const client::WriteOptions options{.subresource = client::Subresource::kStatus};
  const auto written = co_await client_.Update(*std::move(machine), options);
  if (written.status().Is(Reason::kNotFound)) co_return std::optional<Duration>();
  CO_TRY_STATUS(written.status());  // a conflict is tried again
  co_return std::optional<Duration>();
}

}  // namespace berth::controller
