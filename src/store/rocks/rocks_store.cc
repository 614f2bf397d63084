// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/rocks_store.h"

#include <utility>

#include "store/mvcc/engine.h"
#include "store/mvcc/handle.h"
#include "store/rocks/rocks_log.h"

namespace berth::store {

RocksStore::RocksStore(std::shared_ptr<Engine> engine,
                       std::shared_ptr<const AtomicCommitStats> stats,
                       std::string store_id)
    : engine_(std::move(engine)), stats_(std::move(stats)), store_id_(std::move(store_id)) {}
RocksStore::~RocksStore() = default;

Result<std::unique_ptr<RocksStore>> RocksStore::Open(rt::Loop& loop, RocksOptions options) {
  loop.Assert();
  TRY(OpenedRocksLog opened, OpenRocksLog(loop, options));
  TRY(std::shared_ptr<Engine> engine, Engine::Open(loop, std::move(opened.log)));
  return std::unique_ptr<RocksStore>(
      new RocksStore(std::move(engine), std::move(opened.stats), std::move(opened.store_id)));
}

std::unique_ptr<Store> RocksStore::NewHandle() { return MakeHandle(engine_); }
Status RocksStore::health() const { return engine_->health(); }
rt::Task<Status> RocksStore::Recover() { return RecoverEngine(engine_); }
void RocksStore::SkipRevisions(int64_t count) { engine_->SkipRevisions(count); }
rt::Task<Status> RocksStore::Close() { return CloseEngine(engine_); }
size_t RocksStore::key_count() const { return engine_->key_count(); }

CommitStats RocksStore::commit_stats() const {
  return {.groups = stats_->groups.load(std::memory_order_relaxed),
          .writes = stats_->writes.load(std::memory_order_relaxed)};
}

}  // namespace berth::store
