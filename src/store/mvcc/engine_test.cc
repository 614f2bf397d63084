// SPDX-License-Identifier: Apache-2.0
// What the contract does not ask: bounds of the queue, order of answers, failures of the log.
#include "store/mvcc/engine.h"

#include <gtest/gtest.h>

#include <utility>

#include "rt/join_all.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/mvcc/handle.h"

namespace berth::store {
namespace {

// A log whose writes become durable, or fail, when the test says so.
class ManualLog final : public RecordLog {
 public:
  Status Load(LogLoader& loader) override {
    loader.OnCompacted({});
    return OkStatus();
  }
  void Start(LogSink& sink) override { sink_ = &sink; }
  void Append(std::shared_ptr<const LogWrite> write) override {
    in_flight_.push_back(std::move(write));
  }
  void Read(std::vector<Position> /*positions*/,
            Done<Result<std::vector<std::optional<Record>>>> done) override {
    done(Internal("nothing is read here"));
  }
  void ReadHistory(HistoryRequest /*request*/, Done<Result<HistoryPage>> done) override {
    done(Internal("nothing is read here"));
  }
  void Recover(Revision durable, Done<Status> done) override {
    recovered_to_ = durable;
    done(OkStatus());
  }
  void Stop(Done<Status> done) override { done(OkStatus()); }

  void FinishOldest(size_t count) {
    in_flight_.erase(in_flight_.begin(), in_flight_.begin() + static_cast<ptrdiff_t>(count));
    sink_->OnWritten(count);
  }
  void FailAll() {
    in_flight_.clear();
    sink_->OnFailed(Unavailable("no space left on device"));
  }
  size_t in_flight() const { return in_flight_.size(); }
  Revision recovered_to() const { return recovered_to_; }

 private:
  LogSink* sink_ = nullptr;
  std::vector<std::shared_ptr<const LogWrite>> in_flight_;
  Revision recovered_to_;
};

class EngineTest : public testing::Test {
 protected:
  EngineTest() {
    auto log = std::make_unique<ManualLog>();
    log_ = log.get();
    engine_ = *Engine::Open(loop_, std::move(log));
  }
  // Starts a commit; its answer comes later.
  std::optional<Result<TxnResult>>& Commit(Txn txn) {
    auto& slot = *answers_.emplace_back(std::make_unique<std::optional<Result<TxnResult>>>());
    engine_->Commit(std::move(txn),
                    [&slot](Result<TxnResult> result) { slot = std::move(result); });
    return slot;
  }
  static Txn PutTxn(std::string key) {
    Txn txn;
    txn.ops.push_back(Op::Put(std::move(key), Bytes("v")));
    return txn;
  }
  static Txn CreateTxn(std::string key) {
    Txn txn = PutTxn(key);
    txn.conditions.push_back(Condition::Absent(std::move(key)));
    return txn;
  }

  rt::SimLoop loop_{1};
  ManualLog* log_ = nullptr;
  std::shared_ptr<Engine> engine_;
  std::vector<std::unique_ptr<std::optional<Result<TxnResult>>>> answers_;
};

TEST_F(EngineTest, AnswersOnlyWhatIsDurable) {
  auto& first = Commit(PutTxn("a"));
  auto& second = Commit(PutTxn("b"));
  EXPECT_EQ(engine_->revision()->value, 1);
  log_->FinishOldest(1);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ((*first)->revision.value, 2);
  EXPECT_FALSE(second.has_value());
  EXPECT_EQ(engine_->revision()->value, 2);
  log_->FinishOldest(1);
  ASSERT_TRUE(second.has_value());
}

TEST_F(EngineTest, ANoThatDependsOnAPendingWriteWaitsForIt) {
  Commit(CreateTxn("a"));
  auto& refused = Commit(CreateTxn("a"));
  auto& unrelated = Commit(CreateTxn("b"));
  EXPECT_FALSE(refused.has_value());
  log_->FinishOldest(1);
  ASSERT_TRUE(refused.has_value());
  EXPECT_FALSE((*refused)->committed);
  EXPECT_EQ((*refused)->conflicts[0].mod_revision.value, 2);
  EXPECT_FALSE(unrelated.has_value());
  auto& durable_no = Commit(CreateTxn("a"));
  EXPECT_TRUE(durable_no.has_value()) << "what is durable is known at once";
  log_->FinishOldest(1);
}

TEST_F(EngineTest, RefusesMoreThanMayWait) {
  for (size_t i = 0; i < kMaxPendingWrites; ++i) {
    EXPECT_FALSE(Commit(PutTxn("k" + std::to_string(i))).has_value());
  }
  auto& refused = Commit(PutTxn("more"));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status().reason(), Reason::kTooManyRequests);
  EXPECT_TRUE(refused->status().retry_after().has_value());
  EXPECT_EQ(log_->in_flight(), kMaxPendingWrites);
  log_->FinishOldest(1);
  EXPECT_FALSE(Commit(PutTxn("fits")).has_value());
}

TEST_F(EngineTest, RefusesMoreBytesThanMayWait) {
  size_t accepted = 0;
  const Bytes value(std::string(kMaxValueBytes, 'x'));
  for (size_t i = 0; i < 100; ++i) {
    Txn txn;
    txn.ops.push_back(Op::Put("k" + std::to_string(i), value));
    if (!Commit(std::move(txn)).has_value()) ++accepted;
  }
  EXPECT_EQ(accepted, kMaxPendingBytes / kMaxValueBytes + 1);
}

TEST_F(EngineTest, RefusesMoreWatchersThanItCanFeed) {
  const WatchRequest request{.start = "a", .end = "", .from = {}};
  std::vector<std::shared_ptr<Watcher>> watchers;
  for (size_t i = 0; i < kMaxWatchers; ++i) watchers.push_back(*engine_->StartWatch(request));
  EXPECT_EQ(engine_->StartWatch(request).status().reason(), Reason::kTooManyRequests);
  engine_->EndWatch(watchers.front());
  EXPECT_TRUE(engine_->StartWatch(request).ok());
}

TEST_F(EngineTest, RefusesMoreLeasesThanItHasRoomFor) {
  size_t granted = 0;
  for (size_t i = 0; i < kMaxLeases; ++i) {
    engine_->GrantLease(Duration::Minutes(1), [&](const Result<LeaseId>& id) {
      if (id.ok()) ++granted;
    });
    log_->FinishOldest(1);
  }
  EXPECT_EQ(granted, kMaxLeases);
  std::optional<Result<LeaseId>> refused;
  engine_->GrantLease(Duration::Minutes(1), [&](Result<LeaseId> id) { refused = std::move(id); });
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status().reason(), Reason::kTooManyRequests);
  EXPECT_TRUE(refused->status().retry_after().has_value());
}

