// SPDX-License-Identifier: Apache-2.0
// After a full disk the store becomes writable again in the same process: whatever RocksDB was
// doing when the disk filled up, without losing what was acknowledged or bringing back what was
// not.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rt/asio/asio_loop.h"
#include "rt/join_all.h"
#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/rocks/auto_recovery.h"
#include "store/rocks/faults/faulty_disk.h"
#include "store/rocks/rocks_store.h"

namespace berth::store {
namespace {

using Keys = std::vector<std::string>;
constexpr size_t kMemtableBytes = 64 * 1024;

class Recovery : public testing::Test {
 protected:
  void Open() {
    Close();
    RocksOptions options;
    options.dir = "/store";
    options.env = disk_->env();
    options.threads = RocksOptions::Threads::kNone;
    options.memtable_bytes = kMemtableBytes;
    auto store = RocksStore::Open(loop_, options);
    CHECK(store.ok()) << store.status();
    store_ = *std::move(store);
    handle_ = store_->NewHandle();
  }
  // As a process ends that is killed: nothing is flushed.
  void Close() {
    handle_.reset();
    store_.reset();
  }
  void LosePower() {
    disk_->CutPowerAfter(0);
    Close();
    disk_->RestorePower();
  }
  Result<TxnResult> Put(const std::string& key, size_t bytes = 100, LeaseId lease = {}) {
    Txn txn;
    txn.ops.push_back(Op::Put(key, Bytes(std::string(bytes, 'x')), lease));
    return rt::RunTask(loop_, handle_->Commit(std::move(txn)));
  }
  Status Recover() { return rt::RunTask(loop_, store_->Recover()); }
  Result<Keys> KeysAt(Revision revision) {
    RangeRequest request;
    request.end = kNoEnd;
    request.revision = revision;
    TRY(const RangeResult range, rt::RunTask(loop_, handle_->Range(request)));
    Keys keys;
    for (const KeyValue& kv : range.items) keys.push_back(kv.key);
    return keys;
  }
  Keys KeysNow() {
    const Result<Keys> keys = KeysAt({});
    CHECK(keys.ok()) << keys.status();
    return *keys;
  }
  static void ExpectNoSpace(const Status& status) {
    EXPECT_EQ(status.reason(), Reason::kUnavailable) << status;
    EXPECT_NE(status.message().find("/store"), std::string_view::npos) << status;
    EXPECT_NE(status.message().find("no space left on device"), std::string_view::npos) << status;
  }

