// SPDX-License-Identifier: Apache-2.0
#include "gateway/pool_writer.h"

#include <utility>

#include "base/log.h"
#include "rt/sleep.h"

namespace berth::gateway {
namespace {

constexpr int kAttemptsMax = 8;  // against other writers of one pool
constexpr size_t kJobsMax = 64;  // per pool; each edit is small and idempotent
constexpr Duration kPause = Duration::Millis(200);

}  // namespace

void PoolWriter::Change(const PoolFace& pool, Part part, Edit edit) {
  const auto [queue, is_new] = queues_.try_emplace(pool.uid);
  if (queue->second.size() >= kJobsMax) queue->second.erase(queue->second.begin());
  queue->second.push_back(Job{pool, part, std::move(edit)});
  if (is_new) scope_.Spawn("gateway.pool", WorkOff(pool.uid));
}

rt::Task<Status> PoolWriter::WorkOff(std::string pool_uid) {
  for (;;) {
    auto queue = queues_.find(pool_uid);
    if (queue->second.empty()) break;
    Job job = std::move(queue->second.front());
    queue->second.erase(queue->second.begin());
    const std::string name = job.pool.name;
    const Status status = co_await Write(std::move(job));
    if (status.Is(Reason::kCancelled)) {
      queues_.erase(pool_uid);
      co_return status;
    }
    if (!status.ok()) LOG_WARNING("pool {}: {}", name, status.ToString());
  }
  queues_.erase(pool_uid);
  co_return OkStatus();
}

rt::Task<Status> PoolWriter::Write(Job job) {
  CO_TRY(const rt::Gate::Permit permit, co_await writing_.Enter());
  Status last;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const client::ObjectKey key{.namespace_ = "", .name = job.pool.name};
    auto object = co_await client_.Get(*job.pool.kind, key);
    if (object.status().Is(Reason::kNotFound)) co_return OkStatus();
    last = object.status();
    if (object.ok()) {
      if (object->metadata().uid != job.pool.uid || !job.edit(*object)) co_return OkStatus();
      client::WriteOptions options;
      if (job.part == Part::kStatus) options.subresource = client::Subresource::kStatus;
      const auto written = co_await client_.Update(*std::move(object), options);
      if (written.ok()) co_return OkStatus();
      last = written.status();
      if (last.Is(Reason::kConflict)) continue;
    }
    if (!last.Is(Reason::kUnavailable) && !last.Is(Reason::kTimeout) &&
        !last.Is(Reason::kTooManyRequests)) {
      co_return last;
    }
    CO_TRY_STATUS(co_await rt::Sleep(kPause));
  }
  co_return last;
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
