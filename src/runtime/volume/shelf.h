// SPDX-License-Identifier: Apache-2.0
// A Shelf has a folder for each volume and each snapshot: its record, and its disk once that is
// whole. Every step is durable when it returns, so a crash between any two leaves one of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "rt/task.h"
#include "runtime/volume/disk_file.h"

namespace berth::runtime {

enum class ShelfKind : uint8_t { kVolume, kSnapshot };

struct ShelfItem {
  ShelfKind kind = ShelfKind::kVolume;
  std::string id;
  std::string record;
};

struct ShelfRoom {
  int64_t total = 0;                                           // of the file system
  int64_t available = 0;                                       // to us
  std::map<std::pair<ShelfKind, std::string>, int64_t> taken;  // by each folder
  int64_t taken_in_all() const {
    int64_t sum = 0;
    for (const auto& [id, bytes] : taken) sum += bytes;
    return sum;
  }
};

enum class DiskPresence : uint8_t { kAbsent, kWhole };

// Everything that fails because the file system is full is TooManyRequests.
class Shelf {
 public:
  virtual ~Shelf() = default;

  // Every folder with a record; what has none was never acknowledged, or is almost removed, and
  // goes.
  virtual rt::Task<Result<std::vector<ShelfItem>>> Load() = 0;
  // Makes the folder, or replaces the record in it as a whole.
  virtual rt::Task<Status> Put(ShelfKind kind, std::string id, std::string record) = 0;
  // Removes what is left of an attempt to make the disk; says whether the whole disk is there.
  virtual rt::Task<Result<DiskPresence>> Prepare(ShelfKind kind,
                                                 std::string id,
                                                 DiskFormat format) = 0;
  // The disk at PartOf is whole: it becomes the one at DiskOf.
  virtual rt::Task<Status> Settle(ShelfKind kind, std::string id, DiskFormat format) = 0;
  // Disk, record and folder, in this order. Ok if there is nothing.
  virtual rt::Task<Status> Remove(ShelfKind kind, std::string id) = 0;
  virtual rt::Task<Result<ShelfRoom>> Room() = 0;

  // Where the disk is made, and where it is when it is whole.
  virtual DiskFile PartOf(ShelfKind kind, std::string_view id, DiskFormat format) const = 0;
  virtual DiskFile DiskOf(ShelfKind kind, std::string_view id, DiskFormat format) const = 0;
};

}  // namespace berth::runtime