  rt::SimLoop loop_{1};
  std::unique_ptr<FaultyDisk> disk_ = std::make_unique<FaultyDisk>(1);
  std::unique_ptr<RocksStore> store_;
  std::unique_ptr<Store> handle_;
};

TEST_F(Recovery, IsRefusedUntilThereIsSpaceAndLosesNothing) {
  Open();
  Keys expected;
  Revision last{1};
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) {
      const std::string key = std::to_string(round) + "/" + std::to_string(100 + i);
      const Result<TxnResult> put = Put(key, 9'000);
      ASSERT_TRUE(put.ok()) << put.status();
      EXPECT_GT(put->revision, last);
      last = put->revision;
      expected.push_back(key);
    }
    disk_->SetRoom(500);
    ExpectNoSpace(Put("lost" + std::to_string(round), 1'000).status());
    ExpectNoSpace(Recover());
    ExpectNoSpace(store_->health());
    ExpectNoSpace(Put("lost too").status());
    EXPECT_EQ(KeysNow(), expected) << "reads go on";
    disk_->SetRoom(std::nullopt);
    const Status recovered = Recover();
    ASSERT_TRUE(recovered.ok()) << recovered;
    EXPECT_TRUE(store_->health().ok());
  }
  EXPECT_EQ(KeysNow(), expected);
  LosePower();
  Open();
  EXPECT_EQ(KeysNow(), expected);
  ASSERT_TRUE(Put("z").ok());
}

// RocksDB forgets a flush that it had queued when the error came: DB::Resume() would wait for it
// for ever.
TEST_F(Recovery, DoesNotWaitForAFlushThatNobodyRuns) {
  Open();
  disk_->HoldBackgroundWork();
  Keys expected;
  for (size_t bytes = 0; bytes < kMemtableBytes * 3 / 2; bytes += 8'000) {
    expected.push_back("k" + std::to_string(100 + expected.size()));
    ASSERT_TRUE(Put(expected.back(), 8'000).ok());
  }
  disk_->SetRoom(10);
  ExpectNoSpace(Put("lost").status());
  disk_->FinishBackgroundWork();
  disk_->SetRoom(std::nullopt);
  const Status recovered = Recover();
  ASSERT_TRUE(recovered.ok()) << recovered;
  ASSERT_TRUE(Put("z").ok());
  expected.emplace_back("z");
  EXPECT_EQ(KeysNow(), expected);
  LosePower();
  Open();
  EXPECT_EQ(KeysNow(), expected);
}

// A disk that tells how much is free makes RocksDB recover by itself, behind the store's back.
TEST_F(Recovery, IsTheStoresAlone) {
  Open();
  ASSERT_TRUE(Put("a").ok());
  disk_->SetRoom(10);
  ExpectNoSpace(Put("b").status());
  disk_->SetRoom(std::nullopt);
  ExpectNoSpace(Put("c").status());
  const Status recovered = Recover();
  ASSERT_TRUE(recovered.ok()) << recovered;
  ASSERT_TRUE(Put("d").ok());
  EXPECT_EQ(KeysNow(), (Keys{"a", "d"}));
}

TEST_F(Recovery, FollowsAFailureInTheBackground) {
  Open();
  // The log of writes has room, but the file that a full memtable becomes has none.
  disk_->RefuseSpaceFor(".sst");
  Keys expected;
  Status status;
  while (expected.size() < 1'000) {
    const std::string key = "k" + std::to_string(1'000 + expected.size());
    status = Put(key, 2'000).status();
    if (!status.ok()) break;
    expected.push_back(key);
  }
  ExpectNoSpace(status);
  ExpectNoSpace(Recover());
  EXPECT_EQ(KeysNow(), expected) << "reads go on";
  disk_->RefuseSpaceFor("");
  const Status recovered = Recover();
  ASSERT_TRUE(recovered.ok()) << recovered;
  ASSERT_TRUE(Put("z").ok());
  expected.emplace_back("z");
  Open();
  EXPECT_EQ(KeysNow(), expected);
}

TEST_F(Recovery, DoesNotBelieveTheFreeSpaceThatTheDiskReports) {
  Open();
  ASSERT_TRUE(Put("a").ok());
  disk_->SetRoom(10);
  ExpectNoSpace(Put("lost").status());
  disk_->SetRoom(std::nullopt);
  disk_->RefuseSpaceFor(".probe");
  ExpectNoSpace(Recover());
  disk_->RefuseSpaceFor("");
  ASSERT_TRUE(Recover().ok());
}

TEST_F(Recovery, ComesByItselfOnceThereIsSpace) {
  Open();
  ASSERT_TRUE(Put("a").ok());
  rt::TaskScope scope(loop_);
  scope.Spawn("recovery", RecoverAfterFullDisk(store_.get()));
  disk_->SetRoom(10);
  ExpectNoSpace(Put("lost").status());
  loop_.RunFor(kRecoveryInterval * 3);
  ExpectNoSpace(store_->health());
  disk_->SetRoom(std::nullopt);
  loop_.RunFor(kRecoveryInterval * 2);
  EXPECT_TRUE(store_->health().ok()) << store_->health();
  ASSERT_TRUE(Put("b").ok());
  EXPECT_EQ(KeysNow(), (Keys{"a", "b"}));
  EXPECT_TRUE(rt::RunTask(loop_, scope.Close()).ok());
}

TEST_F(Recovery, ThatFailsHalfwayLeavesHistoryReadable) {
  Open();
  const Result<TxnResult> before = Put("a", 5'000);
  ASSERT_TRUE(before.ok());
  ASSERT_TRUE(Put("a").ok());  // what was before it is in the log only
  ASSERT_TRUE(Put("b").ok());
  disk_->SetRoom(10);
  ExpectNoSpace(Put("lost").status());
  disk_->SetRoom(std::nullopt);
  disk_->RefuseSpaceFor(".sst");
  for (int i = 0; i < 2; ++i) {
    ExpectNoSpace(Recover());
    const Result<Keys> keys = KeysAt(before->revision);
    ASSERT_TRUE(keys.ok()) << keys.status();
    EXPECT_EQ(*keys, (Keys{"a"}));
    EXPECT_EQ(KeysNow(), (Keys{"a", "b"}));
    ExpectNoSpace(Put("lost too").status());
  }
  disk_->RefuseSpaceFor("");
  ASSERT_TRUE(Recover().ok());
  ASSERT_TRUE(Put("c").ok());
  Open();
  EXPECT_EQ(KeysNow(), (Keys{"a", "b", "c"}));
}

// The write is in the log of writes, whole, but was never acknowledged, and the power may take it.
TEST_F(Recovery, ForgetsAWriteWhoseSyncFoundNoSpace) {
  for (uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    disk_ = std::make_unique<FaultyDisk>(seed);
    Open();
    ASSERT_TRUE(Put("a").ok());
    disk_->FailSyncs(1, FaultyDisk::SyncError::kNoSpace);
    ExpectNoSpace(Put("b").status());
    const Status recovered = Recover();
    ASSERT_TRUE(recovered.ok()) << recovered;
    ASSERT_TRUE(Put("c").ok());
    EXPECT_EQ(KeysNow(), (Keys{"a", "c"}));
    LosePower();
    Open();
    EXPECT_EQ(KeysNow(), (Keys{"a", "c"}));
    Close();
  }
}

TEST_F(Recovery, KeepsALeaseWhoseEndWasNotAcknowledged) {
  Open();
  const Duration ttl = Duration::Seconds(60);
  const Result<LeaseId> lease = rt::RunTask(loop_, handle_->GrantLease(ttl));
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE(Put("a", 100, *lease).ok());
  disk_->FailSyncs(1, FaultyDisk::SyncError::kNoSpace);
  ExpectNoSpace(rt::RunTask(loop_, handle_->RevokeLease(*lease)));
  disk_->FailSyncs(0);
  const Status recovered = Recover();
  ASSERT_TRUE(recovered.ok()) << recovered;
  EXPECT_EQ(KeysNow(), (Keys{"a"}));
  Open();
  EXPECT_EQ(KeysNow(), (Keys{"a"}));
  loop_.RunFor(ttl + Duration::Seconds(1));
  EXPECT_EQ(KeysNow(), Keys{}) << "its lease ended";
}

TEST_F(Recovery, ForgetsALeaseThatWasNeverGranted) {
  Open();
  disk_->FailSyncs(1, FaultyDisk::SyncError::kNoSpace);
  ExpectNoSpace(rt::RunTask(loop_, handle_->GrantLease(Duration::Seconds(60))).status());
  ASSERT_TRUE(Recover().ok());
  Open();
  loop_.RunFor(Duration::Seconds(61));
  EXPECT_EQ(store_->commit_stats().writes, 0U) << "nothing had to end";
}

rt::Task<Status> ReadAt(Store* store, Revision revision) {
  RangeRequest request;
  request.end = kNoEnd;
  request.revision = revision;
  CO_TRY(const RangeResult range, co_await store->Range(std::move(request)));
  co_return range.items.size() == 1 ? OkStatus() : Internal("a key is missing");
}

TEST(RecoveryWithThreads, LetsHistoryBeReadMeanwhile) {
  rt::AsioLoop loop;
  FaultyDisk disk(3);
  RocksOptions options;
  options.dir = "/store";
  options.env = disk.env();
  auto store = RocksStore::Open(loop, options);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto handle = (*store)->NewHandle();
  Txn txn;
  txn.ops.push_back(Op::Put("a", Bytes(std::string(1'000, 'x'))));
  const Result<TxnResult> first = rt::RunTask(loop, handle->Commit(txn));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(rt::RunTask(loop, handle->Commit(txn)).ok());
  for (int round = 0; round < 20; ++round) {
    disk.SetRoom(10);
    EXPECT_FALSE(rt::RunTask(loop, handle->Commit(txn)).ok());
    EXPECT_FALSE((*store)->health().ok());
    disk.SetRoom(std::nullopt);
    std::vector<rt::Task<Status>> tasks;
    tasks.push_back((*store)->Recover());
    for (int i = 0; i < 50; ++i) tasks.push_back(ReadAt(handle.get(), first->revision));
    for (const Status& status : rt::RunTask(loop, rt::JoinAll(std::move(tasks)))) {
      EXPECT_TRUE(status.ok()) << status;
    }
    ASSERT_TRUE(rt::RunTask(loop, handle->Commit(txn)).ok());
  }
  ASSERT_TRUE(rt::RunTask(loop, (*store)->Close()).ok());
}

}  // namespace
}  // namespace berth::store
