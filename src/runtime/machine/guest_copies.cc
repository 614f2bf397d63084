// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/guest_copies.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/file_status.h"
#include "base/log.h"
#include "base/strings.h"
#include "rt/deadline.h"

namespace berth::runtime {

using Phase = BackupState::Phase;

rt::Task<Status> GuestCopies::Copy(DiskFile source, DiskFile target) {
  const auto job = std::make_shared<Job>();
  job->source = std::move(source);
  job->target = std::move(target);
  work_.Spawn("disks.live", Run(job));
  const Status waited = co_await job->done.Wait();
  if (waited.ok()) co_return job->status;
  job->given_up.Set();
  co_return waited;
}

// In a scope of its own: whoever asked may be cancelled, and then the job has to be ended.
rt::Task<Status> GuestCopies::Run(JobPtr job) {
  job->status = co_await Perform(job);
  job->done.Set();
  co_return OkStatus();
}

rt::Task<Status> GuestCopies::Perform(JobPtr job) {
  CO_TRY(BackupJobs* const jobs, co_await open_());
  CO_TRY(const DiskUser user, co_await jobs->FindDiskUser(job->source.path));
  CO_TRY_STATUS(co_await WaitForTurn(jobs, user.domain, job));
  CO_TRY(const int64_t bytes, co_await disks_.VirtualBytes(job->source));
  CO_TRY_STATUS(co_await disks_.Create(job->target, bytes, std::string()));
  if (job->given_up.is_set()) co_return Cancelled();
  targets_.insert(job->target.path);
  const Status followed = co_await Follow(jobs, user, job);
  targets_.erase(job->target.path);
  co_return followed;
}

rt::Task<Status> GuestCopies::Pause(JobPtr job, Duration pause) {
  const Status waited = co_await rt::WithDeadline(job->given_up.Wait(), pause);
  co_return waited.Is(Reason::kTimeout) ? OkStatus() : Cancelled();
}

rt::Task<Status> GuestCopies::WaitForTurn(BackupJobs* jobs, std::string domain, JobPtr job) {
  for (;;) {
    CO_TRY(const BackupState state, co_await jobs->LookAtBackup(domain));
    if (state.phase != Phase::kRunning) co_return OkStatus();
    if (!state.target.starts_with(options_.folder + "/")) {
      co_return Conflict(fmt::format(
          "the guest {} is being copied by somebody else, to {}", domain, Printable(state.target)));
    }
    if (!targets_.contains(state.target)) {
      LOG_INFO("ending the copy of {} to {}, which nobody waits for", domain, state.target);
      CO_TRY_STATUS(co_await jobs->AbortBackup(domain));
    }
    CO_TRY_STATUS(co_await Pause(job, options_.look_max));
  }
}

std::optional<Status> GuestCopies::EndOf(const Result<BackupState>& state,
                                         const Job& job,
                                         Time heard) const {
  const std::string doing = "copy the disk " + job.source.path;
  if (!state.ok()) {
    const bool is_lost =
        state.status().Is(Reason::kUnavailable) || state.status().Is(Reason::kTimeout);
    if (is_lost && loop_.Now() - heard <= options_.lost_limit) return std::nullopt;
    return state.status();
  }
  switch (state->phase) {
    case Phase::kDone: return OkStatus();
    case Phase::kFailed: return AsFullDisk(Internal(doing + ": " + Printable(state->problem)));
    case Phase::kRunning:
      if (state->target == job.target.path) return std::nullopt;
      break;
    case Phase::kNone: break;
  }
  return Unavailable(doing + ": nobody knows how it ended");
}

rt::Task<Status> GuestCopies::Follow(BackupJobs* jobs, DiskUser user, JobPtr job) {
  const Status begun = co_await jobs->BeginBackup(user, job->target);
  if (!begun.ok()) co_return AsFullDisk(begun);
  Time heard = loop_.Now();
  Time moved = loop_.Now();
  BackupState last;
  Duration pause = options_.look_first;
  for (;;) {
    const Result<BackupState> state = co_await jobs->LookAtBackup(user.domain);
    if (const std::optional<Status> end = EndOf(state, *job, heard)) co_return *end;
    if (state.ok()) {
      heard = loop_.Now();
      if (state->done_bytes != last.done_bytes || state->total_bytes != last.total_bytes) {
        moved = loop_.Now();
      }
      last = *state;
    }
    const Duration limit = last.total_bytes == 0 ? options_.ghost_limit : options_.stall_limit;
    const bool is_stalled = state.ok() && loop_.Now() - moved > limit;
    const Status paused = is_stalled ? OkStatus() : co_await Pause(job, pause);
    pause = std::min(pause * 2, options_.look_max);
    if (paused.ok() && !is_stalled) continue;
    CO_TRY_STATUS(co_await jobs->AbortBackup(user.domain));
    if (!paused.ok()) co_return paused;
    co_return Unavailable(fmt::format(
        "copy the disk {}: no progress within {}", job->source.path, FormatDuration(limit)));
  }
}

}  // namespace berth::runtime
