// SPDX-License-Identifier: Apache-2.0
// A RocksStore is the default store: the engine on a log in RocksDB. Acknowledged means fsynced;
// kill -9 at any moment loses nothing that was acknowledged and leaves no half transaction.
//
//   TRY(auto store, RocksStore::Open(loop, {.dir = "/var/lib/berth/store"}));
//   std::unique_ptr<Store> handle = store->NewHandle();
//   ...
//   co_await store->Close();
//
// If a write fails (disk full, I/O error), everything in flight fails with Unavailable and the
// store is read-only: reads and watches go on, health() says why. After a full disk Recover() makes
// it writable again; after any other failure only a restart does, because what an fsync that failed
// has lost is unknown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "store/store.h"

namespace rocksdb {
class Env;
}

namespace berth::store {

class Engine;
struct AtomicCommitStats;

// Told, on the writer thread, when the write of group `number` begins and when it is durable or has
// failed. A crash test learns from it whether a kill fell inside a commit.
class CommitObserver {
 public:
  virtual ~CommitObserver() = default;
  virtual void OnCommitBegin(uint64_t number) = 0;
  virtual void OnCommitEnd(uint64_t number) = 0;
};

struct RocksOptions {
  // kNone: all disk work happens in turns of the loop, for simulation. The loop then waits for the
  // disk.
  enum class Threads : uint8_t { kOwn, kNone };

  std::string dir;              // made with mode 0700 if it is not there
  rocksdb::Env* env = nullptr;  // null: the machine's own files
  Threads threads = Threads::kOwn;
  CommitObserver* observer = nullptr;  // outlives the store
  // What collects in memory before RocksDB writes a file of its own.
  size_t memtable_bytes = 4 * 1024 * 1024;
};

struct CommitStats {
  uint64_t groups = 0;  // fsyncs
  uint64_t writes = 0;  // transactions and other changes in them
};

class RocksStore {
 public:
  // On the loop, or before it runs. Blocks for the scan of the log (2.5 us per object). Errors name
  // the folder: in use by another process, unknown format version, damaged record, not writable.
  static Result<std::unique_ptr<RocksStore>> Open(rt::Loop& loop, RocksOptions options);
  ~RocksStore();

  // Handles share the store and keep it alive.
  std::unique_ptr<Store> NewHandle();

  // Ok, or why the store takes no writes. On-loop.
  Status health() const;
  // Makes a store that met a full disk writable again, if there is space now: opens its folder
  // anew. Writes are refused and reads of history wait meanwhile. Ok if it is healthy; if it fails
  // the store stays as it was and it can be tried again.
  rt::Task<Status> Recover();
  // See Engine::SkipRevisions.
  void SkipRevisions(int64_t count);
  // Ends the watches with Unavailable, finishes what is pending, flushes, ends the threads.
  rt::Task<Status> Close();

  // Made when the folder was; never changes.
  const std::string& store_id() const { return store_id_; }
  size_t key_count() const;
  // Any thread.
  CommitStats commit_stats() const;

 private:
  RocksStore(std::shared_ptr<Engine> engine,
             std::shared_ptr<const AtomicCommitStats> stats,
             std::string store_id);

  std::shared_ptr<Engine> engine_;
  std::shared_ptr<const AtomicCommitStats> stats_;
  std::string store_id_;
};

}  // namespace berth::store
