// SPDX-License-Identifier: Apache-2.0
// Defends, for many seeds, with two servers on one store, lost answers, delays and restarts: at
// every revision the guard of a pool is the sum of what is bound to it, no pool is promised more
// than it has, and the last room goes to one of those who race for it.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apiserver/cache/keys.h"
#include "apiserver/registry/placement_world.h"
#include "apiserver/registry/store_registry.h"
#include "base/random.h"
#include "meta/at_rest.h"
#include "rt/scope.h"
#include "rt/sim/sim_loop.h"
#include "rt/sleep.h"
#include "store/faults/faulty_store.h"
#include "store/memory/memory_store.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using apis::compute::kMachinePoolKind;

constexpr uint64_t kMachines = 14;
constexpr int kPools = 3;
constexpr int64_t kCpus = 3;

// Two servers on one store.
class TwoServers {
 public:
  explicit TwoServers(uint64_t seed) : loop_(seed), seed_(seed) {
    memory_ = store::MemoryStore::Open(loop_, disk_);
    for (Server& server : servers_) Start(server);
  }
  ~TwoServers() {
    for (Server& server : servers_) Stop(server);
    CHECK(Run(memory_->Close()).ok());
  }
  TwoServers(const TwoServers&) = delete;
  TwoServers& operator=(const TwoServers&) = delete;

  template <class T>
  T Run(rt::Task<T> task) {
    return rt::RunTask(loop_, std::move(task));
  }
  void Restart(size_t i) {
    Stop(servers_[i]);
    Start(servers_[i]);
  }
  void SetFaults(store::StoreFaults faults) {
    faults_ = faults;
    for (Server& server : servers_) server.store->SetFaults(faults);
  }
  rt::SimLoop& loop() { return loop_; }
  LoopbackClient& client(size_t i) { return *servers_[i].client; }
  store::Store& store() { return *servers_[0].handle; }

 private:
  struct Server {
    std::unique_ptr<store::Store> handle;
    std::unique_ptr<store::FaultyStore> store;
    std::unique_ptr<WatchCache> cache;
    std::unique_ptr<StoreRegistry> registry;
    std::unique_ptr<LoopbackClient> client;
  };
  void Start(Server& server) {
    server.handle = memory_->NewHandle();
    server.store = std::make_unique<store::FaultyStore>(*server.handle, seed_++, faults_);
    server.store->SetFaults({});
    const auto kinds = scheme_.kinds();
    auto cache = Run(WatchCache::Start(
        loop_, *server.store, std::vector(kinds.begin(), kinds.end()), WatchCacheOptions{}));
    CHECK(cache.ok()) << cache.status();
    server.cache = *std::move(cache);
    server.registry = std::make_unique<StoreRegistry>(loop_, *server.store, *server.cache, scheme_);
    server.client = std::make_unique<LoopbackClient>(
        *server.registry, scheme_, Identity{.user = "system:berth", .groups = {}, .uid = ""});
    server.store->SetFaults(faults_);
  }
  void Stop(Server& server) {
    CHECK(Run(server.cache->Close()).ok());
    server.client.reset();
    server.registry.reset();
    server.cache.reset();
    server.store.reset();
    server.handle.reset();
  }

  rt::SimLoop loop_;
  uint64_t seed_;
  store::StoreFaults faults_;
  const meta::Scheme scheme_{apis::AllKinds(), {"ironcore.dev"}};
  std::shared_ptr<store::MemoryDisk> disk_ = std::make_shared<store::MemoryDisk>();
  std::unique_ptr<store::MemoryStore> memory_;
  Server servers_[2];
};

meta::Object NewNamespace(const std::string& name) {
  apis::k8s::Namespace space;
  space.metadata.name = name;
  return meta::Object::Of(apis::k8s::kNamespaceKind, std::move(space));
}

class Scenario {
 public:
  explicit Scenario(uint64_t seed) : random_(seed * 31 + 5), world_(seed) {
    MustCreate(NewNamespace("default"));
    MustCreate(NewNamespace(std::string(kSystemNamespace)));
    apis::k8s::Lease lease;
    lease.metadata.namespace_ = kSystemNamespace;
    lease.metadata.name = kSchedulerLease;
    lease.spec.holder_identity = "s1";
    lease.spec.lease_transitions = 1;
    MustCreate(meta::Object::Of(apis::k8s::kLeaseKind, std::move(lease)));
    for (int i = 0; i < kPools; ++i) {
      apis::compute::MachinePool pool;
      pool.metadata.name = "p" + std::to_string(i);
      meta::Object made = MustCreate(meta::Object::Of(kMachinePoolKind, std::move(pool)));
      auto& status = made.as<apis::compute::MachinePool>().status;
      status.agent = apis::core::PoolAgent{
          .mode = std::string(i == 0 ? apis::core::kPoolModeApi : apis::core::kPoolModeSession)};
      status.capacity["cpu"] = meta::Quantity(kCpus);
      pools_.push_back(made.metadata().uid);
      const auto updated = world_.Run(
          world_.client(0).Update(std::move(made), {.subresource = client::Subresource::kStatus}));
      CHECK(updated.ok()) << updated.status();
    }
  }

