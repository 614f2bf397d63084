// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/etcd_store.h"

#include <utility>

#include "net/h2/h2_dialer.h"
#include "net/h2/h2_limits.h"
#include "net/h2/h2_plain_dialer.h"
#include "store/etcd/etcd_engine.h"

namespace berth::store {
namespace {

net::H2Limits Limits() {
  net::H2Limits limits;
  limits.streams_max = 250;
  // Four pages of a list at once, each with one very large object (EtcdLink's limit of a message).
  limits.received_bytes_max = 128 * 1024 * 1024;
  limits.queued_bytes_max = 128 * 1024 * 1024;
  // etcd acknowledges every piece of what it receives.
  limits.control_frames_burst = 100'000;
  limits.control_frames_per_second = 100'000;
  // etcd tolerates one ping in 5 s.
  limits.keepalive_interval = Duration::Seconds(6);
  limits.keepalive_timeout = Duration::Seconds(4);
  return limits;
}

class EtcdWatch final : public Watch {
 public:
  EtcdWatch(std::shared_ptr<EtcdEngine> engine, std::shared_ptr<EtcdWatcher> watcher)
      : engine_(std::move(engine)), watcher_(std::move(watcher)) {}
  ~EtcdWatch() override { engine_->EndWatch(watcher_); }

  rt::Task<Result<WatchBatch>> Next() override { return NextOf(engine_, watcher_); }

 private:
  // A coroutine of its own state: the watch may be destroyed while it waits.
  static rt::Task<Result<WatchBatch>> NextOf(std::shared_ptr<EtcdEngine> engine,
                                             std::shared_ptr<EtcdWatcher> watcher) {
    co_return co_await engine->Next(std::move(watcher));
  }

  std::shared_ptr<EtcdEngine> engine_;
  std::shared_ptr<EtcdWatcher> watcher_;
};

// Every call keeps the engine alive by itself.
class EtcdHandle final : public Store {
 public:
  explicit EtcdHandle(std::shared_ptr<EtcdEngine> engine) : engine_(std::move(engine)) {}

  rt::Task<Result<TxnResult>> Commit(Txn txn) override {
    const std::shared_ptr<EtcdEngine> engine = engine_;
    co_return co_await engine->Commit(std::move(txn));
  }
  rt::Task<Result<RangeResult>> Range(RangeRequest request) override {
    const std::shared_ptr<EtcdEngine> engine = engine_;
    co_return co_await engine->Range(std::move(request));
  }
  rt::Task<Result<std::unique_ptr<Watch>>> StartWatch(WatchRequest request) override {
    const std::shared_ptr<EtcdEngine> engine = engine_;
    CO_TRY(std::shared_ptr<EtcdWatcher> watcher, co_await engine->StartWatch(std::move(request)));
    co_return std::unique_ptr<Watch>(std::make_unique<EtcdWatch>(engine, std::move(watcher)));
  }
  rt::Task<Status> Compact(Revision revision) override {
    const std::shared_ptr<EtcdEngine> engine = engine_;
    co_return co_await engine->Compact(revision);
  }
  rt::Task<Result<Revision>> CurrentRevision() override {
    const std::shared_ptr<EtcdEngine> engine = engine_;
    co_return co_await engine->CurrentRevision();
  }
  rt::Task<Result<Revision>> CompactedRevision() override {
    const std::shared_ptr<EtcdEngine> engine = engine_;
    co_return co_await engine->CompactedRevision();
  }
  rt::Task<Result<LeaseId>> GrantLease(Duration ttl) override {
    const std::shared_ptr<EtcdEngine> engine = engine_;
    co_return co_await engine->GrantLease(ttl);
  }
  rt::Task<Status> RenewLease(LeaseId lease) override {
    const std::shared_ptr<EtcdEngine> engine = engine_;
    co_return co_await engine->RenewLease(lease);
  }
  rt::Task<Status> RevokeLease(LeaseId lease) override {
    const std::shared_ptr<EtcdEngine> engine = engine_;
    co_return co_await engine->RevokeLease(lease);
  }

 private:
  std::shared_ptr<EtcdEngine> engine_;
};

}  // namespace

EtcdStore::EtcdStore(std::shared_ptr<EtcdEngine> engine) : engine_(std::move(engine)) {}
EtcdStore::~EtcdStore() = default;

rt::Task<Result<std::unique_ptr<EtcdStore>>> EtcdStore::Open(rt::AsioLoop& loop,
                                                             EtcdOptions options) {
  std::unique_ptr<net::RpcDialer> dialer;
  if (options.uses_tls()) {
    dialer = std::make_unique<net::H2Dialer>(loop, Limits());
  } else {
    dialer = std::make_unique<net::H2PlainDialer>(loop, Limits());
  }
  auto engine = std::make_shared<EtcdEngine>(loop, std::move(dialer), std::move(options));
  const Status started = co_await engine->Start();
  if (!started.ok()) {
    CO_TRY_STATUS(co_await engine->Close());
    co_return started;
  }
  co_return std::unique_ptr<EtcdStore>(new EtcdStore(std::move(engine)));
}

std::unique_ptr<Store> EtcdStore::NewHandle() { return std::make_unique<EtcdHandle>(engine_); }
Status EtcdStore::health() const { return engine_->health(); }

rt::Task<Status> EtcdStore::Close() {
  const std::shared_ptr<EtcdEngine> engine = engine_;
  co_return co_await engine->Close();
}

}  // namespace berth::store
