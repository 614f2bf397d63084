// SPDX-License-Identifier: Apache-2.0
// A scheduler with a whole API server behind it and a fake fleet in front, for tests.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/pool_parts.h"
#include "apis/k8s/priority_class.h"
#include "apis/placement.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_pool.h"
#include "apiserver/registry/registry_world.h"
#include "base/check.h"
#include "base/metrics.h"
#include "fleet/fake/fake_fleet.h"
#include "scheduler/placing/scheduler.h"

namespace berth::scheduler {

class SchedulerWorld {
 public:
  static constexpr char kNamespace[] = "team";

  explicit SchedulerWorld(uint64_t seed) : world_(seed), fleet_(world_.loop()) {
    world_.MakeNamespace(kNamespace);
    world_.MakeNamespace(kSystemNamespace);
    MakeClass("small", "1", "1Gi");
    MakeClass("large", "4", "8Gi");
  }
  ~SchedulerWorld() { StopScheduler(); }
  SchedulerWorld(const SchedulerWorld&) = delete;
  SchedulerWorld& operator=(const SchedulerWorld&) = delete;

  // For schedulers that start from here on; outlives them.
  void UseBinder(client::Binder& binder) { binder_ = &binder; }
  void UseClient(client::Client& client) { client_ = &client; }
  void StartScheduler() {
    scope_ = std::make_unique<rt::TaskScope>(world_.loop());
    scheduler_ = std::make_unique<Scheduler>(
        Scheduler::Deps{.loop = world_.loop(),
                        .client = client_ != nullptr ? *client_ : world_.client(),
                        .binder = binder_ != nullptr ? *binder_ : world_.registry().binder(),
                        .fleet = fleet_,
                        .scheme = world_.scheme(),
                        .metrics = metrics_},
        SchedulerOptions{.holder = "scheduler-" + std::to_string(++starts_),
                         .take_over = client::TakeOver::kAtOnce});
    scope_->Spawn("scheduler", scheduler_->Run());
    CHECK(Until([this] { return scheduler_->ready(); })) << "the scheduler does not get ready";
  }
  void StopScheduler() {
    if (scheduler_ == nullptr) return;
    const Status closed = world_.Run(scope_->Close());
    CHECK(closed.ok()) << closed;
    scheduler_.reset();
  }

  void MakeClass(const std::string& name, const char* cpu, const char* memory) {
    apis::compute::MachineClass size;
    size.metadata.name = name;
    size.capabilities = {{"cpu", *meta::Quantity::Parse(cpu)},
                         {"memory", *meta::Quantity::Parse(memory)}};
    Make(meta::Object::Of(apis::compute::kMachineClassKind, std::move(size)));
  }

  void MakePriorityClass(const std::string& name,
                         int32_t value,
                         const std::string& preemptible,
                         const std::string& policy = "PreemptLowerPriority") {
    apis::k8s::PriorityClass made;
    made.metadata.name = name;
    made.metadata.annotations[std::string(apis::k8s::kPreemptibleAnnotation)] = preemptible;
    made.value = value;
    made.preemption_policy = policy;
    Make(meta::Object::Of(apis::k8s::kPriorityClassKind, std::move(made)));
  }

  // A pool that was announced in a session; its UID.
  std::string MakePool(const std::string& name,
                       int64_t cpus = 8,
                       const std::string& zone = "a",
                       const std::vector<std::string>& classes = {"small", "large"},
                       const std::string& mode = "Session") {
    apis::compute::MachinePool pool;
    pool.metadata.name = name;
    pool.metadata.labels["zone"] = zone;
    pool.spec.provider_id = "test://" + name;
    pool.spec.host_ref = apis::core::LocalObjectReference{"host-" + name};
    meta::Object made = Make(meta::Object::Of(apis::compute::kMachinePoolKind, std::move(pool)));
    auto& status = made.as<apis::compute::MachinePool>().status;
    status.state = "Ready";
    status.agent = apis::core::PoolAgent{.mode = mode};
    status.conditions.push_back(
        {.type = "Ready", .status = "True", .reason = "Connected", .message = ""});
    for (const std::string& offered : classes) {
      status.available_machine_classes.push_back({offered});
    }
    status.capacity = {{"cpu", meta::Quantity(cpus)}, {"memory", meta::Quantity(cpus * 4LL << 30)}};
    const std::string uid = made.metadata().uid;
    UpdateStatus(std::move(made));
    return uid;
  }
  std::string MakeVolumePool(const std::string& name,
                             const std::string& host,
                             const std::string& reach) {
    apis::storage::VolumePool pool;
    pool.metadata.name = name;
    pool.spec.provider_id = "test://" + name;
    if (!host.empty()) pool.spec.host_ref = apis::core::LocalObjectReference{host};
    pool.spec.reach = reach;
    meta::Object made = Make(meta::Object::Of(apis::storage::kVolumePoolKind, std::move(pool)));
    auto& status = made.as<apis::storage::VolumePool>().status;
    status.state = "Available";
    status.agent = apis::core::PoolAgent{.mode = "Session"};
    status.conditions.push_back({.type = "Ready", .status = "True"});
    status.available_volume_classes = {{"disk"}};
    status.capacity = {{"storage", meta::Quantity(100LL << 30)}};
    const std::string uid = made.metadata().uid;
    UpdateStatus(std::move(made));
    return uid;
  }
  // The pool only says how many machines of each class it could hold.
  void CountPerClass(const std::string& pool, const std::map<std::string, int64_t>& classes) {
    auto got = world_.Run(world_.client().Get(apis::compute::kMachinePoolKind, {"", pool}));
    CHECK(got.ok()) << got.status();
    auto& capacity = got->as<apis::compute::MachinePool>().status.capacity;
    capacity.clear();
    for (const auto& [name, count] : classes) {
      capacity["class/machine." + name] = meta::Quantity(count);
    }
    UpdateStatus(*std::move(got));
  }
  // The pool has a session, and its host accepts everything.
  void Join(const std::string& pool_uid, int64_t cpus = 8) {
    fleet::PoolFacts facts;
    facts.pool_uid = pool_uid;
    facts.ledger = {.boot = "boot", .counter = 1};
    facts.capacity = {{"cpu", cpus * 1000}, {"memory", cpus * 4LL << 30}};
    fleet_.Join(facts);
  }
  void JoinVolumePool(const std::string& pool_uid) {
    fleet::PoolFacts facts;
    facts.pool_uid = pool_uid;
    facts.ledger = {.boot = "boot", .counter = 1};
    facts.capacity = {{"storage", 100LL << 30}};
    fleet_.Join(facts);
  }

