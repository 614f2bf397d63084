// SPDX-License-Identifier: Apache-2.0
#include "controller/claims/claim_release.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/networking/network_interface.h"
#include "apis/object_references.h"
#include "apis/storage/volume.h"
#include "base/strings.h"
#include "client/cache/informer.h"
#include "rt/join_all.h"

namespace berth::controller {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::networking::kNetworkInterfaceKind;
using apis::networking::NetworkInterface;
using apis::storage::kVolumeKind;
using apis::storage::Volume;

constexpr size_t kWorkers = 2;

void ClearClaim(meta::Object& object) {
  if (&object.kind() == &kVolumeKind) {
    object.as<Volume>().spec.claim_ref.reset();
  } else {
    object.as<NetworkInterface>().spec.machine_ref.reset();
  }
}

// Whether the host has something that the spec does not name any more.
template <class Statuses, class Specs>
bool HasSurplus(const Statuses& statuses, const Specs& specs) {
  return std::ranges::any_of(statuses, [&](const auto& status) {
    return std::ranges::none_of(specs, [&](const auto& spec) { return spec.name == status.name; });
  });
}

// The machine does not name the part any more, and its host, which knows that, does not have it.
bool HasLetGo(const meta::Object& machine, const meta::Object& part) {
  const auto& spec = machine.as<Machine>().spec;
  const auto& status = machine.as<Machine>().status;
  // What it is may be unknown: it was attached and taken out of the spec between two reports.
  if (HasSurplus(status.volumes, spec.volumes) ||
      HasSurplus(status.network_interfaces, spec.network_interfaces)) {
    return false;
  }
  // Without a place it has no ID.
  const bool is_told =
      !status.machine_id.empty() && status.observed_generation == machine.metadata().generation;
  return is_told && !machine.metadata().deletion_timestamp && !apis::NamesPart(machine, part);
}

}  // namespace

void ClaimRelease::Machines::OnListed(meta::Object object) {
  unseen_.erase(object.metadata().uid);
  known_.insert(object.metadata().uid);
}
void ClaimRelease::Machines::OnListEnd() {
  for (const std::string& uid : std::exchange(unseen_, {})) known_.erase(uid);
  owner_.volume_sink_.LookAll();
  owner_.nic_sink_.LookAll();
}
void ClaimRelease::Machines::OnEvent(client::WatchEvent event) {
  const std::string& uid = event.object.metadata().uid;
  if (event.type != client::WatchEvent::Type::kDeleted) {
    known_.insert(uid);
  } else {
    known_.erase(uid);
  }
  // Gone, or perhaps done with one of them.
  owner_.volume_sink_.LookOf(uid);
  owner_.nic_sink_.LookOf(uid);
}

void ClaimRelease::Claims::OnListBegin() {
  unseen_.clear();
  for (const auto& [key, uid] : machine_of_) unseen_.insert(key);
}
void ClaimRelease::Claims::OnListEnd() {
  for (const auto& key : std::exchange(unseen_, {})) Forget(key);
}
void ClaimRelease::Claims::OnEvent(client::WatchEvent event) {
  if (event.type == client::WatchEvent::Type::kDeleted) {
    Forget(client::KeyOf(event.object));
  } else {
    Put(event.object);
  }
}

void ClaimRelease::Claims::Put(const meta::Object& object) {
  const client::ObjectKey key = client::KeyOf(object);
  unseen_.erase(key);
  const auto claim = apis::ClaimOf(object);
  const auto before = machine_of_.find(key);
  if (before != machine_of_.end() && (!claim || before->second != claim->uid)) Forget(key);
  if (!claim || claim->uid.empty()) return;  // a name alone may be of one who is still to come
  machine_of_[key] = claim->uid;
  claimed_[claim->uid].insert(key);
  Look(key, claim->uid);
}

void ClaimRelease::Claims::Forget(const client::ObjectKey& key) {
  const auto found = machine_of_.find(key);
  if (found == machine_of_.end()) return;
  auto& keys = claimed_[found->second];
  keys.erase(key);
  if (keys.empty()) claimed_.erase(found->second);
  machine_of_.erase(found);
}

void ClaimRelease::Claims::Look(const client::ObjectKey& key, const std::string& machine_uid) {
  if (!owner_.machines_.synced() || owner_.machine_sink_.Has(machine_uid)) return;
  owner_.runner_.queue().Add(std::string(kind_.kind) + '/' + key.namespace_ + '/' + key.name);
}

void ClaimRelease::Claims::LookOf(const std::string& uid) {
  const auto found = claimed_.find(uid);
  if (found == claimed_.end()) return;
  for (const auto& key : found->second) {
    owner_.runner_.queue().Add(std::string(kind_.kind) + '/' + key.namespace_ + '/' + key.name);
  }
}

void ClaimRelease::Claims::LookAll() {
  for (const auto& [key, uid] : machine_of_) {
    if (owner_.machine_sink_.Has(uid)) continue;
    owner_.runner_.queue().Add(std::string(kind_.kind) + '/' + key.namespace_ + '/' + key.name);
  }
}

ClaimRelease::ClaimRelease(rt::Loop& loop, client::Client& client)
    : client_(client),
      machine_sink_(*this),
      volume_sink_(*this, kVolumeKind),
      nic_sink_(*this, kNetworkInterfaceKind),
      machines_(loop, client, kMachineKind, machine_sink_, {.detail = client::Detail::kMetadata}),
      volumes_(loop, client, kVolumeKind, volume_sink_, {}),
      nics_(loop, client, kNetworkInterfaceKind, nic_sink_, {}),
      runner_(loop, "claims", *this, kWorkers) {}

rt::Task<Status> ClaimRelease::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(machines_.Run());
  tasks.push_back(volumes_.Run());
  tasks.push_back(nics_.Run());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

// What was heard may be old: both objects are looked at again, and the write is conditional.
rt::Task<Result<std::optional<Duration>>> ClaimRelease::Reconcile(std::string key) {
  const auto words = Split(key, '/');
  const meta::KindInfo& kind = words[0] == kVolumeKind.kind ? kVolumeKind : kNetworkInterfaceKind;
  const client::ObjectKey name{.namespace_ = std::string(words[1]), .name = std::string(words[2])};
  auto found = co_await client_.Get(kind, name);
  if (found.status().Is(Reason::kNotFound)) co_return std::optional<Duration>();
  CO_TRY_STATUS(found.status());
  const auto claim = apis::ClaimOf(*found);
  if (!claim || claim->uid.empty()) co_return std::optional<Duration>();
  const client::ObjectKey machine{.namespace_ = name.namespace_, .name = claim->name};
  const auto holder = co_await client_.Get(kMachineKind, machine);
  const bool is_there = holder.ok() && holder->metadata().uid == claim->uid;
  if (is_there && !HasLetGo(*holder, *found)) co_return std::optional<Duration>();
  if (!holder.ok() && !holder.status().Is(Reason::kNotFound)) co_return holder.status();
  meta::Object freed = *std::move(found);
  ClearClaim(freed);
  const client::WriteOptions options;
  const auto written = co_await client_.Update(std::move(freed), options);
  if (written.status().Is(Reason::kNotFound)) co_return std::optional<Duration>();
  CO_TRY_STATUS(written.status());  // a conflict is tried again
  co_return std::optional<Duration>();
}

}  // namespace berth::controller
