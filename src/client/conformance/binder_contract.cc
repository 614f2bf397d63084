// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/reservation.h"
#include "apis/k8s/lease.h"
#include "apis/k8s/namespace.h"
#include "apis/placement.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_pool.h"
#include "client/conformance/client_contract.h"
#include "rt/join_all.h"

namespace berth::client {

namespace {

using apis::compute::kMachineKind;
using apis::compute::kMachinePoolKind;
using apis::storage::kVolumeKind;
using apis::storage::kVolumePoolKind;

template <class T>
T Await(ClientUnderTest& on, rt::Task<T> task) {
  std::optional<T> answer;
  const Status ran = on.Run(rt::internal::StoreResult(std::move(task), &answer));
  CHECK(ran.ok()) << ran;
  return *std::move(answer);
}

meta::Object Must(Result<meta::Object> result) {
  CHECK(result.ok()) << result.status();
  return *std::move(result);
}

// Whoever leads is the one who binds; a server without a scheduler gets one here.
BindRequest AsLeader(ClientUnderTest& on) {
  const ObjectKey key{"berth-system", "scheduler"};
  apis::k8s::Namespace space;
  space.metadata.name = key.namespace_;
  const Status made =
      Await(on, on.client().Create(meta::Object::Of(apis::k8s::kNamespaceKind, space), {}))
          .status();
  CHECK(made.ok() || made.Is(Reason::kAlreadyExists)) << made;
  apis::k8s::Lease lease;
  lease.metadata.namespace_ = key.namespace_;
  lease.metadata.name = key.name;
  lease.spec.holder_identity = "contract";
  lease.spec.lease_transitions = 3;
  auto held = Await(on, on.client().Create(meta::Object::Of(apis::k8s::kLeaseKind, lease), {}));
  if (!held.ok()) held = Await(on, on.client().Get(apis::k8s::kLeaseKind, key));
  CHECK(held.ok()) << held.status();
  const auto& spec = held->as<apis::k8s::Lease>().spec;
  BindRequest request;
  request.holder = spec.holder_identity.value_or("");
  request.term = spec.lease_transitions.value_or(0);
  return request;
}

// A session pool with room for two machines; its UID.
std::string MakePool(ClientUnderTest& on) {
  apis::compute::MachinePool pool;
  pool.metadata.name = "p";
  meta::Object made =
      Must(Await(on, on.client().Create(meta::Object::Of(kMachinePoolKind, pool), {})));
  auto& status = made.as<apis::compute::MachinePool>().status;
  status.agent = apis::core::PoolAgent{.mode = std::string(apis::core::kPoolModeSession)};
  status.capacity["cpu"] = meta::Quantity(2);
  const WriteOptions options{.subresource = Subresource::kStatus};
  return Must(Await(on, on.client().Update(std::move(made), options))).metadata().uid;
}
std::string MakeVolumePool(ClientUnderTest& on) {
  apis::storage::VolumePool pool;
  pool.metadata.name = "d";
  meta::Object made =
      Must(Await(on, on.client().Create(meta::Object::Of(kVolumePoolKind, pool), {})));
  auto& status = made.as<apis::storage::VolumePool>().status;
  status.agent = apis::core::PoolAgent{.mode = std::string(apis::core::kPoolModeSession)};
  status.capacity["storage"] = meta::Quantity(100);
  const WriteOptions options{.subresource = Subresource::kStatus};
  return Must(Await(on, on.client().Update(std::move(made), options))).metadata().uid;
}

meta::Object Machine(const std::string& name, const std::string& volume = "") {
  apis::compute::Machine machine;
  machine.metadata.namespace_ = "default";
  machine.metadata.name = name;
  machine.spec.machine_class_ref.name = "small";
  if (!volume.empty()) {
    apis::compute::MachineVolume disk;
    disk.name = volume;
    disk.volume_ref = apis::core::LocalObjectReference{.name = volume};
    machine.spec.volumes.push_back(std::move(disk));
  }
  return meta::Object::Of(kMachineKind, std::move(machine));
}
meta::Object MakeVolume(ClientUnderTest& on, const std::string& name) {
  apis::storage::Volume volume;
  volume.metadata.namespace_ = "default";
  volume.metadata.name = name;
  volume.spec.volume_class_ref = apis::core::LocalObjectReference{.name = "fast"};
  volume.spec.resources["storage"] = meta::Quantity(10);
  return Must(Await(on, on.client().Create(meta::Object::Of(kVolumeKind, volume), {})));
}

BindItem ItemFor(const meta::Object& object,
                 std::string pool,
                 std::string pool_uid,
                 Amounts resources) {
  const meta::ObjectMeta& metadata = object.metadata();
  return {.kind = &object.kind(),
          .key = {metadata.namespace_, metadata.name},
          .uid = metadata.uid,
          .generation = metadata.generation,
          .placement = apis::EpochOf(object),
          .pool = std::move(pool),
          .pool_uid = std::move(pool_uid),
          .resources = std::move(resources)};
}

Result<std::vector<meta::Object>> Bind(ClientUnderTest& on,
                                       BindRequest request,
                                       std::vector<BindItem> items) {
  request.items = std::move(items);
  std::vector<BindRequest> requests = {std::move(request)};
  return std::move(Await(on, on.binder().BindBatch(std::move(requests))).front());
}

}  // namespace

void BindsOnceAndTellsWhyNot(ClientUnderTest& on) {
  const BindRequest leader = AsLeader(on);
  const std::string pool = MakePool(on);
  const std::string disks = MakeVolumePool(on);
  const meta::Object machine = Must(Await(on, on.client().Create(Machine("a", "v"), {})));
  const meta::Object volume = MakeVolume(on, "v");
  const BindItem item = ItemFor(machine, "p", pool, {{"cpu", 1500}});
  BindRequest stranger = leader;
  stranger.holder = "stranger";
  EXPECT_EQ(Bind(on, stranger, {item}).status().reason(), Reason::kConflict);
  BindItem gone = item;
  gone.uid = "gone";
  EXPECT_EQ(Bind(on, leader, {gone}).status().reason(), Reason::kNotFound);
  const auto bound = Bind(on, leader, {item, ItemFor(volume, "d", disks, {{"storage", 10}})});
  ASSERT_TRUE(bound.ok()) << bound.status();
  ASSERT_EQ(bound->size(), 2U);
  EXPECT_EQ(apis::PlacementOf((*bound)[0])->pool_uid, pool);
  EXPECT_EQ(apis::PlacementOf((*bound)[1])->pool_uid, disks);
  EXPECT_EQ((*bound)[1].as<apis::storage::Volume>().spec.claim_ref->uid, machine.metadata().uid);
  EXPECT_EQ(Must(Await(on, on.client().Get(kMachineKind, {"default", "a"}))), (*bound)[0]);
  EXPECT_EQ(Bind(on, leader, {item}).status().reason(), Reason::kConflict);
  // Why not is in the cause, whichever way it came.
  const meta::Object other = Must(Await(on, on.client().Create(Machine("b"), {})));
  const Status full = Bind(on, leader, {ItemFor(other, "p", pool, {{"cpu", 1000}})}).status();
  EXPECT_EQ(full.reason(), Reason::kForbidden);
  ASSERT_EQ(full.causes().size(), 1U) << full;
  EXPECT_EQ(full.causes()[0].field, "cpu");
}

void UnbindsWithProof(ClientUnderTest& on) {
  const BindRequest leader = AsLeader(on);
  const std::string pool = MakePool(on);
  const meta::Object machine = Must(Await(on, on.client().Create(Machine("a"), {})));
  ASSERT_TRUE(Bind(on, leader, {ItemFor(machine, "p", pool, {{"cpu", 2000}})}).ok());
  UnbindRequest request{.kind = &kMachineKind,
                        .key = {"default", "a"},
                        .uid = machine.metadata().uid,
                        .placement = 7,
                        .proof = UnbindProof::kHostReleased,
                        .reason = "Refused",
                        .message = "the host said no"};
  EXPECT_EQ(Await(on, on.binder().UnbindBatch({request}))[0].reason(), Reason::kConflict);
  request.placement = 1;
  request.proof = UnbindProof::kNeverBound;
  EXPECT_EQ(Await(on, on.binder().UnbindBatch({request}))[0].reason(), Reason::kConflict);
  request.proof = UnbindProof::kOperatorFenced;
  const Status unbound = Await(on, on.binder().UnbindBatch({request}))[0];
  ASSERT_TRUE(unbound.ok()) << unbound;
  const meta::Object read = Must(Await(on, on.client().Get(kMachineKind, {"default", "a"})));
  EXPECT_FALSE(apis::IsBound(read));
  EXPECT_FALSE(apis::PoolRefOf(read));
  EXPECT_EQ(apis::EpochOf(read), 2);
  EXPECT_TRUE(Bind(on, leader, {ItemFor(read, "p", pool, {{"cpu", 2000}})}).ok());
  // What its host may still run is removed by force only, or with the host's word.
  const DeleteOptions soft;
  ASSERT_TRUE(Await(on, on.client().Delete(kMachineKind, {"default", "a"}, soft)).ok());
  EXPECT_TRUE(Await(on, on.client().Get(kMachineKind, {"default", "a"})).ok());
  DeleteOptions hard;
  hard.force = Force::kYes;
  ASSERT_TRUE(Await(on, on.client().Delete(kMachineKind, {"default", "a"}, hard)).ok());
  EXPECT_EQ(Await(on, on.client().Get(kMachineKind, {"default", "a"})).status().reason(),
            Reason::kNotFound);
  request.placement = 3;
  EXPECT_TRUE(Await(on, on.binder().UnbindBatch({request}))[0].ok()) << "what is gone is unbound";
}

void UsesReservations(ClientUnderTest& on) {
  const BindRequest leader = AsLeader(on);
  const std::string pool = MakePool(on);
  apis::core::Reservation draft;
  draft.metadata.namespace_ = "default";
  draft.metadata.name = "r";
  draft.spec.resources["cpu"] = meta::Quantity(2);
  const auto kind = [](auto object) {
    return meta::Object::Of(apis::core::kReservationKind, std::move(object));
  };
  const meta::Object reservation = Must(Await(on, on.client().Create(kind(draft), {})));
  ASSERT_TRUE(Bind(on, leader, {ItemFor(reservation, "p", pool, {{"cpu", 2000}})}).ok());
  meta::Object named = Machine("a");
  named.as<apis::compute::Machine>().spec.placement.emplace().reservation_ref =
      apis::core::LocalObjectReference{.name = "r"};
  const meta::Object machine = Must(Await(on, on.client().Create(named, {})));
  BindItem item = ItemFor(machine, "p", pool, {{"cpu", 1000}});
  EXPECT_EQ(Bind(on, leader, {item}).status().reason(), Reason::kForbidden) << "the pool is full";
  item.reservation = "r";
  item.reservation_uid = reservation.metadata().uid;
  const meta::Object other = Must(Await(on, on.client().Create(Machine("b"), {})));
  BindItem stranger = ItemFor(other, "p", pool, {{"cpu", 1000}});
  stranger.reservation = item.reservation;
  stranger.reservation_uid = item.reservation_uid;
  EXPECT_EQ(Bind(on, leader, {stranger}).status().reason(), Reason::kConflict);
  const auto bound = Bind(on, leader, {item});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(apis::PlacementOf((*bound)[0])->reservation_uid, reservation.metadata().uid);
  const meta::Object used =
      Must(Await(on, on.client().Get(apis::core::kReservationKind, {"default", "r"})));
  EXPECT_EQ(used.as<apis::core::Reservation>().status.state, apis::core::kReservationBound);
  stranger.reservation.clear();
  stranger.reservation_uid.clear();
  EXPECT_TRUE(Bind(on, leader, {stranger}).ok()) << "what it did not need is free";
}

void CreatesAlreadyBound(ClientUnderTest& on) {
  const BindRequest leader = AsLeader(on);
  const std::string pool = MakePool(on);
  std::vector<meta::Object> objects;
  std::vector<BindItem> items;
  for (const char* name : {"a", "b", "c"}) {
    objects.push_back(Machine(name));
    items.push_back(ItemFor(objects.back(), "p", pool, {{"cpu", 1000}}));
  }
  const auto made =
      Await(on, on.binder().CreateBoundBatch(objects[0], items, leader.holder, leader.term));
  ASSERT_EQ(made.size(), 3U);
  int bound = 0;
  for (size_t i = 0; i < made.size(); ++i) {
    const auto copy =
        Await(on, on.client().Get(kMachineKind, {"default", objects[i].metadata().name}));
    EXPECT_EQ(made[i].ok(), copy.ok()) << made[i];
    if (!copy.ok()) continue;
    ++bound;
    EXPECT_EQ(apis::EpochOf(*copy), 1);
    EXPECT_EQ(apis::PoolRefOf(*copy)->name, "p");
  }
  EXPECT_EQ(bound, 2);
}

}  // namespace berth::client
