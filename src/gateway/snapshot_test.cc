// SPDX-License-Identifier: Apache-2.0
// VolumeSnapshots in sessions: only the host of the volume's pool hears of them, what it reports is
// written, and they go when it says so.
#include <gtest/gtest.h>

#include "apis/storage/volume_snapshot.h"
#include "gateway/gateway_world.h"

namespace berth::gateway {
namespace {

using apis::storage::Volume;
using apis::storage::VolumeSnapshot;

class SnapshotTest : public testing::Test {
 protected:
  SnapshotTest() {
    world_.Enrol("a");
    world_.Enrol("b");
    pool_ = JoinVolumes(host_, "disks");
    other_pool_ = JoinVolumes(other_, "others");
    volume_ = world_.MakeVolume("data");
    const client::BindItem item = GatewayWorld::ItemFor(volume_, "disks", pool_, {{"storage", 10}});
    CHECK(world_.Bind(GatewayWorld::RequestFor({item})).ok());
    CHECK(host_.WaitAssigns(1));
    host_.Report(host_.assigns()[0], "Available");
    CHECK(world_.Until([&] { return VolumeNow().status.state == "Available"; }));
  }
  static std::string JoinVolumes(TestHost& host, const std::string& name) {
    CHECK(host.Connect());
    agent::Announce announce;
    agent::PoolAnnounce& pool = *announce.add_pools();
    pool.set_kind("VolumePool");
    pool.set_name(name);
    pool.set_provider_id("test://" + name);
    pool.add_classes()->set_name("fast");
    (*pool.mutable_capacity()->mutable_capacity())["storage"] = 1000;
    announce.set_last(true);
    host.Announce(announce);
    CHECK(host.WaitSynced());
    return host.PoolUid(name);
  }
  // A snapshot that is bound to the pool, and its assignment.
  agent::Assign Take(const std::string& name) {
    VolumeSnapshot draft;
    draft.metadata.namespace_ = "default";
    draft.metadata.name = name;
    draft.spec.volume_ref.name = "data";
    snapshot_ = GatewayWorld::Must(world_.Run(world_.client().Create(
        meta::Object::Of(apis::storage::kVolumeSnapshotKind, std::move(draft)), {})));
    const client::BindItem item =
        GatewayWorld::ItemFor(snapshot_, "disks", pool_, {{"storage", 10}});
    CHECK(world_.Bind(GatewayWorld::RequestFor({item})).ok());
    const size_t before = host_.assigns().size();
    CHECK(host_.WaitAssigns(before + 1));
    return host_.assigns().back();
  }
  Volume VolumeNow() { return world_.Read(volume_).as<Volume>(); }
  VolumeSnapshot Now() { return world_.Read(snapshot_).as<VolumeSnapshot>(); }
  static void ReportReady(TestHost& host, const agent::Assign& assign) {
    host.Say([&](agent::HostBatch& batch) {
      agent::ObjectStatus& status = *batch.add_statuses();
      status.set_uid(assign.uid());
      status.set_incarnation(assign.incarnation());
      status.set_placement(assign.placement());
      status.set_kind("VolumeSnapshot");
      status.set_state("Ready");
      status.set_runtime_id("test://s-1");
      status.set_storage_bytes(10);
    });
  }

