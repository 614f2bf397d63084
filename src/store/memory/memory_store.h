// SPDX-License-Identifier: Apache-2.0
// A MemoryStore is the store for tests and simulation: the engine of RocksStore on a log in memory.
//
//   auto store = MemoryStore::Open(loop);
//   std::unique_ptr<Store> handle = store->NewHandle();
#pragma once

#include <memory>

#include "rt/loop.h"
#include "rt/task.h"
#include "store/memory/memory_log.h"
#include "store/store.h"

namespace berth::store {

class Engine;

class MemoryStore {
 public:
  // On-loop only. With a disk of an earlier store this is a restart of that store.
  static std::unique_ptr<MemoryStore> Open(
      rt::Loop& loop, std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>());
  ~MemoryStore();

  // Handles share the store and keep it alive.
  std::unique_ptr<Store> NewHandle();
  // See Engine::SkipRevisions.
  void SkipRevisions(int64_t count);
  // Ok, or why the store takes no writes.
  Status health() const;
  // Ends the watches with Unavailable, finishes what is pending, refuses the rest.
  rt::Task<Status> Close();

 private:
  explicit MemoryStore(std::shared_ptr<Engine> engine);
  std::shared_ptr<Engine> engine_;
};

}  // namespace berth::store
