// SPDX-License-Identifier: Apache-2.0
// The authorization matrix of the session protocol for what is stored or kept free (must-show 7):
// whatever a host says about the volumes, snapshots, buckets and reservations of another one
// changes nothing, and none of their secrets is told to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apis/core/reservation.h"
#include "apis/k8s/event.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume_snapshot.h"
#include "gateway/gateway_world.h"
#include "gateway/rules/status_apply.h"

namespace berth::gateway {
namespace {

using apis::core::kReservationKind;
using apis::core::Reservation;
using apis::storage::Bucket;
using apis::storage::kBucketKind;
using apis::storage::kBucketPoolKind;
using apis::storage::kVolumeKind;
using apis::storage::kVolumePoolKind;
using apis::storage::kVolumeSnapshotKind;
using apis::storage::Volume;
using apis::storage::VolumeSnapshot;

// Every secret of A has it in it.
constexpr std::string_view kOfA = "secret of a";

class StorageForgery : public testing::Test {
 protected:
  StorageForgery() {
    world_.Enrol("a");
    world_.Enrol("b");
    world_.MakeSecret("disk-key", {{"encryptionKey", std::string(kOfA) + ": the key"}});
    CHECK(Join(a_, "a") && Join(b_, "b"));
    Volume volume;
    volume.metadata.namespace_ = "default";
    volume.metadata.name = "data";
    volume.spec.volume_class_ref = apis::core::LocalObjectReference{.name = "fast"};
    volume.spec.resources["storage"] = meta::Quantity(10);
    volume.spec.encryption.emplace().secret_ref.name = "disk-key";
    volume_ = Place(meta::Object::Of(kVolumeKind, std::move(volume)), "disks-a", {{"storage", 10}});
    Bucket bucket;
    bucket.metadata.namespace_ = "default";
    bucket.metadata.name = "files";
    bucket.spec.bucket_class_ref = apis::core::LocalObjectReference{.name = "fast"};
    bucket_ = Place(meta::Object::Of(kBucketKind, std::move(bucket)), "buckets-a", {});
    Reservation reservation;
    reservation.metadata.namespace_ = "default";
    reservation.metadata.name = "room";
    reservation.spec.resources["cpu"] = meta::Quantity(1);
    reservation_ = Place(
        meta::Object::Of(kReservationKind, std::move(reservation)), "pool-a", {{"cpu", 1000}});
    EXPECT_TRUE(Report(3)) << "A is told the key, of course";
    VolumeSnapshot snapshot;
    snapshot.metadata.namespace_ = "default";
    snapshot.metadata.name = "nightly";
    snapshot.spec.volume_ref.name = "data";
    snapshot_ = Place(
        meta::Object::Of(kVolumeSnapshotKind, std::move(snapshot)), "disks-a", {{"storage", 10}});
    Report(4);
    world_.Pass(Duration::Seconds(11));  // everything is published
    before_ = World();
  }
  static constexpr std::pair<const char*, const char*> kPools[] = {
      {"VolumePool", "disks-"}, {"BucketPool", "buckets-"}, {"MachinePool", "pool-"}};
  // A has so many objects, remembers them and reports them; whether a secret of it was told to it.
  bool Report(size_t count) {
    CHECK(a_.WaitAssigns(count));
    bool has_key = false;
    for (const agent::Assign& assign : a_.assigns()) {
      a_.Remember(assign);
      has_key |= assign.SerializeAsString().find(kOfA) != std::string::npos;
      a_.Say([&](agent::HostBatch& batch) {
        FillStatus(assign.uid(), assign.kind(), 1, 1, std::string(kOfA) + ": access", batch);
      });
    }
    world_.Pass(Duration::Seconds(1));
    return has_key;
  }
  // Announces a pool of each kind, and what the host remembers.
  static bool Join(TestHost& host, const std::string& suffix) {
    if (!host.Connect()) return false;
    agent::Announce announce;
    for (const auto& [kind, name] : kPools) {
      agent::PoolAnnounce& pool = *announce.add_pools();
      pool.set_kind(kind);
      pool.set_name(name + suffix);
      pool.set_provider_id("test://" + pool.name());
      pool.add_classes()->set_name("fast");
    }
    (*announce.mutable_pools(0)->mutable_capacity()->mutable_capacity())["storage"] = 1000;
    (*announce.mutable_pools(2)->mutable_capacity()->mutable_capacity())["cpu"] = 8000;
    for (const auto& [uid, item] : host.known) *announce.add_known() = item;
    announce.set_last(true);
    host.Announce(announce);
    return host.WaitSynced();
  }
  // Bound to that pool of A.
  meta::Object Place(meta::Object draft, const std::string& pool, const apis::Amounts& resources) {
    const meta::Object made =
        GatewayWorld::Must(world_.Run(world_.client().Create(std::move(draft), {})));
    const client::BindItem item = GatewayWorld::ItemFor(made, pool, a_.PoolUid(pool), resources);
    CHECK(world_.Bind(GatewayWorld::RequestFor({item})).ok());
    return made;
  }
  static void FillStatus(const std::string& uid,
                         const std::string& kind,
                         uint64_t incarnation,
                         uint64_t placement,
                         const std::string& secret,
                         agent::HostBatch& batch) {
    agent::ObjectStatus& status = *batch.add_statuses();
    status.set_uid(uid);
    status.set_kind(kind);
    status.set_incarnation(incarnation);
    status.set_placement(placement);
    status.set_state(kind == kVolumeSnapshotKind.kind ? "Ready" : "Available");
    status.set_runtime_id("test://" + secret.substr(0, 6));
    status.set_bucket_endpoint("https://" + secret.substr(0, 6));
    // All that a host may say of a reservation.
    agent::Condition& condition = *status.add_conditions();
    condition.set_type("Kept");
    condition.set_status("True");
    condition.set_reason(secret.substr(0, 6));
    status.mutable_access()->set_driver("test");
    status.mutable_access()->set_handle("handle");
    (*status.mutable_access()->mutable_secret_data())["key"] = secret;
  }

