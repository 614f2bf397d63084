// SPDX-License-Identifier: Apache-2.0
// LiveDisks copies disks that guests use, as they are in one moment: what the guest has not written
// by then is not in it, as after a power cut.
#pragma once

#include "base/status.h"
#include "rt/task.h"
#include "runtime/volume/disk_file.h"

namespace berth::runtime {

class LiveDisks {
 public:
  virtual ~LiveDisks() = default;

  // Replaces the target, which is whole if this is ok. NotFound: no guest has the disk; Conflict:
  // its guest is copied for somebody else, or ended; Unavailable, Timeout: nobody could be asked,
  // or the outcome is not known; TooManyRequests: the file system is full. Neither disk is
  // encrypted.
  virtual rt::Task<Status> Copy(DiskFile source, DiskFile target) = 0;
};

}  // namespace berth::runtime
