// SPDX-License-Identifier: Apache-2.0
// What the engine does with members that lag, are silent, lose answers or lose events: a real etcd
// does so too rarely to test it.
#include "store/etcd/etcd_engine.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rt/join_all.h"
#include "rt/leaf.h"
#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "rt/sleep.h"
#include "store/etcd/wire.h"

namespace berth::store {
namespace {

constexpr const char* kRange = "/etcdserverpb.KV/Range";
constexpr const char* kTxn = "/etcdserverpb.KV/Txn";
// How often a silent member looks whether it is to speak again.
constexpr Duration kSilence = Duration::Millis(10);

// A watch stream whose messages a test gives.
class FakeStream final : public net::MessageStream {
 public:
  explicit FakeStream(std::vector<FakeStream*>& all) : all_(all) {
    all_.push_back(this);
    pb::WatchResponse created;
    created.set_created(true);
    Give(created);
  }
  ~FakeStream() override { std::erase(all_, this); }

  void Give(const pb::WatchResponse& response) {
    messages_.push_back(response.SerializeAsString());
    Wake();
  }
  void Give(std::vector<int64_t> revisions) {
    pb::WatchResponse response;
    for (const int64_t revision : revisions) {
      pb::KeyValue* kv = response.add_events()->mutable_kv();
      kv->set_key("k");
      kv->set_mod_revision(revision);
    }
    Give(response);
  }

  rt::Task<Result<std::optional<std::string>>> Read() override {
    while (messages_.empty() && !end_) {
      rt::Leaf<Status> leaf;
      reader_ = &leaf;
      const Status woken = co_await leaf;
      reader_ = nullptr;
      CO_TRY_STATUS(woken);
    }
    if (messages_.empty()) co_return *end_;
    std::optional<std::string> message = std::move(messages_.front());
    messages_.pop_front();
    co_return message;
  }
  bool TryWrite(std::string /*message*/) override { return true; }
  rt::Task<Status> Write(std::string message) override {
    pb::WatchRequest request;
    CHECK(request.ParseFromString(message));
    start = request.create_request().start_revision();
    co_return OkStatus();
  }
  size_t outbox_bytes() const override { return 0; }
  void WritesDone() override {}
  void Abort(Status why) override {
    end_ = std::move(why);
    Wake();
  }

  int64_t start = 0;

 private:
  void Wake() {
    if (reader_ != nullptr) reader_->Complete(OkStatus());
  }
  std::vector<FakeStream*>& all_;
  std::deque<std::string> messages_;
  std::optional<Status> end_;
  rt::Leaf<Status>* reader_ = nullptr;
};

struct Member {
  int64_t revision = 10;
  Status failure;          // of calls other than the greeting
  bool is_silent = false;  // to them
  std::map<std::string, int> calls;
  std::vector<FakeStream*> streams;
};

class FakeChannel final : public net::RpcChannel {
 public:
  explicit FakeChannel(Member& member) : member_(member) {}

  rt::Task<Result<std::string>> Call(std::string method,
                                     std::string request,
                                     net::RpcOptions /*options*/) override {
    CO_TRY_STATUS(co_await rt::Yield());
    pb::RangeRequest range;
    const bool is_greeting =
        method == kRange && range.ParseFromString(request) && range.serializable();
    if (!is_greeting) {
      ++member_.calls[method];
      while (member_.is_silent) CO_TRY_STATUS(co_await rt::Sleep(kSilence));
      CO_TRY_STATUS(member_.failure);
    }
    pb::RangeResponse response;  // a transaction's answer has the same header
    response.mutable_header()->set_cluster_id(7);
    response.mutable_header()->set_revision(member_.revision);
    co_return response.SerializeAsString();
  }
  rt::Task<Result<std::unique_ptr<net::MessageStream>>> Open(std::string /*method*/,
                                                             net::RpcOptions /*options*/) override {
    co_return std::unique_ptr<net::MessageStream>(std::make_unique<FakeStream>(member_.streams));
  }
  bool usable() const override { return true; }
  rt::Task<Status> Close() override { co_return OkStatus(); }

 private:
  Member& member_;
};

class FakeDialer final : public net::RpcDialer {
 public:
  explicit FakeDialer(std::map<std::string, Member>& members) : members_(members) {}
  rt::Task<Result<std::unique_ptr<net::RpcChannel>>> Dial(std::string address,
                                                          net::RpcCredentials /*credentials*/,
                                                          Duration /*limit*/) override {
    co_return std::unique_ptr<net::RpcChannel>(std::make_unique<FakeChannel>(members_.at(address)));
  }