  void Phase(int writers) {
    rt::TaskScope scope(world_.loop());
    for (int i = 0; i < writers; ++i) scope.Spawn("writer", Write(i % 2));
    world_.loop().RunFor(Duration::Millis(random_.Between(50, 300)));
    CHECK(rt::RunTask(world_.loop(), scope.Close()).ok());
  }
  void Restart() { world_.Restart(random_.Below(2)); }
  void SetFaults(store::StoreFaults faults) { world_.SetFaults(faults); }

  void CheckHistory() {
    const auto now = world_.Run(world_.store().CurrentRevision());
    ASSERT_TRUE(now.ok());
    CheckAt(*now);
    for (int i = 0; i < 10; ++i) {
      CheckAt({random_.Between(checked_, now->value)});
    }
    checked_ = now->value;
  }
  int bound() const { return bound_; }

 private:
  meta::Object MustCreate(meta::Object object) {
    auto made = world_.Run(world_.client(0).Create(std::move(object), {}));
    CHECK(made.ok()) << made.status();
    return *std::move(made);
  }
  std::string Name() { return "m" + std::to_string(random_.Below(kMachines)); }

  // The guards at a revision, against what is bound at that revision.
  void CheckAt(store::Revision revision) {
    std::map<std::string, PoolGuard> sums;
    for (const store::KeyValue& item : Range(KeyPrefix(kMachineKind), revision)) {
      const auto machine = meta::DecodeAtRest(kMachineKind, item.value.view(), "1");
      ASSERT_TRUE(machine.ok()) << machine.status();
      if (!apis::IsBound(*machine)) continue;
      const auto& placement = *apis::PlacementOf(*machine);
      EXPECT_EQ(apis::PoolRefOf(*machine)->name, placement.pool);
      PoolGuard& sum = sums[placement.pool_uid];
      ++sum.count;
      for (const auto& [name, amount] : apis::ToAmounts(placement.resources)) {
        sum.allocated[name] += amount;
      }
    }
    for (const store::KeyValue& item : Range(std::string(kGuardPrefix), revision)) {
      const auto guard = meta::DecodeJsonAs<PoolGuard>(item.value.view());
      ASSERT_TRUE(guard.ok()) << guard.status();
      const PoolGuard sum = std::exchange(sums[item.key.substr(kGuardPrefix.size())], {});
      EXPECT_EQ(guard->allocated, sum.allocated) << guard->pool << " at " << revision.value;
      EXPECT_EQ(guard->count, sum.count) << guard->pool << " at " << revision.value;
      EXPECT_LE(guard->count, kCpus) << guard->pool << " at " << revision.value;
    }
    for (const auto& [pool, sum] : sums) EXPECT_EQ(sum.count, 0) << "a pool without a guard";
  }
  std::vector<store::KeyValue> Range(const std::string& prefix, store::Revision revision) {
    store::RangeRequest request;
    request.start = prefix;
    request.end = store::PrefixEnd(prefix);
    request.revision = revision;
    auto found = world_.Run(world_.store().Range(std::move(request)));
    CHECK(found.ok()) << found.status();
    return std::move(found->items);
  }

  client::BindItem Choose(const meta::Object& machine) {
    const auto pool = static_cast<size_t>(random_.Below(kPools));
    return PlacementWorld::ItemFor(machine, "p" + std::to_string(pool), pools_[pool]);
  }

  rt::Task<Status> Write(int server) {
    LoopbackClient& client = world_.client(static_cast<size_t>(server));
    for (;;) {
      const Duration pause = Duration::Micros(random_.Between(1, 3000));
      CO_TRY_STATUS(co_await rt::Sleep(pause));
      const Status status = co_await Step(&client, Name());
      if (status.Is(Reason::kCancelled)) co_return status;
    }
  }

  rt::Task<Status> Step(LoopbackClient* client, std::string name) {
    const client::ObjectKey key{"default", name};
    const uint64_t choice = random_.Below(12);
    if (choice == 0) co_return co_await CreateBound(client, std::move(name));
    if (choice == 1) co_return co_await Cordon(client);
    const auto machine = co_await client->Get(kMachineKind, key);
    if (machine.status().Is(Reason::kNotFound)) {
      meta::Object fresh = PlacementWorld::Machine(name);
      co_return (co_await client->Create(std::move(fresh), {})).status();
    }
    CO_TRY_STATUS(machine);
    if (choice == 2) {
      client::DeleteOptions options;
      options.force = random_.Below(2) == 0 ? client::Force::kYes : client::Force::kNo;
      co_return co_await client->Delete(kMachineKind, key, options);
    }
    if (choice == 3) {
      std::string body =
          R"({"status":{"machineID":"x://)" + std::to_string(random_.Below(9)) + R"("}})";
      const client::WriteOptions options{.subresource = client::Subresource::kStatus};
      co_return (co_await client->Patch(
                     kMachineKind, key, client::PatchType::kMerge, std::move(body), options))
          .status();
    }
    if (apis::IsBound(*machine)) {
      if (choice > 6) co_return OkStatus();
      client::UnbindRequest request{.kind = &kMachineKind,
                                    .key = key,
                                    .uid = machine->metadata().uid,
                                    .placement = apis::EpochOf(*machine),
                                    .proof = client::UnbindProof::kHostReleased,
                                    .reason = "Gone",
                                    .message = "gone"};
      std::vector<client::UnbindRequest> requests = {std::move(request)};
      const auto verdicts = co_await client->UnbindBatch(std::move(requests));
      co_return verdicts[0];
    }
    std::vector<client::BindRequest> requests = {PlacementWorld::RequestFor({Choose(*machine)})};
    const auto verdicts = co_await client->BindBatch(std::move(requests));
    if (verdicts[0].ok()) ++bound_;
    co_return verdicts[0].status();
  }

