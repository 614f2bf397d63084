// SPDX-License-Identifier: Apache-2.0
// Disks makes, copies and grows disk files. Formats are always told, never guessed from content.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "rt/task.h"
#include "runtime/volume/disk_file.h"

namespace berth::runtime {

struct DiskCopy {
  DiskFile source;
  DiskFile target;    // replaced if it is there
  std::string key;    // of a kLuks target whose source is not kLuks
  int64_t bytes = 0;  // the source's disk is at most this large, else BadRequest
};

enum class Growth : uint8_t {
  kDone,
  kInUse,  // a guest has the disk: whoever runs it grows it
};

// All: TooManyRequests if the file system is full; Conflict if a guest uses the disk. A kLuks
// source is copied to a kLuks target as it is, with its key.
class Disks {
 public:
  virtual ~Disks() = default;

  // An empty disk that takes next to nothing. `key` only for kLuks.
  virtual rt::Task<Status> Create(DiskFile target, int64_t bytes, std::string key) = 0;
  virtual rt::Task<Status> Copy(DiskCopy copy) = 0;
  // How large a disk of ours is. Works while a guest uses it.
  virtual rt::Task<Result<int64_t>> VirtualBytes(DiskFile disk) = 0;
  // The same of a file from outside; BadRequest if it refers to anything but itself.
  virtual rt::Task<Result<int64_t>> ForeignVirtualBytes(DiskFile disk) = 0;
  // Ok if it is that large already; never shrinks.
  virtual rt::Task<Result<Growth>> Grow(DiskFile disk, int64_t bytes) = 0;
  // Forbidden if the key does not open the kLuks disk.
  virtual rt::Task<Status> Unlock(DiskFile disk, std::string key) = 0;
};

}  // namespace berth::runtime
