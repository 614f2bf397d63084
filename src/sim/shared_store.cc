// SPDX-License-Identifier: Apache-2.0
#include "sim/shared_store.h"

#include <utility>

#include "rt/run_on.h"
#include "rt/sleep.h"

namespace berth::sim {
namespace {

// How long a call waits for an answer that does not come.
constexpr Duration kSilence = Duration::Seconds(1);

// The loop of the store and what runs there for servers.
struct Far {
  store::Store* store;
  rt::TaskScope* scope;
};

template <class T>
rt::Task<T> Pass(StoreLink* link, Far far, rt::MakeTask<T> make) {
  CO_TRY_STATUS(co_await rt::Sleep(link->DrawLatency()));
  if (link->is_cut()) {
    CO_TRY_STATUS(co_await rt::Sleep(kSilence));
    co_return Unavailable("the store cannot be reached");
  }
  T answer = co_await rt::RunOn<T>(far.scope, std::move(make));
  CO_TRY_STATUS(co_await rt::Sleep(link->DrawLatency()));
  if (link->is_cut()) {
    CO_TRY_STATUS(co_await rt::Sleep(kSilence));
    co_return Unavailable("the store does not answer: what happened is unknown");
  }
  co_return answer;
}

class FarWatch final : public store::Watch {
 public:
  FarWatch(StoreLink& link, Far far, std::shared_ptr<store::Watch> inner)
      : link_(link), far_(far), inner_(std::move(inner)) {}

  rt::Task<Result<store::WatchBatch>> Next() override {
    rt::MakeTask<Result<store::WatchBatch>> make = [inner = inner_] { return inner->Next(); };
    return Pass<Result<store::WatchBatch>>(&link_, far_, std::move(make));
  }

 private:
  StoreLink& link_;
  const Far far_;
  std::shared_ptr<store::Watch> inner_;
};

class FarStore final : public store::Store {
 public:
  FarStore(StoreLink& link, Far far) : link_(link), far_(far) {}

  rt::Task<Result<store::TxnResult>> Commit(store::Txn txn) override {
    return Ask<Result<store::TxnResult>>([store = far_.store, txn = std::move(txn)]() mutable {
      return store->Commit(std::move(txn));
    });
  }
  rt::Task<Result<store::RangeResult>> Range(store::RangeRequest request) override {
    return Ask<Result<store::RangeResult>>(
        [store = far_.store, request = std::move(request)]() mutable {
          return store->Range(std::move(request));
        });
  }
  rt::Task<Result<std::unique_ptr<store::Watch>>> StartWatch(store::WatchRequest request) override {
    using Shared = std::shared_ptr<store::Watch>;
    rt::MakeTask<Result<Shared>> make = [store = far_.store,
                                         request = std::move(request)]() mutable {
      return Share(store, std::move(request));
    };
    StoreLink& link = link_;
    const Far far = far_;
    CO_TRY(Shared inner, co_await Pass<Result<Shared>>(&link, far, std::move(make)));
    co_return std::unique_ptr<store::Watch>(
        std::make_unique<FarWatch>(link, far, std::move(inner)));
  }
  rt::Task<Status> Compact(store::Revision revision) override {
    return Ask<Status>([store = far_.store, revision] { return store->Compact(revision); });
  }
  rt::Task<Result<store::Revision>> CurrentRevision() override {
    return Ask<Result<store::Revision>>([store = far_.store] { return store->CurrentRevision(); });
  }
  rt::Task<Result<store::Revision>> CompactedRevision() override {
    return Ask<Result<store::Revision>>(
        [store = far_.store] { return store->CompactedRevision(); });
  }
  rt::Task<Result<store::LeaseId>> GrantLease(Duration ttl) override {
    return Ask<Result<store::LeaseId>>(
        [store = far_.store, ttl] { return store->GrantLease(ttl); });
  }
  rt::Task<Status> RenewLease(store::LeaseId lease) override {
    return Ask<Status>([store = far_.store, lease] { return store->RenewLease(lease); });
  }
  rt::Task<Status> RevokeLease(store::LeaseId lease) override {
    return Ask<Status>([store = far_.store, lease] { return store->RevokeLease(lease); });
  }

 private:
  // A watch that is dropped on the way back, because nobody waits any more, ends where it lives.
  static rt::Task<Result<std::shared_ptr<store::Watch>>> Share(store::Store* store,
                                                               store::WatchRequest request) {
    rt::Loop& loop = (co_await rt::CurrentContext()).loop();
    CO_TRY(std::unique_ptr<store::Watch> watch, co_await store->StartWatch(std::move(request)));
    co_return std::shared_ptr<store::Watch>(watch.release(), [&loop](store::Watch* ended) {
      loop.Post("sim.watch.end", [owned = std::unique_ptr<store::Watch>(ended)] {});
    });
  }
  template <class T>
  rt::Task<T> Ask(rt::MakeTask<T> make) {
    return Pass<T>(&link_, far_, std::move(make));
  }

  StoreLink& link_;
  const Far far_;
};

}  // namespace

SharedStore::SharedStore(rt::SimLoop& world)
    : loop_(world.NewLoop("etcd")),
      memory_(store::MemoryStore::Open(loop_)),
      own_(memory_->NewHandle()),
      scope_(loop_) {}

SharedStore::~SharedStore() = default;

std::unique_ptr<store::Store> SharedStore::NewHandle(StoreLink& link) {
  return std::make_unique<FarStore>(link, Far{.store = own_.get(), .scope = &scope_});
}

rt::Task<Status> SharedStore::Close() {
  CO_TRY_STATUS(co_await scope_.Close());
  own_.reset();
  co_return co_await memory_->Close();
}

}  // namespace berth::sim