  meta::Object Get(const meta::KindInfo& kind, const client::ObjectKey& key) {
    return GatewayWorld::Must(world_.Run(world_.client().Get(kind, key)));
  }
  // Everything of A that the store shows, its secrets too.
  std::vector<meta::Object> World() {
    std::vector<meta::Object> all = {world_.Read(volume_),
                                     world_.Read(bucket_),
                                     world_.Read(snapshot_),
                                     world_.Read(reservation_),
                                     Get(kVolumePoolKind, {"", "disks-a"}),
                                     Get(kBucketPoolKind, {"", "buckets-a"}),
                                     world_.Pool("pool-a")};
    for (const meta::Object& object : {volume_, bucket_}) {
      all.push_back(
          Get(apis::k8s::kSecretKind, {"default", AccessSecretName(object.metadata().uid)}));
    }
    return all;
  }
  // B has said it, and has had time to be heard.
  void ExpectNothingHappened(const std::string& what) {
    world_.Pass(Duration::Seconds(3));
    EXPECT_TRUE(World() == before_) << what;
    for (const agent::ServerMessage& message : b_.received) {
      EXPECT_EQ(message.SerializeAsString().find(kOfA), std::string::npos) << what;
      EXPECT_EQ(message.batch().assigns_size(), 0) << what;
      EXPECT_EQ(message.batch().confirms_size(), 0) << what;
    }
    EXPECT_FALSE(a_.end().has_value()) << what << ": A's session lives";
    EXPECT_TRUE(a_.deletes().empty()) << what;
    EXPECT_TRUE(a_.forgets().empty()) << what;
  }

