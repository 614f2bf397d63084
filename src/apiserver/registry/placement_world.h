// SPDX-License-Identifier: Apache-2.0
// A server without HTTP in which things are placed: pools, machines, volumes, and a scheduler's
// Lease.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/k8s/lease.h"
#include "apis/placement.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_pool.h"
#include "apiserver/registry/pool_guards.h"
#include "apiserver/registry/registry_world.h"
#include "apiserver/registry/scheduler_term.h"
#include "meta/json.h"

namespace berth::apiserver {

constexpr int64_t kCpuOfMachine = 1000;

class PlacementWorld : public RegistryWorld {
 public:
  explicit PlacementWorld(uint64_t seed = 1) : RegistryWorld(seed) {
    MakeNamespace("default");
    MakeNamespace(std::string(kSystemNamespace));
    HoldLease("s1", 1);
  }

  // Somebody holds the scheduler's Lease in this term from now on.
  void HoldLease(const std::string& holder, int32_t term) {
    const client::ObjectKey key{std::string(kSystemNamespace), std::string(kSchedulerLease)};
    auto found = Run(client().Get(apis::k8s::kLeaseKind, key));
    apis::k8s::Lease lease;
    if (found.ok()) lease = found->as<apis::k8s::Lease>();
    lease.metadata.namespace_ = key.namespace_;
    lease.metadata.name = key.name;
    lease.spec.holder_identity = holder;
    lease.spec.lease_transitions = term;
    lease.spec.renew_time = meta::MicroTime{loop().WallNow()};
    meta::Object object = meta::Object::Of(apis::k8s::kLeaseKind, std::move(lease));
    const auto written =
        Run(found.ok() ? client().Update(object, {}) : client().Create(object, {}));
    CHECK(written.ok()) << written.status();
  }

  // A pool that was announced; its UID.
  std::string MakePool(const std::string& name,
                       int64_t cpus,
                       std::string_view mode = apis::core::kPoolModeSession) {
    apis::compute::MachinePool pool;
    pool.metadata.name = name;
    meta::Object made =
        Must(Run(client().Create(meta::Object::Of(apis::compute::kMachinePoolKind, pool), {})));
    auto& status = made.as<apis::compute::MachinePool>().status;
    status.agent = apis::core::PoolAgent{.mode = std::string(mode)};
    status.capacity["cpu"] = meta::Quantity(cpus);
    const client::WriteOptions options{.subresource = client::Subresource::kStatus};
    return Must(Run(client().Update(std::move(made), options))).metadata().uid;
  }
  std::string MakeVolumePool(const std::string& name, int64_t bytes) {
    apis::storage::VolumePool pool;
    pool.metadata.name = name;
    meta::Object made =
        Must(Run(client().Create(meta::Object::Of(apis::storage::kVolumePoolKind, pool), {})));
    auto& status = made.as<apis::storage::VolumePool>().status;
    status.agent = apis::core::PoolAgent{.mode = std::string(apis::core::kPoolModeSession)};
    status.capacity["storage"] = meta::Quantity(bytes);
    const client::WriteOptions options{.subresource = client::Subresource::kStatus};
    return Must(Run(client().Update(std::move(made), options))).metadata().uid;
  }

  static meta::Object Machine(const std::string& name,
                              const std::vector<std::string>& volumes = {}) {
    apis::compute::Machine machine;
    machine.metadata.namespace_ = "default";
    machine.metadata.name = name;
    machine.spec.machine_class_ref.name = "small";
    for (const std::string& volume : volumes) {
      apis::compute::MachineVolume disk;
      disk.name = volume;
      disk.volume_ref = apis::core::LocalObjectReference{.name = volume};
      machine.spec.volumes.push_back(std::move(disk));
    }
    return meta::Object::Of(apis::compute::kMachineKind, std::move(machine));
  }
  meta::Object MakeMachine(const std::string& name, const std::vector<std::string>& volumes = {}) {
    return Must(Run(client().Create(Machine(name, volumes), {})));
  }
  meta::Object MakeVolume(const std::string& name) {
    apis::storage::Volume volume;
    volume.metadata.namespace_ = "default";
    volume.metadata.name = name;
    volume.spec.volume_class_ref = apis::core::LocalObjectReference{.name = "fast"};
    volume.spec.resources["storage"] = meta::Quantity(10);
    return Must(Run(client().Create(meta::Object::Of(apis::storage::kVolumeKind, volume), {})));
  }

