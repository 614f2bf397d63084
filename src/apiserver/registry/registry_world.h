// SPDX-License-Identifier: Apache-2.0
// A whole API server without HTTP, on a memory store and a simulated loop, for tests. Restart()
// throws away everything but the disk.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "apis/k8s/namespace.h"
#include "apis/registry.h"
#include "apiserver/cache/watch_cache.h"
#include "apiserver/registry/loopback_client.h"
#include "apiserver/registry/store_registry.h"
#include "base/check.h"
#include "meta/scheme.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/faults/faulty_store.h"
#include "store/memory/memory_store.h"

namespace berth::apiserver {

class RegistryWorld {
 public:
  explicit RegistryWorld(uint64_t seed, WatchCacheOptions cache_options = {})
      : loop_(seed), seed_(seed), cache_options_(cache_options) {
    Start();
  }
  ~RegistryWorld() { Stop(); }
  RegistryWorld(const RegistryWorld&) = delete;
  RegistryWorld& operator=(const RegistryWorld&) = delete;

  void Restart() {
    Stop();
    Start();
  }

  // From now on, restarts included.
  void SetFaults(store::StoreFaults faults) {
    faults_ = faults;
    store_->SetFaults(faults);
  }

  template <class T>
  T Run(rt::Task<T> task) {
    return rt::RunTask(loop_, std::move(task));
  }
  void MakeNamespace(const std::string& name) {
    apis::k8s::Namespace space;
    space.metadata.name = name;
    const auto made =
        Run(client().Create(meta::Object::Of(apis::k8s::kNamespaceKind, std::move(space)), {}));
    CHECK(made.ok()) << made.status();
  }

  rt::SimLoop& loop() { return loop_; }
  const meta::Scheme& scheme() const { return scheme_; }
  store::Store& store() { return *store_; }
  // The same store as another server reaches it, without faults.
  std::unique_ptr<store::Store> NewHandle() { return memory_->NewHandle(); }
  WatchCache& cache() { return *cache_; }
  Registry& registry() { return *registry_; }
  LoopbackClient& client() { return *client_; }

 private:
  void Start() {
    memory_ = store::MemoryStore::Open(loop_, disk_);
    handle_ = memory_->NewHandle();
    store_ = std::make_unique<store::FaultyStore>(*handle_, seed_, store::StoreFaults{});
    const auto kinds = scheme_.kinds();
    auto cache = Run(
        WatchCache::Start(loop_, *store_, std::vector(kinds.begin(), kinds.end()), cache_options_));
    CHECK(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
    registry_ = std::make_unique<StoreRegistry>(loop_, *store_, *cache_, scheme_);
    client_ = std::make_unique<LoopbackClient>(
        *registry_, scheme_, Identity{.user = "system:berth", .groups = {}, .uid = ""});
    store_->SetFaults(faults_);
  }
  void Stop() {
    const Status closed = Run(cache_->Close());
    CHECK(closed.ok()) << closed;
    client_.reset();
    registry_.reset();
    cache_.reset();
    store_.reset();
    handle_.reset();
    const Status stopped = Run(memory_->Close());
    CHECK(stopped.ok()) << stopped;
    memory_.reset();
  }

  rt::SimLoop loop_;
  const uint64_t seed_;
  const WatchCacheOptions cache_options_;
  store::StoreFaults faults_;
  const meta::Scheme scheme_{apis::AllKinds(), {"ironcore.dev", "OpenKCM.dev"}};
  std::shared_ptr<store::MemoryDisk> disk_ = std::make_shared<store::MemoryDisk>();
  std::unique_ptr<store::MemoryStore> memory_;
  std::unique_ptr<store::Store> handle_;
  std::unique_ptr<store::FaultyStore> store_;
  std::unique_ptr<WatchCache> cache_;
  std::unique_ptr<StoreRegistry> registry_;
  std::unique_ptr<LoopbackClient> client_;
};

}  // namespace berth::apiserver