  GatewayWorld world_;
  TestHost a_{world_, "a"};
  TestHost b_{world_, "b"};
  meta::Object volume_;
  meta::Object bucket_;
  meta::Object snapshot_;
  meta::Object reservation_;
  std::vector<meta::Object> before_;
};

TEST_F(StorageForgery, WhatIsForgedAboutIsThere) {
  EXPECT_EQ(before_[0].as<Volume>().status.state, "Available");
  EXPECT_TRUE(before_[0].as<Volume>().status.access->secret_ref.has_value());
  EXPECT_EQ(before_[1].as<Bucket>().status.state, "Available");
  EXPECT_TRUE(before_[1].as<Bucket>().status.access->secret_ref.has_value());
  EXPECT_EQ(before_[2].as<VolumeSnapshot>().status.state, "Ready");
  const auto& reserved = before_[3].as<Reservation>().status;
  EXPECT_EQ(reserved.state, "Accepted");
  const auto kept =
      std::ranges::find(reserved.conditions, "Kept", &apis::core::ReservationCondition::type);
  ASSERT_NE(kept, reserved.conditions.end());
  EXPECT_EQ(kept->reason, "secret");
  for (size_t i = 7; i < before_.size(); ++i) {
    EXPECT_TRUE(before_[i].as<apis::k8s::Secret>().data.at("key").bytes.starts_with(kOfA));
  }
}

TEST_F(StorageForgery, OfAnotherHostsObjectsChangesNothing) {
  using Fill = std::function<void(agent::HostBatch&, const meta::Object&, uint64_t, uint64_t)>;
  const std::vector<std::pair<std::string, Fill>> words = {
      {"status",
       [](auto& batch, const auto& about, uint64_t incarnation, uint64_t placement) {
         FillStatus(about.metadata().uid,
                    std::string(about.kind().kind),
                    incarnation,
                    placement,
                    "forged",
                    batch);
       }},
      {"gone",
       [](auto& batch, const auto& about, uint64_t incarnation, uint64_t placement) {
         agent::Gone& gone = *batch.add_gone();
         gone.set_uid(about.metadata().uid);
         gone.set_incarnation(incarnation);
         gone.set_placement(placement);
       }},
      {"refusal",
       [](auto& batch, const auto& about, uint64_t, uint64_t placement) {
         agent::AssignRefused& refused = *batch.add_refusals();
         refused.set_uid(about.metadata().uid);
         refused.set_placement(placement);
         refused.set_reason("NoRoom");
       }},
      {"ack",
       [](auto& batch, const auto& about, uint64_t, uint64_t placement) {
         agent::AssignAck& ack = *batch.add_acks();
         ack.set_uid(about.metadata().uid);
         ack.set_placement(placement);
         ack.set_hash("forged");
       }},
      {"statistics and events",
       [](auto& batch, const auto& about, uint64_t, uint64_t) {
         batch.add_statistics()->set_uid(about.metadata().uid);
         agent::HostEvent& event = *batch.add_events();
         event.set_uid(about.metadata().uid);
         event.set_reason("Forged");
       }},
  };
  for (const auto& [what, fill] : words) {
    // A host that goes on like this loses its session: every word has one of its own.
    ASSERT_TRUE(Join(b_, "b")) << what;
    for (const meta::Object& about : {volume_, bucket_, snapshot_, reservation_}) {
      for (const uint64_t incarnation : {0, 1, 2}) {
        for (const uint64_t placement : {0, 1, 2, 99}) {
          b_.Say([&](agent::HostBatch& batch) { fill(batch, about, incarnation, placement); });
        }
      }
      ExpectNothingHappened(what + " of " + about.metadata().name);
      EXPECT_FALSE(b_.end().has_value()) << what << ": all of it was heard";
    }
  }
  for (const auto& [kind, name] : kPools) {
    EXPECT_TRUE(world_.gateway().StatisticsOf(a_.PoolUid(std::string(name) + "a")).empty()) << kind;
  }
  const auto events = world_.Run(world_.client().List(apis::k8s::kCoreEventKind, {}));
  ASSERT_TRUE(events.ok());
  for (const meta::Object& event : events->items) {
    EXPECT_NE(event.as<apis::k8s::CoreEvent>().reason, "Forged");
  }
}

// With the numbers, the pools and the proofs of the one whose they are; with the hash, and without
// it, which asks for the body again.
TEST_F(StorageForgery, AsWhatTheHostHasItselfGetsNoBodyAndNoSecret) {
  for (const bool has_hash : {true, false}) {
    for (const bool is_gone : {false, true}) {
      b_.known = a_.known;
      for (const agent::Assign& assign : a_.assigns()) {
        agent::Known& item = b_.known.at(assign.uid());
        item.set_proof(assign.proof());
        if (!has_hash) item.clear_hash();
        item.set_gone(is_gone);
      }
      ASSERT_TRUE(Join(b_, "b"));
      ExpectNothingHappened("announce");
      // It was told that it is not its own, and says that it has done as told.
      for (const agent::Delete& told : b_.deletes()) {
        EXPECT_EQ(told.why(), agent::Delete::MOVED);
        b_.SayGone(told.uid(), told.placement());
      }
      ExpectNothingHappened("gone");
    }
  }
}

TEST_F(StorageForgery, OfAnotherHostsStoragePoolsChangesNothing) {
  std::vector<std::string> pools;
  for (const auto& [kind, name] : kPools) pools.push_back(std::string(name) + "a");
  b_.Say([&](agent::HostBatch& batch) {
    for (const std::string& pool : pools) {
      agent::PoolFacts& facts = *batch.add_facts();
      facts.set_pool_uid(a_.PoolUid(pool));
      facts.set_problem("forged");
      (*facts.mutable_facts()->mutable_capacity())["storage"] = 1;
      facts.set_classes_changed(true);
      agent::Orphan& orphan = *batch.add_orphans();
      orphan.set_pool(pool);
      orphan.set_uid("forged");
      orphan.set_name("forged");
    }
    batch.set_orphans_changed(true);
  });
  ExpectNothingHappened("facts and orphans");
  for (const std::string& pool : pools) {
    EXPECT_TRUE(world_.gateway().OrphansOf(a_.PoolUid(pool)).empty()) << pool;
  }
  // Nor can it announce them as its own, whatever it knows of what is on them.
  b_.known = a_.known;
  ASSERT_TRUE(Join(b_, "a"));
  for (const std::string& pool : pools) {
    EXPECT_EQ(b_.PoolUid(pool), "");
    EXPECT_NE(b_.PoolRefusal(pool), "");
  }
  ExpectNothingHappened("announce");
}

}  // namespace
}  // namespace berth::gateway
