// SPDX-License-Identifier: Apache-2.0
#include "store/memory/memory_store.h"

#include <utility>

#include "store/mvcc/engine.h"
#include "store/mvcc/handle.h"

namespace berth::store {

MemoryStore::MemoryStore(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
MemoryStore::~MemoryStore() = default;

std::unique_ptr<MemoryStore> MemoryStore::Open(rt::Loop& loop, std::shared_ptr<MemoryDisk> disk) {
  Result<std::shared_ptr<Engine>> engine = Engine::Open(loop, MakeMemoryLog(loop, std::move(disk)));
  return std::unique_ptr<MemoryStore>(new MemoryStore(*std::move(engine)));
}

std::unique_ptr<Store> MemoryStore::NewHandle() { return MakeHandle(engine_); }
void MemoryStore::SkipRevisions(int64_t count) { engine_->SkipRevisions(count); }
Status MemoryStore::health() const { return engine_->health(); }
rt::Task<Status> MemoryStore::Close() { return CloseEngine(engine_); }

}  // namespace berth::store