  rt::Task<Status> CreateBound(LoopbackClient* client, std::string name) {
    meta::Object machine = PlacementWorld::Machine(name);
    std::vector<client::BindItem> items = {Choose(machine)};
    const auto made =
        co_await client->CreateBoundBatch(std::move(machine), std::move(items), "s1", 1);
    if (made[0].ok()) ++bound_;
    co_return made[0];
  }

  rt::Task<Status> Cordon(LoopbackClient* client) {
    const client::ObjectKey key{"", "p" + std::to_string(random_.Below(kPools))};
    std::string body = random_.Below(3) == 0 ? R"({"spec":{"unschedulable":true}})"
                                             : R"({"spec":{"unschedulable":false}})";
    co_return (co_await client->Patch(
                   kMachinePoolKind, key, client::PatchType::kMerge, std::move(body), {}))
        .status();
  }

  Random random_;
  TwoServers world_;
  std::vector<std::string> pools_;
  int bound_ = 0;
  int64_t checked_ = 2;
};

TEST(BindingProperties, GuardsAreTheSumOfWhatIsBoundAtEveryRevision) {
  int bound = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Scenario scenario(seed);
    for (int phase = 0; phase < 6; ++phase) {
      if (phase % 2 == 1) {
        scenario.SetFaults({.refuse = 0.05,
                            .lose_answer = 0.1,
                            .delay = 0.3,
                            .delay_max = Duration::Millis(5),
                            .end_watch = 0.01});
      }
      scenario.Phase(8);
      scenario.SetFaults({});
      scenario.CheckHistory();
      if (testing::Test::HasFailure()) return;
      if (phase == 3) scenario.Restart();
    }
    bound += scenario.bound();
  }
  EXPECT_GT(bound, 500) << "the test binds too little to show anything";
}

TEST(BindingProperties, S3d_TwoServersRaceForTheLastRoomAndOneWins) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    TwoServers world(seed);
    for (const std::string name : {"default", "berth-system"}) {
      CHECK(world.Run(world.client(0).Create(NewNamespace(name), {})).ok());
    }
    apis::k8s::Lease lease;
    lease.metadata.namespace_ = kSystemNamespace;
    lease.metadata.name = kSchedulerLease;
    lease.spec.holder_identity = "s1";
    lease.spec.lease_transitions = 1;
    CHECK(world
              .Run(world.client(0).Create(meta::Object::Of(apis::k8s::kLeaseKind, std::move(lease)),
                                          {}))
              .ok());
    apis::compute::MachinePool pool;
    pool.metadata.name = "p";
    auto made = world.Run(world.client(0).Create(meta::Object::Of(kMachinePoolKind, pool), {}));
    auto& status = made->as<apis::compute::MachinePool>().status;
    status.agent = apis::core::PoolAgent{.mode = "Session"};
    status.capacity["cpu"] = meta::Quantity(1);
    const std::string uid = made->metadata().uid;
    CHECK(world.Run(world.client(0).Update(*made, {.subresource = client::Subresource::kStatus}))
              .ok());
    std::vector<rt::Task<std::vector<Result<std::vector<meta::Object>>>>> races;
    for (size_t i = 0; i < 2; ++i) {
      const auto machine =
          world.Run(world.client(0).Create(PlacementWorld::Machine("m" + std::to_string(i)), {}));
      std::vector<client::BindRequest> requests = {
          PlacementWorld::RequestFor({PlacementWorld::ItemFor(*machine, "p", uid)})};
      races.push_back(world.client(i).BindBatch(std::move(requests)));
    }
    world.SetFaults({.delay = 0.7, .delay_max = Duration::Millis(4)});
    const auto verdicts = world.Run(rt::JoinAll(std::move(races)));
    EXPECT_NE(verdicts[0][0].ok(), verdicts[1][0].ok()) << seed;
    for (const auto& verdict : verdicts) {
      if (!verdict[0].ok()) EXPECT_EQ(verdict[0].status().reason(), Reason::kForbidden);
    }
  }
}

}  // namespace
}  // namespace berth::apiserver
