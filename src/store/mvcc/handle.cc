// SPDX-License-Identifier: Apache-2.0
#include "store/mvcc/handle.h"

#include <utility>

#include "rt/leaf.h"

namespace berth::store {
namespace {

// The engine completes what it was asked to do even if nobody waits any more, so the leaf is shared
// with it.
template <class T>
struct Answer {
  std::shared_ptr<rt::Leaf<T>> leaf = std::make_shared<rt::Leaf<T>>();
  Done<T> done() {
    return [leaf = leaf](T value) { leaf->Complete(std::move(value)); };
  }
};

class EngineWatch final : public Watch {
 public:
  EngineWatch(std::shared_ptr<Engine> engine, std::shared_ptr<Watcher> watcher)
      : engine_(std::move(engine)), watcher_(std::move(watcher)) {}
  ~EngineWatch() override { engine_->EndWatch(watcher_); }

  rt::Task<Result<WatchBatch>> Next() override { return NextOf(engine_, watcher_); }

 private:
  // A coroutine of its own state: the watch may be destroyed while it waits.
  static rt::Task<Result<WatchBatch>> NextOf(std::shared_ptr<Engine> engine,
                                             std::shared_ptr<Watcher> watcher) {
    if (watcher->waiter != nullptr) {
      co_return BadRequest("another Next() of this watch is waiting");
    }
    while (!watcher->has_news()) {
      engine->CatchUp(watcher);
      rt::Leaf<Status> wake;
      watcher->waiter = &wake;
      const Status woken = co_await wake;
      watcher->waiter = nullptr;
      CO_TRY_STATUS(woken);
    }
    co_return watcher->Take();
  }

  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Watcher> watcher_;
};

class EngineHandle final : public Store {
 public:
  explicit EngineHandle(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  rt::Task<Result<TxnResult>> Commit(Txn txn) override {
    const std::shared_ptr<Engine> engine = engine_;
    Answer<Result<TxnResult>> answer;
    engine->Commit(std::move(txn), answer.done());
    co_return co_await *answer.leaf;
  }
  rt::Task<Result<RangeResult>> Range(RangeRequest request) override {
    const std::shared_ptr<Engine> engine = engine_;
    Answer<Result<RangeResult>> answer;
    engine->Range(std::move(request), answer.done());
    co_return co_await *answer.leaf;
  }
  rt::Task<Result<std::unique_ptr<Watch>>> StartWatch(WatchRequest request) override {
    CO_TRY(std::shared_ptr<Watcher> watcher, engine_->StartWatch(std::move(request)));
    co_return std::unique_ptr<Watch>(std::make_unique<EngineWatch>(engine_, std::move(watcher)));
  }
  rt::Task<Status> Compact(Revision revision) override {
    const std::shared_ptr<Engine> engine = engine_;
    Answer<Status> answer;
    engine->Compact(revision, answer.done());
    co_return co_await *answer.leaf;
  }
  rt::Task<Result<Revision>> CurrentRevision() override { co_return engine_->revision(); }
  rt::Task<Result<Revision>> CompactedRevision() override { co_return engine_->compacted(); }
  rt::Task<Result<LeaseId>> GrantLease(Duration ttl) override {
    const std::shared_ptr<Engine> engine = engine_;
    Answer<Result<LeaseId>> answer;
    engine->GrantLease(ttl, answer.done());
    co_return co_await *answer.leaf;
  }
  rt::Task<Status> RenewLease(LeaseId lease) override { co_return engine_->RenewLease(lease); }
  rt::Task<Status> RevokeLease(LeaseId lease) override {
    const std::shared_ptr<Engine> engine = engine_;
    Answer<Status> answer;
    engine->RevokeLease(lease, answer.done());
    co_return co_await *answer.leaf;
  }

 private:
  std::shared_ptr<Engine> engine_;
};

}  // namespace

std::unique_ptr<Store> MakeHandle(std::shared_ptr<Engine> engine) {
  return std::make_unique<EngineHandle>(std::move(engine));
}

rt::Task<Status> RecoverEngine(std::shared_ptr<Engine> engine) {
  Answer<Status> answer;
  engine->Recover(answer.done());
  co_return co_await *answer.leaf;
}

rt::Task<Status> CloseEngine(std::shared_ptr<Engine> engine) {
  Answer<Status> answer;
  engine->Close(answer.done());
  co_return co_await *answer.leaf;
}

}  // namespace berth::store
