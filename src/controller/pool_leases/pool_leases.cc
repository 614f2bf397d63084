// SPDX-License-Identifier: Apache-2.0
#include "controller/pool_leases/pool_leases.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apis/core/pool_parts.h"
#include "base/log.h"
#include "rt/chaos.h"
#include "rt/join_all.h"
#include "rt/sleep.h"

namespace berth::controller {
namespace {

using apis::compute::kMachinePoolKind;
using apis::compute::MachinePool;
using apis::compute::MachinePoolCondition;

constexpr Duration kLookEvery = Duration::Seconds(5);
constexpr char kSilentText[] =
    "neither the pool's Lease nor its condition Ready has changed for 50 s";

// Null if nobody has said it.
template <class Pool>
auto* FindReady(Pool& pool) {
  auto& conditions = pool.status.conditions;
  const auto ready =
      std::ranges::find(conditions, apis::core::kPoolReady, &MachinePoolCondition::type);
  return ready == conditions.end() ? nullptr : &*ready;
}

bool IsApiMode(const MachinePool& pool) {
  return !pool.status.agent || pool.status.agent->mode != apis::core::kPoolModeSession;
}

}  // namespace

PoolLeases::PoolLeases(rt::Loop& loop, client::Client& client)
    : loop_(loop),
      client_(client),
      leases_(*this),
      pools_(*this),
      follow_leases_(
          loop, client, apis::k8s::kLeaseKind, leases_, {.namespace_ = kPoolLeaseNamespace}),
      follow_pools_(loop, client, kMachinePoolKind, pools_, {}) {}

template <class T>
void PoolLeases::Note(Book<T>& book, const std::string& name, const T& state) {
  const auto [entry, is_new] = book.try_emplace(name);
  Seen<T>& seen = entry->second;
  seen.is_listed = true;
  if (!is_new && seen.state == state) return;
  seen.state = state;
  seen.since = loop_.Now();
}

void PoolLeases::Leases::OnEvent(client::WatchEvent event) {
  if (event.type == client::WatchEvent::Type::kDeleted) {
    book.erase(event.object.metadata().name);
  } else {
    Put(event.object);
  }
}

void PoolLeases::Leases::Put(const meta::Object& object) {
  owner.Note(book, object.metadata().name, object.as<apis::k8s::Lease>().spec);
}

void PoolLeases::Pools::OnEvent(client::WatchEvent event) {
  if (event.type == client::WatchEvent::Type::kDeleted) {
    book.erase(event.object.metadata().name);
  } else {
    Put(event.object);
  }
}

void PoolLeases::Pools::Put(const meta::Object& object) {
  const auto& pool = object.as<MachinePool>();
  const MachinePoolCondition* ready = IsApiMode(pool) ? FindReady(pool) : nullptr;
  if (ready == nullptr || ready->status != "True") {
    book.erase(pool.metadata.name);
    return;
  }
  owner.Note(book, pool.metadata.name, *ready);
}

rt::Task<Status> PoolLeases::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(follow_leases_.Run());
  tasks.push_back(follow_pools_.Run());
  tasks.push_back(Watch());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

void PoolLeases::Report(client::HealthReport& report) const {
  constexpr std::string_view kName = "pool leases";
  report.Add(kName, follow_leases_);
  report.Add(kName, follow_pools_);
}

rt::Task<Status> PoolLeases::Watch() {
  for (;;) {
    CO_TRY_STATUS(co_await rt::Sleep(kLookEvery));
    if (!follow_leases_.synced() || !follow_pools_.synced()) continue;
    std::vector<std::string> silent;
    for (const auto& [name, seen] : pools_.book) {
      if (IsSilent(name)) silent.push_back(name);
    }
    for (std::string& name : silent) {
      const Status marked = co_await MarkSilent(name);
      if (marked.Is(Reason::kCancelled)) co_return marked;
      if (!marked.ok()) LOG_WARNING("pool {}: {}; trying again", name, marked.ToString());
    }
  }
}

bool PoolLeases::IsSilent(const std::string& pool) const {
  const auto ready = pools_.book.find(pool);
  const auto lease = leases_.book.find(pool);
  if (ready == pools_.book.end() || lease == leases_.book.end()) return false;
  return loop_.Now() - std::max(ready->second.since, lease->second.since) > kGrace;
}

rt::Task<Status> PoolLeases::MarkSilent(std::string pool) {
  const client::ObjectKey key{.namespace_ = "", .name = pool};
  Result<meta::Object> read = co_await client_.Get(kMachinePoolKind, key);
  if (read.status().Is(Reason::kNotFound)) co_return OkStatus();
  CO_TRY(meta::Object object, std::move(read));
  auto& machine_pool = object.as<MachinePool>();
  MachinePoolCondition* ready = FindReady(machine_pool);
  // It may have spoken while it was read.
  if (!IsSilent(pool) || ready == nullptr || ready->status != "True") co_return OkStatus();
  REACHED("pool_leases.silent");
  ready->status = "Unknown";
  ready->reason = kPoolSilentReason;
  ready->message = kSilentText;
  ready->last_transition_time = WallTime::FromSeconds(loop_.WallNow().seconds());
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  const Result<meta::Object> written = co_await client_.Update(std::move(object), options);
  // Somebody was faster, who knows more.
  if (written.status().Is(Reason::kConflict)) co_return OkStatus();
  co_return written.status();
}

}  // namespace berth::controller