 private:
  std::map<std::string, Member>& members_;
};

class EtcdEngineTest : public testing::Test {
 protected:
  EtcdEngineTest() {
    EtcdOptions options;
    options.endpoints = {"a:1", "b:1"};
    engine_ = std::make_shared<EtcdEngine>(
        loop_, std::make_unique<FakeDialer>(members_), std::move(options));
    const Status started = Run(engine_->Start());
    CHECK(started.ok()) << started;
    loop_.RunFor(Duration::Millis(1));
  }
  ~EtcdEngineTest() override { CHECK(Run(engine_->Close()).ok()); }

  template <class T>
  T Run(rt::Task<T> task) {
    return rt::RunTask(loop_, std::move(task));
  }
  static Txn PutTxn(Bytes value) {
    Txn txn;
    txn.ops.push_back(Op::Put("k", std::move(value)));
    return txn;
  }
  rt::Task<Status> CommitOne(Txn txn) {
    const auto result = co_await engine_->Commit(std::move(txn));
    ++ended_;
    if (result.status().Is(Reason::kTooManyRequests)) ++refused_;
    co_return OkStatus();
  }
  Member& a() { return members_.at("a:1"); }
  Member& b() { return members_.at("b:1"); }
  FakeStream& feed() {
    auto& streams = a().streams.empty() ? b().streams : a().streams;
    CHECK(!streams.empty());
    return *streams.back();
  }
  std::shared_ptr<EtcdWatcher> Watch() {
    WatchRequest request;
    request.start = "k";
    auto watcher = Run(engine_->StartWatch(request));
    CHECK(watcher.ok()) << watcher.status();
    return *std::move(watcher);
  }

