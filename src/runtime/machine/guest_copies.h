// SPDX-License-Identifier: Apache-2.0
// GuestCopies are LiveDisks by BackupJobs. A job that a former life of this process has left is
// ended before the next of its guest begins; one that nobody waits for any more is ended too.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/time.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "runtime/machine/backup_jobs.h"
#include "runtime/volume/disks.h"
#include "runtime/volume/live_disks.h"

namespace berth::runtime {

class GuestCopies final : public LiveDisks {
 public:
  // Connects to whoever runs the guests, if there is no connection yet.
  using Opener = std::function<rt::Task<Result<BackupJobs*>>()>;
  struct Options {
    std::string folder;  // below which all of our targets are
    Duration look_first = Duration::Millis(20);
    Duration look_max = Duration::Seconds(1);
    Duration lost_limit = Duration::Seconds(30);  // without a word about a job
    // Without progress; the first, if there is nothing that could make any: a libvirtd that is
    // killed may go on waiting for a job of QEMU that has ended meanwhile.
    Duration ghost_limit = Duration::Seconds(5);
    Duration stall_limit = Duration::Minutes(2);
  };

  // All outlive this.
  GuestCopies(rt::Loop& loop, Disks& disks, Opener open, Options options)
      : loop_(loop),
        disks_(disks),
        open_(std::move(open)),
        options_(std::move(options)),
        work_(loop) {}

  rt::Task<Status> Copy(DiskFile source, DiskFile target) override;
  // Jobs go on without us. Always ok.
  rt::Task<Status> Stop() { return work_.Close(); }

 private:
  struct Job {
    DiskFile source;
    DiskFile target;
    rt::Event given_up;
    rt::Event done;
    Status status;
  };
  using JobPtr = std::shared_ptr<Job>;
  rt::Task<Status> Run(JobPtr job);
  rt::Task<Status> Perform(JobPtr job);
  // Waits until the guest has no job, and ends one that a former life has begun.
  rt::Task<Status> WaitForTurn(BackupJobs* jobs, std::string domain, JobPtr job);
  rt::Task<Status> Follow(BackupJobs* jobs, DiskUser user, JobPtr job);
  // How the job ended; nullopt: it goes on.
  std::optional<Status> EndOf(const Result<BackupState>& state, const Job& job, Time heard) const;
  // Cancelled if nobody waits for the job any more.
  static rt::Task<Status> Pause(JobPtr job, Duration pause);

  rt::Loop& loop_;
  Disks& disks_;
  const Opener open_;
  const Options options_;
  std::set<std::string> targets_;  // of jobs that are followed
  rt::TaskScope work_;
};

}  // namespace berth::runtime
