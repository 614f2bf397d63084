// SPDX-License-Identifier: Apache-2.0
// Reservations with the machines that are to use them, and buckets.
#include <fmt/format.h>

#include <vector>

#include "apis/compute/machine.h"
#include "apis/core/reservation.h"
#include "apis/storage/bucket.h"
#include "sim/users.h"

namespace berth::sim {
namespace {

using apis::compute::kMachineKind;
using apis::core::kReservationKind;
using apis::storage::kBucketKind;

// More of them would leave no room for anything else: 4 reservations * 3 machines of one core,
// those of all pools twice.
constexpr size_t kReservationsMax = 4;
constexpr int64_t kReservedMax = 3;
constexpr size_t kBucketsMax = 6;

constexpr double kForAll = 0.25;  // reservations that two pools keep
constexpr double kHasTtl = 0.4;   // reservations that end by themselves
constexpr std::string_view kTtl = "45s";

// Who asked for it, and not the server for one of its pools.
bool IsAskedFor(const PlacedFact& fact) {
  return fact.kind == &kReservationKind && fact.whole.empty() && !fact.is_deleting;
}

meta::Object MachineFor(const apis::core::Reservation& reservation, int64_t number) {
  apis::compute::Machine machine;
  machine.metadata.namespace_ = kNamespace;
  machine.metadata.name = fmt::format("{}-{}", reservation.metadata.name, number);
  machine.spec.machine_class_ref.name = reservation.spec.class_ref->name;
  machine.spec.placement.emplace();
  machine.spec.placement->reservation_ref =
      apis::core::LocalObjectReference{.name = reservation.metadata.name};
  return meta::Object::Of(kMachineKind, std::move(machine));
}

}  // namespace

// One more reservation, or one less if there are enough. Sometimes one machine more than it is for.
void Users::Reserve() {
  size_t count = 0;
  for (const auto& [uid, fact] : world_.truth().placed()) count += IsAskedFor(fact) ? 1 : 0;
  if (count >= kReservationsMax) return EndReservation();
  apis::core::Reservation reservation;
  reservation.metadata.namespace_ = kNamespace;
  reservation.metadata.name = fmt::format("reserved-{}", ++last_name_);
  reservation.spec.class_ref = apis::core::LocalObjectReference{.name = "small"};
  reservation.spec.count = static_cast<int32_t>(random_.Between(1, kReservedMax));
  if (random_.Chance(kHasTtl)) reservation.spec.ttl = std::string(kTtl);
  if (random_.Chance(kForAll)) {
    const PoolFact* first = PickPool();
    const PoolFact* second = PickPool();
    if (first == nullptr || first->name == second->name) return;
    reservation.spec.mode = std::string(apis::core::kReserveAll);
    reservation.spec.pools = {first->name, second->name};
  }
  std::vector<meta::Object> objects;
  objects.push_back(meta::Object::Of(kReservationKind, reservation));
  const int64_t machines = random_.Between(1, *reservation.spec.count + 1);
  for (int64_t i = 0; i < machines; ++i) objects.push_back(MachineFor(reservation, i));
  Send("sim.reserve", CreateObjects(client(), std::move(objects)));
}

// Machines that still wait for it would wait for ever.
void Users::EndReservation() {
  const PlacedFact* reservation = Pick(IsAskedFor);
  if (reservation == nullptr) return;
  const std::string name = reservation->key.name;
  std::vector<std::string> uids = {reservation->uid};
  for (const auto& [uid, fact] : world_.truth().placed()) {
    if (fact.reservation == name && fact.pool_uid.empty() && !fact.is_deleting) uids.push_back(uid);
  }
  for (const std::string& uid : uids) Delete(uid, client::Force::kNo);
}

void Users::CreateOrDeleteBucket() {
  const auto is_there = [](const PlacedFact& fact) {
    return fact.kind == &kBucketKind && !fact.is_deleting;
  };
  size_t count = 0;
  for (const auto& [uid, fact] : world_.truth().placed()) count += is_there(fact) ? 1 : 0;
  if (count >= kBucketsMax) return Delete(Pick(is_there)->uid, client::Force::kNo);
  apis::storage::Bucket bucket;
  bucket.metadata.namespace_ = kNamespace;
  bucket.metadata.name = fmt::format("bucket-{}", ++last_name_);
  bucket.spec.bucket_class_ref = apis::core::LocalObjectReference{.name = "standard"};
  if (random_.Chance(world_.scenario().hopeless_share)) {
    bucket.spec.bucket_pool_selector["nowhere"] = "true";
  }
  std::vector<meta::Object> objects;
  objects.push_back(meta::Object::Of(kBucketKind, std::move(bucket)));
  Send("sim.bucket", CreateObjects(client(), std::move(objects)));
}

}  // namespace berth::sim