  static client::BindItem ItemFor(const meta::Object& object,
                                  const std::string& pool,
                                  const std::string& pool_uid,
                                  apis::Amounts resources = {{"cpu", kCpuOfMachine}}) {
    const meta::ObjectMeta& metadata = object.metadata();
    return {.kind = &object.kind(),
            .key = {metadata.namespace_, metadata.name},
            .uid = metadata.uid,
            .generation = metadata.generation,
            .placement = apis::EpochOf(object),
            .pool = pool,
            .pool_uid = pool_uid,
            .resources = std::move(resources)};
  }
  static client::BindRequest RequestFor(std::vector<client::BindItem> items) {
    client::BindRequest request;
    request.holder = "s1";
    request.term = 1;
    request.items = std::move(items);
    return request;
  }
  Result<std::vector<meta::Object>> Bind(client::BindRequest request) {
    return std::move(Run(registry().binder().BindBatch(std::vector{std::move(request)})).front());
  }
  Result<std::vector<meta::Object>> Bind(const meta::Object& object,
                                         const std::string& pool,
                                         const std::string& pool_uid) {
    return Bind(RequestFor({ItemFor(object, pool, pool_uid)}));
  }
  Status Unbind(const meta::Object& object,
                int64_t placement,
                client::UnbindProof proof = client::UnbindProof::kHostReleased) {
    client::UnbindRequest request{.kind = &object.kind(),
                                  .key = {object.metadata().namespace_, object.metadata().name},
                                  .uid = object.metadata().uid,
                                  .placement = placement,
                                  .proof = proof,
                                  .reason = "Refused",
                                  .message = "the host said no"};
    return Run(registry().binder().UnbindBatch(std::vector{std::move(request)})).front();
  }

  meta::Object Read(const meta::Object& object) {
    return Must(
        Run(client().Get(object.kind(), {object.metadata().namespace_, object.metadata().name})));
  }
  bool Exists(const meta::Object& object) {
    return Run(client().Get(object.kind(), {object.metadata().namespace_, object.metadata().name}))
        .ok();
  }
  Status Delete(const meta::Object& object, client::Force force = client::Force::kNo) {
    client::DeleteOptions options;
    options.force = force;
    return Run(client().Delete(
        object.kind(), {object.metadata().namespace_, object.metadata().name}, options));
  }
  Status Patch(const meta::Object& object,
               std::string body,
               client::Subresource subresource = client::Subresource::kNone) {
    return Run(client().Patch(object.kind(),
                              {object.metadata().namespace_, object.metadata().name},
                              client::PatchType::kMerge,
                              std::move(body),
                              {.subresource = subresource}))
        .status();
  }
  void Cordon(const std::string& pool, bool cordoned = true) {
    const Status patched = Run(client().Patch(apis::compute::kMachinePoolKind,
                                              {"", pool},
                                              client::PatchType::kMerge,
                                              std::string(R"({"spec":{"unschedulable":)") +
                                                  (cordoned ? "true" : "false") + "}}",
                                              {}))
                               .status();
    CHECK(patched.ok()) << patched;
  }

  // The guard as the store has it.
  std::optional<PoolGuard> Guard(const std::string& pool_uid) {
    store::RangeRequest request;
    request.start = GuardKey(pool_uid);
    auto found = Run(store().Range(std::move(request)));
    CHECK(found.ok()) << found.status();
    if (found->items.empty()) return std::nullopt;
    auto guard = meta::DecodeJsonAs<PoolGuard>(found->items[0].value.view());
    CHECK(guard.ok()) << guard.status();
    return *guard;
  }

  static meta::Object Must(Result<meta::Object> result) {
    CHECK(result.ok()) << result.status();
    return *std::move(result);
  }
};

}  // namespace berth::apiserver
