// SPDX-License-Identifier: Apache-2.0
// BackupJobs let a running guest copy one of its disks to a file, as it is when the job begins. A
// guest has one job at a time, which goes on without us. Bodies: LibvirtHypervisor, and a fake.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "rt/task.h"
#include "runtime/volume/disk_file.h"

namespace berth::runtime {

struct DiskUser {
  std::string domain;
  std::string device;  // "vda"
};

struct BackupState {
  enum class Phase : uint8_t {
    kNone,  // or nobody remembers
    kRunning,
    kDone,
    kFailed,
  };
  Phase phase = Phase::kNone;
  std::string target;       // kRunning: the file
  int64_t done_bytes = 0;   // kRunning
  int64_t total_bytes = 0;  // kRunning; 0: libvirt has one that QEMU does not have (any more)
  std::string problem;      // kFailed: for a person
};

// Unavailable: nobody could be asked; Timeout: the outcome is not known.
class BackupJobs {
 public:
  virtual ~BackupJobs() = default;

  // The running guest that has this file as a disk. NotFound if none has.
  virtual rt::Task<Result<DiskUser>> FindDiskUser(std::string path) = 0;
  // REQUIRES: the target is a disk of the same size. Conflict if the guest does not run or has a
  // job.
  virtual rt::Task<Status> BeginBackup(DiskUser user, DiskFile target) = 0;
  // The job that runs, or how the last one ended. Conflict if the guest does not run.
  virtual rt::Task<Result<BackupState>> LookAtBackup(std::string domain) = 0;
  // Ok if there is none.
  virtual rt::Task<Status> AbortBackup(std::string domain) = 0;
};

}  // namespace berth::runtime