TEST_F(EngineTest, AFailureFailsAllThatWaitsAndNamesItself) {
  Commit(PutTxn("a"));
  log_->FinishOldest(1);
  auto& first = Commit(PutTxn("b"));
  auto& depends = Commit(CreateTxn("b"));
  log_->FailAll();
  for (auto* answer : {&first, &depends}) {
    ASSERT_TRUE(answer->has_value());
    EXPECT_EQ((*answer)->status().reason(), Reason::kUnavailable);
    EXPECT_EQ((*answer)->status().message(), "no space left on device");
  }
  EXPECT_EQ(engine_->health().message(), "no space left on device");
  EXPECT_EQ(Commit(PutTxn("c"))->status().reason(), Reason::kUnavailable);
  EXPECT_EQ(engine_->revision()->value, 2) << "reads go on";
}

TEST_F(EngineTest, ARecoveredStoreNeverReusesARevision) {
  Commit(PutTxn("a"));
  Commit(PutTxn("b"));
  log_->FailAll();
  const auto handle = MakeHandle(engine_);
  ASSERT_TRUE(rt::RunTask(loop_, RecoverEngine(engine_)).ok());
  EXPECT_EQ(log_->recovered_to().value, 1);
  EXPECT_TRUE(engine_->health().ok());
  auto& after = Commit(CreateTxn("a"));
  log_->FinishOldest(1);
  ASSERT_TRUE(after.has_value());
  EXPECT_TRUE((*after)->committed) << "the failed write never happened";
  EXPECT_EQ((*after)->revision.value, 4);
}

TEST_F(EngineTest, AFailedStoreEndsNoLeasesUntilItRecovered) {
  std::optional<Result<LeaseId>> lease;
  engine_->GrantLease(Duration::Seconds(5), [&](Result<LeaseId> id) { lease = std::move(id); });
  log_->FinishOldest(1);
  Txn txn;
  txn.ops.push_back(Op::Put("a", Bytes("v"), **lease));
  Commit(std::move(txn));
  log_->FinishOldest(1);
  Commit(PutTxn("b"));
  log_->FailAll();
  loop_.RunFor(Duration::Seconds(20));
  EXPECT_EQ(log_->in_flight(), 0U);
  ASSERT_TRUE(rt::RunTask(loop_, RecoverEngine(engine_)).ok());
  loop_.RunFor(Duration::Seconds(4));
  EXPECT_EQ(log_->in_flight(), 0U) << "it has its whole ttl again";
  loop_.RunFor(Duration::Seconds(2));
  EXPECT_EQ(log_->in_flight(), 1U);
  log_->FinishOldest(1);
  EXPECT_EQ(engine_->key_count(), 0U);
}

TEST_F(EngineTest, ClosesAfterWhatIsPending) {
  auto& commit = Commit(PutTxn("a"));
  bool closed = false;
  engine_->Close([&](const Status& status) { closed = status.ok(); });
  EXPECT_FALSE(closed);
  log_->FinishOldest(1);
  EXPECT_TRUE(commit.has_value());
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace berth::store