  apis::compute::Machine Machine(const std::string& name, const std::string& size = "small") {
    apis::compute::Machine machine;
    machine.metadata.namespace_ = kNamespace;
    machine.metadata.name = name;
    machine.spec.machine_class_ref.name = size;
    return machine;
  }
  std::string MakeMachine(apis::compute::Machine machine) {
    return Make(meta::Object::Of(apis::compute::kMachineKind, std::move(machine))).metadata().uid;
  }
  std::string MakeMachine(const std::string& name, const std::string& size = "small") {
    return MakeMachine(Machine(name, size));
  }
  void MakeVolume(const std::string& name, int64_t gigabytes = 1) {
    apis::storage::Volume volume;
    volume.metadata.namespace_ = kNamespace;
    volume.metadata.name = name;
    volume.spec.volume_class_ref = apis::core::LocalObjectReference{"disk"};
    volume.spec.resources = {{"storage", meta::Quantity(gigabytes << 30)}};
    Make(meta::Object::Of(apis::storage::kVolumeKind, std::move(volume)));
  }

  std::string VolumePoolOf(const std::string& name) {
    const auto volume = GetVolume(name);
    return volume.status.placement ? volume.status.placement->pool : std::string();
  }
  apis::compute::Machine GetMachine(const std::string& name) {
    const auto got =
        world_.Run(world_.client().Get(apis::compute::kMachineKind, {kNamespace, name}));
    CHECK(got.ok()) << got.status();
    return got->as<apis::compute::Machine>();
  }
  void ChangeMachine(apis::compute::Machine machine) {
    const auto written = world_.Run(world_.client().Update(
        meta::Object::Of(apis::compute::kMachineKind, std::move(machine)), {}));
    CHECK(written.ok()) << written.status();
  }
  apis::storage::Volume GetVolume(const std::string& name) {
    const auto got =
        world_.Run(world_.client().Get(apis::storage::kVolumeKind, {kNamespace, name}));
    CHECK(got.ok()) << got.status();
    return got->as<apis::storage::Volume>();
  }
  // A machine of a priority class.
  std::string MakeRanked(const std::string& name,
                         const std::string& priority_class,
                         const std::string& size = "small") {
    auto machine = Machine(name, size);
    machine.spec.placement.emplace().priority_class_name = priority_class;
    return MakeMachine(std::move(machine));
  }
  // status.placement.release; "" without.
  std::string ReleaseOf(const std::string& name) {
    const auto got = GetMachine(name);
    return got.status.placement ? got.status.placement->release : std::string();
  }
  // "reason: message" of the condition; "" without.
  std::string ConditionOf(const std::string& name, const std::string& type) {
    for (const auto& condition : GetMachine(name).status.conditions) {
      if (condition.type == type) return condition.reason + ": " + condition.message;
    }
    return "";
  }
  // Name of the pool that the machine is on; "" without.
  std::string PoolOf(const std::string& machine) {
    const auto got = GetMachine(machine);
    return got.status.placement ? got.status.placement->pool : std::string();
  }
  // The message of the machine's condition Scheduled=False; "" without.
  std::string WhyNot(const std::string& machine) {
    for (const auto& condition : GetMachine(machine).status.conditions) {
      if (condition.type == "Scheduled" && condition.status == "False") return condition.message;
    }
    return "";
  }
  bool IsPlaced(const std::string& machine) {
    return Until([&] { return !PoolOf(machine).empty(); });
  }
  void DeleteMachine(const std::string& name) {
    const Status deleted =
        world_.Run(world_.client().Delete(apis::compute::kMachineKind, {kNamespace, name}, {}));
    CHECK(deleted.ok()) << deleted;
  }
  void DeletePool(const std::string& name) {
    const Status deleted =
        world_.Run(world_.client().Delete(apis::compute::kMachinePoolKind, {"", name}, {}));
    CHECK(deleted.ok()) << deleted;
  }
  // Two pools, alpha and beta, whose hosts accept everything.
  void StartWithTwoPools() {
    const std::string alpha = MakePool("alpha");
    const std::string beta = MakePool("beta");
    StartScheduler();
    Join(alpha);
    Join(beta);
  }
  // Its host gives it back: what the gateway does when it is told Gone or AssignRefused.
  void LetGo(const std::string& name, const std::string& reason) {
    LetGo(apis::compute::kMachineKind, name, reason);
  }
  void LetGo(const meta::KindInfo& kind,
             const std::string& name,
             const std::string& reason,
             client::UnbindProof proof = client::UnbindProof::kHostReleased) {
    const auto object = world_.Run(world_.client().Get(kind, {kNamespace, name}));
    CHECK(object.ok()) << object.status();
    client::UnbindRequest unbind;
    unbind.kind = &kind;
    unbind.key = {kNamespace, name};
    unbind.uid = object->metadata().uid;
    unbind.placement = apis::EpochOf(*object);
    unbind.proof = proof;
    unbind.reason = reason;
    const auto verdicts = world_.Run(world_.registry().binder().UnbindBatch({unbind}));
    CHECK(verdicts[0].ok()) << verdicts[0];
  }
  // Its owner changes something that has nothing to do with its place.
  void Edit(const std::string& machine) {
    const auto patched = world_.Run(world_.client().Patch(apis::compute::kMachineKind,
                                                          {kNamespace, machine},
                                                          client::PatchType::kMerge,
                                                          R"({"spec":{"power":"Off"}})",
                                                          {}));
    CHECK(patched.ok()) << patched.status();
  }
  // It names these volumes from now on.
  void NameVolumes(const std::string& machine, const std::vector<std::string>& names) {
    std::string volumes;
    for (const std::string& name : names) {
      volumes += (volumes.empty() ? "" : ",") + std::string(R"({"name":")") + name +
                 R"(","volumeRef":{"name":")" + name + R"("}})";
    }
    const auto patched =
        world_.Run(world_.client().Patch(apis::compute::kMachineKind,
                                         {kNamespace, machine},
                                         client::PatchType::kMerge,
                                         R"({"spec":{"volumes":[)" + volumes + "]}}",
                                         {}));
    CHECK(patched.ok()) << patched.status();
  }
  Time Now() { return world_.loop().Now(); }
  // Of something without a namespace.
  void Patch(const meta::KindInfo& kind, const std::string& name, const std::string& body) {
    const auto patched =
        world_.Run(world_.client().Patch(kind, {"", name}, client::PatchType::kMerge, body, {}));
    CHECK(patched.ok()) << patched.status();
  }
  void Cordon(const std::string& pool) {
    Patch(apis::compute::kMachinePoolKind, pool, R"({"spec":{"unschedulable":true}})");
  }

  template <class Done>
  bool Until(Done done, Duration limit = Duration::Seconds(30)) {
    const Time end = world_.loop().Now() + limit;
    while (!done()) {
      if (world_.loop().Now() >= end) return false;
      world_.loop().RunFor(Duration::Millis(5));
    }
    return true;
  }
  void RunFor(Duration duration) { world_.loop().RunFor(duration); }

  apiserver::RegistryWorld& api() { return world_; }
  fleet::FakeFleet& fleet() { return fleet_; }
  Scheduler& scheduler() { return *scheduler_; }

 private:
  meta::Object Make(meta::Object object) {
    auto made = world_.Run(world_.client().Create(std::move(object), {}));
    CHECK(made.ok()) << made.status();
    return *std::move(made);
  }
  void UpdateStatus(meta::Object object) {
    client::WriteOptions options;
    options.subresource = client::Subresource::kStatus;
    const auto written = world_.Run(world_.client().Update(std::move(object), options));
    CHECK(written.ok()) << written.status();
  }

  apiserver::RegistryWorld world_;
  fleet::FakeFleet fleet_;
  metrics::Registry metrics_;
  client::Client* client_ = nullptr;
  client::Binder* binder_ = nullptr;  // null: the server's
  std::unique_ptr<rt::TaskScope> scope_;
  std::unique_ptr<Scheduler> scheduler_;
  int starts_ = 0;
};

}  // namespace berth::scheduler
