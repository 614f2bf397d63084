// SPDX-License-Identifier: Apache-2.0
#include "gateway/pool_writer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "rt/backoff.h"
#include "rt/retry.h"
#include "rt/sleep.h"

namespace berth::gateway {
namespace {

using Matter = PoolWriter::Matter;

constexpr int kAttemptsMax = 8;  // of an announcement, against other writers of one pool
// Of an edit, against the same; then it waits for a while.
constexpr int kConflictsInARow = 8;

// Whether another attempt may end better.
bool IsPassing(const Status& status) {
  return status.Is(Reason::kConflict) || rt::IsTransient(status);
}

bool IsOfStatus(Matter matter) { return matter < Matter::kPurge; }

// Whether an announcement says all of it anew. One of a host that goes on leaving leaves its drain
// as it is.
bool IsAnnounced(Matter matter, const Announcer& announcer) {
  switch (matter) {
    case Matter::kReady:
    case Matter::kClasses:
    case Matter::kFigures:
    case Matter::kFacts:
    case Matter::kLease: return true;
    case Matter::kDrain:
    case Matter::kDrainOver: return !announcer.is_leaving;
    case Matter::kOrphans:
    case Matter::kFenceReady:
    case Matter::kPurge:
    case Matter::kApproval: break;
  }
  return false;
}

}  // namespace

void PoolWriter::Change(const PoolFace& pool, Matter matter, Edit edit) {
  const auto [queue, is_new] = queues_.try_emplace(pool.uid);
  // (1) To the end, also in place of an older one: the order of different matters is kept.
  std::erase_if(queue->second, [matter](const Job& job) { return job.matter == matter; });
  queue->second.push_back(Job{++last_job_, pool, matter, std::move(edit)});
  if (is_new) scope_.Spawn("gateway.pool", WorkOff(pool.uid));
}

// Until all of it is written or means nothing any more: nobody says it again.
rt::Task<Status> PoolWriter::WorkOff(std::string pool_uid) {
  Status status;
  rt::Backoff backoff;
  for (int attempt = 1; !status.Is(Reason::kCancelled) && !queues_[pool_uid].empty(); ++attempt) {
    const Job job = queues_[pool_uid].front();
    status = co_await Write(job);
    if (status.Is(Reason::kConflict) && attempt % kConflictsInARow != 0) continue;
    if (IsPassing(status)) {
      status = co_await rt::Sleep(backoff.Next(loop_.random()));
      continue;
    }
    if (!status.ok() && !status.Is(Reason::kCancelled)) {
      LOG_WARNING("pool {}: {}", job.pool.name, status.ToString());
    }
    Drop(job);
    backoff.Reset();
  }
  queues_.erase(pool_uid);
  co_return status.Is(Reason::kCancelled) ? status : OkStatus();
}

rt::Task<Status> PoolWriter::Write(Job job) {
  // Not while it waits for the next attempt: others may have more luck.
  CO_TRY(const rt::Gate::Permit permit, co_await writing_.Enter());
  const client::ObjectKey key{.namespace_ = "", .name = job.pool.name};
  auto object = co_await client_.Get(*job.pool.kind, key);
  if (object.status().Is(Reason::kNotFound)) co_return OkStatus();
  if (!object.ok()) co_return object.status();
  // Replaced or superseded meanwhile: what it says may not be true any more.
  if (!IsPending(job)) co_return OkStatus();
  if (object->metadata().uid != job.pool.uid || !job.edit(*object)) co_return OkStatus();
  client::WriteOptions options;
  if (IsOfStatus(job.matter)) options.subresource = client::Subresource::kStatus;
  const auto written = co_await client_.Update(*std::move(object), options);
  co_return written.status().Is(Reason::kNotFound) ? OkStatus() : written.status();
}

bool PoolWriter::IsPending(const Job& job) const {
  const auto queue = queues_.find(job.pool.uid);
  return queue != queues_.end() && std::ranges::any_of(queue->second, [&](const Job& other) {
           return other.number == job.number;
         });
}

void PoolWriter::Drop(const Job& job) {
  const auto queue = queues_.find(job.pool.uid);
  if (queue == queues_.end()) return;
  std::erase_if(queue->second, [&](const Job& other) { return other.number == job.number; });
}

// The order is right without more ado: a write of an older edit that is under way when the
// announcement has read the pool, and commits after that, makes the announcement conflict, which
// then reads again; one that comes later conflicts itself, and is not tried again.
void PoolWriter::Supersede(const std::string& pool_uid, const Announcer& announcer) {
  const auto queue = queues_.find(pool_uid);
  if (queue == queues_.end()) return;
  std::erase_if(queue->second, [&](const Job& job) { return IsAnnounced(job.matter, announcer); });
}

rt::Task<Result<std::optional<meta::Object>>> PoolWriter::Find(const meta::KindInfo* kind,
                                                               std::string name) {
  if (kind == nullptr || name.empty()) co_return std::optional<meta::Object>();
  const client::ObjectKey key{.namespace_ = "", .name = name};
  auto found = co_await client_.Get(*kind, key);
  if (found.ok()) co_return std::optional<meta::Object>(*std::move(found));
  if (found.status().Is(Reason::kNotFound)) co_return std::optional<meta::Object>();
  co_return found.status();
}

rt::Task<Result<meta::Object>> PoolWriter::Admit(agent::PoolAnnounce announce,
                                                 agent::HostFacts host,
                                                 Announcer announcer) {
  CO_TRY(const rt::Gate::Permit permit, co_await writing_.Enter());
  co_return co_await TryAdmit(std::move(announce), std::move(host), std::move(announcer));
}

rt::Task<Result<meta::Object>> PoolWriter::TryAdmit(agent::PoolAnnounce announce,
                                                    agent::HostFacts host,
                                                    Announcer announcer) {
  Status last;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    CO_TRY(std::optional<meta::Object> before,
           co_await Find(PoolKindNamed(announce.kind()), announce.name()));
    CO_TRY(meta::Object planned, PlanPool(announce, before, announcer));
    if (attempt == 0 && before) Supersede(before->metadata().uid, announcer);
    Result<meta::Object> pool = planned;
    const client::WriteOptions options;
    if (!before) {
      pool = co_await client_.Create(std::move(planned), options);
    } else if (!(planned == *before)) {
      pool = co_await client_.Update(std::move(planned), options);
    }
    if (pool.ok()) {
      ApplyAnnounce(
          announce, host, announcer, (co_await rt::CurrentContext()).loop().WallNow(), *pool);
      const client::WriteOptions status{.subresource = client::Subresource::kStatus};
      pool = co_await client_.Update(*std::move(pool), status);
      if (pool.ok()) co_return pool;
    }
    last = pool.status();
    if (!last.Is(Reason::kConflict) && !last.Is(Reason::kAlreadyExists)) co_return last;
  }
  co_return last;
}

}  // namespace berth::gateway