  GatewayWorld world_;
  TestHost host_{world_, "a"};
  TestHost other_{world_, "b"};
  std::string pool_;
  std::string other_pool_;
  meta::Object volume_;
  meta::Object snapshot_;
};

TEST_F(SnapshotTest, G1_OnlyTheHostOfTheVolumesPoolHearsOfIt) {
  const agent::Assign assign = Take("nightly");
  EXPECT_EQ(assign.kind(), "VolumeSnapshot");
  EXPECT_EQ(assign.pool_uid(), pool_);
  EXPECT_EQ(assign.snapshot().volume_handle(), "test://1");
  EXPECT_EQ(assign.snapshot().volume_uid(), volume_.metadata().uid);
  EXPECT_EQ(assign.resources().at("storage"), 10);
  EXPECT_EQ(world_.Guard(pool_)->allocated["storage"], 20);
  world_.Pass(Duration::Seconds(1));
  EXPECT_TRUE(other_.assigns().empty());
}

TEST_F(SnapshotTest, G3_ItsOwnHostsReportIsWrittenAndNobodyElses) {
  const agent::Assign assign = Take("nightly");
  ReportReady(other_, assign);
  world_.Pass(Duration::Seconds(1));
  EXPECT_EQ(Now().status.state, "Pending");
  ReportReady(host_, assign);
  ASSERT_TRUE(world_.Until([&] { return Now().status.state == "Ready"; }));
  EXPECT_EQ(Now().status.snapshot_id, "test://s-1");
  EXPECT_EQ(Now().status.size, meta::Quantity(10));
}

TEST_F(SnapshotTest, R4_2_ItGoesWhenItsHostSaysThatItIsGone) {
  const agent::Assign assign = Take("nightly");
  ReportReady(host_, assign);
  ASSERT_TRUE(world_.Until([&] { return Now().status.state == "Ready"; }));
  // Its volume may go before it.
  ASSERT_TRUE(world_.Delete(volume_).ok());
  ASSERT_TRUE(host_.WaitDeletes(1));
  host_.SayGone(volume_.metadata().uid, 1);
  ASSERT_TRUE(world_.Until([&] { return !world_.Exists(volume_); }));
  EXPECT_EQ(Now().status.state, "Ready");
  ASSERT_TRUE(world_.Delete(snapshot_).ok());
  ASSERT_TRUE(host_.WaitDeletes(2));
  EXPECT_EQ(host_.deletes()[1].uid(), assign.uid());
  EXPECT_EQ(host_.deletes()[1].kind(), "VolumeSnapshot");
  world_.Pass(Duration::Seconds(1));
  ASSERT_TRUE(world_.Exists(snapshot_)) << "its host has it still";
  host_.SayGone(assign.uid(), assign.placement());
  EXPECT_TRUE(world_.Until([&] { return !world_.Exists(snapshot_); }));
  EXPECT_EQ(world_.Guard(pool_)->allocated["storage"], 0);
}

TEST_F(SnapshotTest, Seq14_AReturningHostIsToldOfItAgain) {
  host_.Remember(Take("nightly"));
  world_.RestartGateway();
  ASSERT_EQ(JoinVolumes(host_, "disks"), pool_);
  EXPECT_EQ(host_.assigns().size(), 2) << "the volume and the snapshot, which it did not announce";
}

// What it held is lost. One that was taken again would hold something else under its name.
TEST_F(SnapshotTest, OneThatLosesItsPoolAfterItWasTakenHasFailed) {
  const agent::Assign assign = Take("nightly");
  ReportReady(host_, assign);
  ASSERT_TRUE(world_.Until([&] { return Now().status.state == "Ready"; }));
  ASSERT_TRUE(world_.Unbind(snapshot_, 1).ok());
  EXPECT_EQ(Now().status.state, "Failed");
  EXPECT_EQ(Now().status.snapshot_id, "");
}

TEST_F(SnapshotTest, AVolumeThatBeginsWithItIsToldWhenItIsReady) {
  const agent::Assign assign = Take("nightly");
  Volume draft;
  draft.metadata.namespace_ = "default";
  draft.metadata.name = "restored";
  draft.spec.volume_class_ref = apis::core::LocalObjectReference{.name = "fast"};
  draft.spec.resources["storage"] = meta::Quantity(10);
  draft.spec.data_source.emplace().volume_snapshot_ref =
      apis::core::LocalObjectReference{.name = "nightly"};
  const meta::Object restored = GatewayWorld::Must(world_.Run(
      world_.client().Create(meta::Object::Of(apis::storage::kVolumeKind, std::move(draft)), {})));
  const client::BindItem item = GatewayWorld::ItemFor(restored, "disks", pool_, {{"storage", 10}});
  ASSERT_TRUE(world_.Bind(GatewayWorld::RequestFor({item})).ok());
  agent::VolumeBody last;
  const auto body = [&]() -> agent::VolumeBody {
    for (const agent::Assign& assigned : host_.assigns()) {
      if (assigned.uid() == restored.metadata().uid) last = assigned.volume();
    }
    return last;
  };
  ASSERT_TRUE(world_.Until([&] { return body().missing_size() == 1; }));
  EXPECT_EQ(body().missing(0), "volume snapshot nightly is not ready");
  ReportReady(host_, assign);
  ASSERT_TRUE(world_.Until([&] { return body().snapshot_handle() == "test://s-1"; }));
  EXPECT_EQ(body().missing_size(), 0);
}

}  // namespace
}  // namespace berth::gateway