  rt::SimLoop loop_{1};
  std::map<std::string, Member> members_{{"a:1", {}}, {"b:1", {}}};
  std::shared_ptr<EtcdEngine> engine_;
  size_t ended_ = 0;    // of CommitOne()
  size_t refused_ = 0;  // of these, because too much waits
};

TEST_F(EtcdEngineTest, AnAnswerOlderThanOneThatWasSeenIsNotBelieved) {
  EXPECT_EQ(Run(engine_->CurrentRevision())->value, 10);
  a().revision = 5;
  b().revision = 12;
  EXPECT_EQ(Run(engine_->CurrentRevision())->value, 12);
  b().revision = 5;
  const auto lags = Run(engine_->CurrentRevision());
  EXPECT_EQ(lags.status().reason(), Reason::kUnavailable);
  EXPECT_NE(lags.status().message().find("after 12 was seen"), std::string_view::npos)
      << lags.status();
}

TEST_F(EtcdEngineTest, ATransactionIsSentOnceAndAReadUntilItIsAnswered) {
  a().failure = Unavailable("the connection is lost");
  Txn txn;
  txn.ops.push_back(Op::Put("k", Bytes("1")));
  const auto committed = Run(engine_->Commit(txn));
  EXPECT_EQ(committed.status().reason(), Reason::kUnavailable);
  EXPECT_NE(committed.status().message().find("unknown until a read"), std::string_view::npos);
  EXPECT_EQ(a().calls[kTxn] + b().calls[kTxn], 1);

  RangeRequest request;
  request.start = "k";
  b().failure = a().failure;
  const Time before = loop_.Now();
  EXPECT_EQ(Run(engine_->Range(request)).status().reason(), Reason::kUnavailable);
  EXPECT_GE(loop_.Now() - before, Duration::Seconds(9));
  EXPECT_LE(loop_.Now() - before, Duration::Seconds(11));
  b().failure = OkStatus();
  EXPECT_TRUE(Run(engine_->Range(request)).ok());
}

TEST_F(EtcdEngineTest, ATransactionThatWasRefusedForWantOfALeaderIsTriedElsewhere) {
  a().failure = Unavailable("etcdserver: no leader");
  Txn txn;
  txn.conditions.push_back(Condition::Absent("k"));
  const auto committed = Run(engine_->Commit(txn));
  EXPECT_NE(committed.status().message().find("0 reads instead of 1"), std::string_view::npos)
      << "the other member's answer: " << committed.status();
  EXPECT_EQ(a().calls[kTxn], 1);
  EXPECT_EQ(b().calls[kTxn], 1);
}

TEST_F(EtcdEngineTest, RefusesMoreCommitsThanMayWait) {
  a().is_silent = true;
  rt::TaskScope waiting(loop_);
  for (size_t i = 0; i < kEtcdCommitsMax; ++i) {
    waiting.Spawn("test.commit", CommitOne(PutTxn(Bytes("v"))));
  }
  const auto refused = Run(engine_->Commit(PutTxn(Bytes("v"))));
  EXPECT_EQ(refused.status().reason(), Reason::kTooManyRequests);
  EXPECT_TRUE(refused.status().retry_after().has_value());
  EXPECT_EQ(ended_, 0U) << "the others wait";
  a().is_silent = false;
  EXPECT_TRUE(Run(waiting.Join()).ok());
  EXPECT_EQ(ended_, kEtcdCommitsMax);
  EXPECT_EQ(refused_, 0U);
  EXPECT_TRUE(Run(engine_->Commit(PutTxn(Bytes("v")))).ok()) << "there is room again";
}

TEST_F(EtcdEngineTest, RefusesMoreBytesThanMayWait) {
  a().is_silent = true;
  rt::TaskScope waiting(loop_);
  constexpr size_t kFits = kEtcdCommitBytesMax / kMaxValueBytes;
  const Bytes value(std::string(kMaxValueBytes, 'x'));
  for (size_t i = 0; i < kFits + 4; ++i) waiting.Spawn("test.commit", CommitOne(PutTxn(value)));
  EXPECT_EQ(refused_, 4U);
  EXPECT_EQ(ended_, 4U);
  a().is_silent = false;
  EXPECT_TRUE(Run(waiting.Join()).ok());
  EXPECT_EQ(refused_, 4U);
  EXPECT_TRUE(Run(engine_->Commit(PutTxn(value))).ok()) << "there is room again";
}

TEST_F(EtcdEngineTest, RefusesMoreWatchersThanItCanFeed) {
  constexpr size_t kMore = 10;
  WatchRequest request;
  request.start = "k";
  // All at once: none of them is counted while it waits for the revision.
  std::vector<rt::Task<Result<std::shared_ptr<EtcdWatcher>>>> tasks;
  tasks.reserve(kMaxWatchers + kMore);
  for (size_t i = 0; i < kMaxWatchers + kMore; ++i) tasks.push_back(engine_->StartWatch(request));
  std::vector<std::shared_ptr<EtcdWatcher>> watchers;
  for (auto& started : Run(rt::JoinAll(std::move(tasks)))) {
    if (started.ok()) {
      watchers.push_back(*std::move(started));
      continue;
    }
    EXPECT_EQ(started.status().reason(), Reason::kTooManyRequests) << started.status();
    EXPECT_TRUE(started.status().retry_after().has_value());
  }
  EXPECT_EQ(watchers.size(), kMaxWatchers);
  engine_->EndWatch(watchers.back());
  watchers.back() = Watch();
  for (const auto& watcher : watchers) engine_->EndWatch(watcher);
}

TEST_F(EtcdEngineTest, ReadersOfTheRevisionShareQuestions) {
  const int before = a().calls[kRange];
  std::vector<rt::Task<Result<Revision>>> tasks;
  tasks.reserve(1'000);
  for (int i = 0; i < 1'000; ++i) tasks.push_back(engine_->CurrentRevision());
  for (const auto& revision : Run(rt::JoinAll(std::move(tasks)))) EXPECT_TRUE(revision.ok());
  EXPECT_LE(a().calls[kRange] - before, 2);
}

TEST_F(EtcdEngineTest, TheFeedGoesOnWhereItWas) {
  const auto watcher = Watch();
  feed().Give({11, 12});
  EXPECT_EQ(Run(engine_->Next(watcher))->revision.value, 12);
  feed().Abort(Unavailable("the connection is lost"));
  loop_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(feed().start, 12);
  feed().Give({12, 13});
  const auto batch = Run(engine_->Next(watcher));
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->events.size(), 1U) << "what was there before is dropped";
  EXPECT_EQ(batch->revision.value, 13);
  engine_->EndWatch(watcher);
}

TEST_F(EtcdEngineTest, ALostRevisionIsAskedForAgain) {
  const auto watcher = Watch();
  feed().Give({11, 13});
  loop_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(feed().start, 10);
  feed().Give({10, 11, 12, 13});
  const auto batch = Run(engine_->Next(watcher));
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->revision.value, 13);
  engine_->EndWatch(watcher);
}

TEST_F(EtcdEngineTest, WhatStaysLostEndsTheWatchers) {
  const auto watcher = Watch();
  feed().Give({12});
  loop_.RunFor(Duration::Seconds(1));
  a().revision = b().revision = 20;
  feed().Give({12});
  loop_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(Run(engine_->Next(watcher)).status().reason(), Reason::kExpired);
  engine_->EndWatch(watcher);
  const auto next = Watch();
  feed().Give({21});
  EXPECT_EQ(Run(engine_->Next(next))->revision.value, 21);
  engine_->EndWatch(next);
}

}  // namespace
}  // namespace berth::store
