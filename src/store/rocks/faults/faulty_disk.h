// SPDX-License-Identifier: Apache-2.0
// A FaultyDisk is a disk in memory for RocksStore that breaks on command: it loses power at a
// chosen operation, is full, fails to sync, is read-only. For tests.
//
// What a power cut leaves, drawn from the seed:
//  - of each file, everything that was synced, then a part of the rest, whose last sector may be
//    garbage; once in four, all of the rest with garbage at its end (Tails::kTorn);
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

class BackgroundGate;

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
  // Power is back, and unsynced work is gone. kTorn: each file has its full length, but what was
  // not synced ends with garbage, at the worst from its first byte on. REQUIRES: no store has the
  // disk open.
  enum class Tails : uint8_t { kDrawn, kTorn };
  void RestorePower(Tails tails = Tails::kDrawn);

  // So many bytes more fit, then the disk is full; what is deleted makes no room, so that a test
  // need not know what happens in the background. nullopt: endless.
  void SetRoom(std::optional<uint64_t> bytes);
  // There is no space for files whose names end so; empty: there is.
  void RefuseSpaceFor(std::string suffix);
  // The next so many syncs fail. kNoSpace: as on a disk that finds a place for data only then.
  enum class SyncError : uint8_t { kInputOutput, kNoSpace };
  void FailSyncs(int count, SyncError error = SyncError::kInputOutput);
  enum class Mode : uint8_t { kReadWrite, kReadOnly };
  void SetMode(Mode mode);
  // What RocksDB does in the background does not begin until it is finished, which waits for all of
  // it.
  void HoldBackgroundWork();
  void FinishBackgroundWork();
  // Flips one bit of every file whose name ends with `suffix`; the number of files changed.
  int Corrupt(std::string_view suffix, uint64_t offset);

 private:
  class Files;
  std::shared_ptr<Files> files_;
  std::shared_ptr<BackgroundGate> gate_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace berth::store
