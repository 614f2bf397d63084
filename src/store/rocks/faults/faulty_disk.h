// SPDX-License-Identifier: Apache-2.0
// A FaultyDisk is a disk in memory for RocksStore that breaks on command: it loses power at a
// chosen operation, is full, fails to sync, is read-only. For tests.
//
// What a power cut leaves, drawn from the seed:
//  - of each file, everything that was synced, then a part of the rest, whose last sector may be
//    garbage;
//  - of the creations, renames and deletions since the folder was last synced, the first few.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace rocksdb {
class Env;
}

namespace berth::store {

class FaultyDisk {
 public:
  explicit FaultyDisk(uint64_t seed);
  ~FaultyDisk();

  // For RocksOptions::env.
  rocksdb::Env* env();

  // Operations that change the disk (append, sync, create, rename, delete) so far.
  uint64_t operations() const;
  // The power goes off before that many further operations have happened.
  void CutPowerAfter(uint64_t operations);
  bool has_power() const;
  // Power is back, and unsynced work is gone. REQUIRES: no store has the disk open.
  void RestorePower();

  // Nothing more is written once the files have this size together; nullopt: endless.
  void SetCapacity(std::optional<uint64_t> bytes);
  uint64_t used_bytes() const;
  // There is no space for files whose names end so; empty: there is.
  void RefuseSpaceFor(std::string suffix);
  // The next so many syncs fail with an I/O error.
  void FailSyncs(int count);
  enum class Mode : uint8_t { kReadWrite, kReadOnly };
  void SetMode(Mode mode);
  // Flips one bit of every file whose name ends with `suffix`; the number of files changed.
  int Corrupt(std::string_view suffix, uint64_t offset);

 private:
  class Files;
  std::shared_ptr<Files> files_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace berth::store
