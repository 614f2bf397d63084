// SPDX-License-Identifier: Apache-2.0
// What a store on three members of a real etcd keeps while they are killed, paused, cut off from
// each other and compacted: nothing acknowledged is lost, nothing happens twice, no watch has a
// gap.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rt/asio/asio_loop.h"
#include "rt/join_all.h"
#include "rt/sleep.h"
#include "store/conformance/linearizable.h"
#include "store/etcd/etcd_store.h"
#include "store/etcd/testing/etcd_process.h"
#include "store/store.h"

namespace berth::store {
namespace {

constexpr Duration kPatience = Duration::Seconds(60);
constexpr Duration kPoll = Duration::Millis(20);
constexpr size_t kMembers = 3;

struct Counts {
  int64_t acknowledged = 0;
  int64_t unknown = 0;  // commits without an answer
  bool stop = false;
  int writers = 0;  // that have not stopped yet
};

RangeRequest Key(std::string key) {
  RangeRequest request;
  request.start = std::move(key);
  return request;
}

// Adds one to a counter by compare-and-set until it is stopped.
rt::Task<Status> CountUp(Store* store, Counts* counts) {
  ++counts->writers;
  while (!counts->stop) {
    const Result<RangeResult> now = co_await store->Range(Key("counter"));
    if (!now.ok()) {
      CO_TRY_STATUS(co_await rt::Sleep(kPoll));
      continue;
    }
    Txn txn;
    int64_t value = 0;
    if (now->items.empty()) {
      txn.conditions.push_back(Condition::Absent("counter"));
    } else {
      value = std::stoll(std::string(now->items[0].value.view()));
      txn.conditions.push_back(Condition::Unchanged("counter", now->items[0].mod_revision));
    }
    txn.ops.push_back(Op::Put("counter", Bytes(std::to_string(value + 1))));
    const Result<TxnResult> result = co_await store->Commit(std::move(txn));
    if (!result.ok()) ++counts->unknown;
    if (result.ok() && result->committed) ++counts->acknowledged;
  }
  --counts->writers;
  co_return OkStatus();
}

// The values that a watch shows up to a revision (zero: not known yet).
rt::Task<Status> Collect(Watch* watch, const Revision* end, std::vector<int64_t>* values) {
  for (Revision through; end->value == 0 || through < *end;) {
    CO_TRY(const WatchBatch batch, co_await watch->Next());
    for (const Event& event : batch.events) {
      if (end->value != 0 && event.kv.mod_revision > *end) break;
      values->push_back(std::stoll(std::string(event.kv.value.view())));
    }
    through = batch.revision;
  }
  co_return OkStatus();
}

rt::Task<Status> WaitUntil(std::function<bool()> done, std::string what) {
  for (Duration waited; waited < kPatience; waited += kPoll) {
    if (done()) co_return OkStatus();
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return Timeout("waited for " + what);
}

rt::Task<Status> WaitForMore(const Counts* counts, int64_t more) {
  const int64_t goal = counts->acknowledged + more;
  std::function<bool()> reached = [counts, goal] { return counts->acknowledged >= goal; };
  co_return co_await WaitUntil(std::move(reached), "commits");
}

class EtcdCluster : public testing::Test {
 protected:
  ~EtcdCluster() override {
    for (const auto& store : stores_) CHECK(rt::RunTask(loop_, store->Close()).ok());
  }

  std::unique_ptr<Store> Open(EtcdOptions options) {
    auto store = rt::RunTask(loop_, EtcdStore::Open(loop_, std::move(options)));
    CHECK(store.ok()) << store.status();
    stores_.push_back(*std::move(store));
    return stores_.back()->NewHandle();
  }
  std::unique_ptr<Store> Open(const EtcdProcesses& etcd) {
    EtcdOptions options;
    options.endpoints = etcd.endpoints();
    return Open(std::move(options));
  }
  template <class T>
  T Run(rt::Task<T> task) {
    return rt::RunTask(loop_, std::move(task));
  }
  Result<TxnResult> Put(Store& store, std::string key, std::string_view value) {
    Txn txn;
    txn.ops.push_back(Op::Put(std::move(key), Bytes(value)));
    return Run(store.Commit(std::move(txn)));
  }
  // Tries for a while.
  Status PutAtLast(Store& store, const std::string& key) {
    Status status = Timeout("");
    for (Duration waited; waited < kPatience && !status.ok(); waited += kPoll) {
      status = Put(store, key, "v").status();
      if (!status.ok()) CHECK(Run(rt::Sleep(kPoll)).ok());
    }
    return status;
  }

  // Two writers and a watcher on two stores, while `faults` happen.
  using Script = std::function<rt::Task<Status>(EtcdProcesses*, Counts*)>;
  void CountWhile(Script faults) {
    EtcdProcesses etcd({.members = kMembers, .links = &loop_});
    const auto first = Open(etcd);
    const auto second = Open(etcd);
    Counts counts;
    Revision end;
    std::vector<int64_t> values;
    WatchRequest request;
    request.start = "counter";
    auto watch = Run(second->StartWatch(request));
    ASSERT_TRUE(watch.ok()) << watch.status();
    std::vector<rt::Task<Status>> tasks;
    tasks.push_back(CountUp(first.get(), &counts));
    tasks.push_back(CountUp(second.get(), &counts));
    tasks.push_back(RunFaults(std::move(faults), &etcd, &counts, first.get(), &end));
    tasks.push_back(Collect(watch->get(), &end, &values));
    for (const Status& status : Run(rt::JoinAll(std::move(tasks)))) {
      EXPECT_TRUE(status.ok()) << status;
    }
    RangeRequest at_end = Key("counter");
    at_end.revision = end;
    const Result<RangeResult> counted = Run(first->Range(at_end));
    ASSERT_TRUE(counted.ok()) << counted.status();
    const int64_t last = std::stoll(std::string(counted->items.at(0).value.view()));
    EXPECT_GE(last, counts.acknowledged) << "an acknowledged commit is lost";
    EXPECT_LE(last, counts.acknowledged + counts.unknown) << "a commit happened twice";
    ASSERT_EQ(values.size(), static_cast<size_t>(last));
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<int64_t>(i) + 1);
  }

  static rt::Task<Status> RunFaults(
      Script faults, EtcdProcesses* etcd, Counts* counts, Store* store, Revision* end) {
    rt::Task<Status> running = faults(etcd, counts);
    const Status status = co_await running;
    counts->stop = true;
    std::function<bool()> stopped = [counts] { return counts->writers == 0; };
    CO_TRY_STATUS(co_await WaitUntil(std::move(stopped), "writers"));
    while (end->value == 0) {
      Txn txn;
      txn.ops.push_back(Op::Put("end", Bytes("")));
      const Result<TxnResult> marked = co_await store->Commit(std::move(txn));
      if (marked.ok()) *end = marked->revision;
    }
    co_return status;
  }

  rt::AsioLoop loop_;
  std::vector<std::unique_ptr<EtcdStore>> stores_;
};

// Each member gets into trouble and out of it again, while others go on.
using Act = void (EtcdProcesses::*)(size_t member);
rt::Task<Status> OneAfterAnother(EtcdProcesses* etcd, Counts* counts, Act trouble, Act end) {
  CO_TRY_STATUS(co_await WaitForMore(counts, 20));
  for (size_t member = 0; member < kMembers; ++member) {
    (etcd->*trouble)(member);
    CO_TRY_STATUS(co_await WaitForMore(counts, 20));
    (etcd->*end)(member);
    CO_TRY_STATUS(co_await WaitForMore(counts, 20));
  }
  co_return OkStatus();
}

rt::Task<Status> KillOneAfterAnother(EtcdProcesses* etcd, Counts* counts) {
  return OneAfterAnother(etcd, counts, &EtcdProcesses::Kill, &EtcdProcesses::Start);
}
rt::Task<Status> PauseOneAfterAnother(EtcdProcesses* etcd, Counts* counts) {
  return OneAfterAnother(etcd, counts, &EtcdProcesses::Pause, &EtcdProcesses::Resume);
}
// One of them leads: it hears of the other one that leads when it is healed.
rt::Task<Status> CutOffOneAfterAnother(EtcdProcesses* etcd, Counts* counts) {
  return OneAfterAnother(etcd, counts, &EtcdProcesses::CutOff, &EtcdProcesses::Heal);
}

rt::Task<Status> DoAllOfIt(EtcdProcesses* etcd, Counts* counts) {
  Status status = co_await KillOneAfterAnother(etcd, counts);
  if (status.ok()) status = co_await PauseOneAfterAnother(etcd, counts);
  if (status.ok()) status = co_await CutOffOneAfterAnother(etcd, counts);
  counts->stop = true;
  co_return status;
}

TEST_F(EtcdCluster, LosesNothingWhenMembersAreKilled) { CountWhile(KillOneAfterAnother); }
TEST_F(EtcdCluster, LosesNothingWhenMembersArePaused) { CountWhile(PauseOneAfterAnother); }

TEST_F(EtcdCluster, LosesNothingWhenMembersAreCutOffFromTheOthers) {
  CountWhile(CutOffOneAfterAnother);
}

TEST_F(EtcdCluster, ClientsAgreeOnOneOrderWhileMembersAreKilledPausedAndCutOff) {
  EtcdProcesses etcd({.members = kMembers, .links = &loop_});
  const std::array stores = {Open(etcd), Open(etcd), Open(etcd)};
  Counts counts;
  std::vector<Observation> history;
  std::vector<rt::Task<Status>> tasks;
  constexpr int kClients = 6;
  for (int i = 0; i < kClients; ++i) {
    ClientOptions options;
    options.name = "client" + std::to_string(i);
    options.seed = static_cast<uint64_t>(i) + 1;
    options.operations = 1'000'000;
    options.stop = &counts.stop;
    Store* store = stores[static_cast<size_t>(i) % stores.size()].get();
    tasks.push_back(RunClient(store, std::move(options), &history));
  }
  tasks.push_back(CountUp(stores[0].get(), &counts));
  tasks.push_back(DoAllOfIt(&etcd, &counts));
  for (const Status& status : Run(rt::JoinAll(std::move(tasks))))
    EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(history.size(), 100U);
  EXPECT_EQ(FindViolations(history), std::vector<std::string>());
}

TEST_F(EtcdCluster, WithoutAMajorityNothingIsAnsweredAndThenEverythingGoesOn) {
  EtcdProcesses etcd({.members = kMembers, .arguments = {}, .scheme = "http"});
  EtcdOptions options;
  options.endpoints = etcd.endpoints();
  options.try_timeout = Duration::Seconds(1);
  options.call_timeout = Duration::Seconds(3);
  const auto store = Open(options);
  ASSERT_TRUE(PutAtLast(*store, "a").ok());
  etcd.Kill(0);
  etcd.Kill(1);
  const Result<TxnResult> put = Put(*store, "b", "1");
  EXPECT_EQ(put.status().reason(), Reason::kUnavailable) << put.status();
  EXPECT_NE(put.status().message().find("unknown until a read tells"), std::string_view::npos);
  EXPECT_EQ(Run(store->Range(Key("a"))).status().reason(), Reason::kUnavailable);
  EXPECT_EQ(Run(store->CurrentRevision()).status().reason(), Reason::kUnavailable);
  EXPECT_FALSE(stores_.back()->health().ok());
  etcd.Start(0);
  EXPECT_TRUE(PutAtLast(*store, "c").ok());
  const EtcdStore* opened = stores_.back().get();
  std::function<bool()> healthy = [opened] { return opened->health().ok(); };
  EXPECT_TRUE(Run(WaitUntil(healthy, "health")).ok());
}

TEST_F(EtcdCluster, AWatchThatMissedACompactionIsExpiredAndTheNextOneWorks) {
  EtcdProcesses etcd({.members = kMembers, .arguments = {}, .scheme = "http"});
  EtcdOptions alone;  // knows one member only, so that it can be cut off
  alone.endpoints = {etcd.endpoints()[2]};
  const auto cut_off = Open(alone);
  EtcdOptions others;
  others.endpoints = {etcd.endpoints()[0], etcd.endpoints()[1]};
  const auto writer = Open(others);
  WatchRequest request;
  request.start = "k";
  auto watch = Run(cut_off->StartWatch(request));
  ASSERT_TRUE(watch.ok()) << watch.status();
  ASSERT_TRUE(PutAtLast(*writer, "k").ok());
  ASSERT_TRUE(Run((*watch)->Next()).ok());

  etcd.Kill(2);
  Result<TxnResult> last = Unavailable("");
  for (int i = 0; i < 20; ++i) {
    last = Put(*writer, "k", std::to_string(i));
    if (!last.ok()) --i;
  }
  ASSERT_TRUE(Run(writer->Compact(last->revision)).ok());
  etcd.Start(2);
  for (;;) {
    const Result<WatchBatch> batch = Run((*watch)->Next());
    if (batch.ok()) {
      ASSERT_TRUE(batch->events.empty()) << "it shows what came after a hole";
      continue;
    }
    EXPECT_EQ(batch.status().reason(), Reason::kExpired) << batch.status();
    break;
  }
  request.from = last->revision.Next();
  auto next = Run(cut_off->StartWatch(request));
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_TRUE(PutAtLast(*writer, "k").ok());
  const Result<WatchBatch> batch = Run((*next)->Next());
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->events.size(), 1U);
}

TEST_F(EtcdCluster, AFullEtcdRefusesWritesAndSaysWhatToDo) {
  EtcdProcesses etcd(
      {.members = kMembers, .arguments = {"--quota-backend-bytes=8388608"}, .scheme = "http"});
  const auto store = Open(etcd);
  const std::string large(1024 * 1024, 'x');
  Result<TxnResult> put = Put(*store, "k0", large);
  for (int i = 1; i < 100 && put.ok(); ++i) put = Put(*store, "k" + std::to_string(i), large);
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.status().reason(), Reason::kUnavailable) << put.status();
  EXPECT_NE(put.status().message().find("alarm disarm"), std::string_view::npos) << put.status();
  EXPECT_FALSE(stores_.back()->health().ok());
  EXPECT_TRUE(Run(store->Range(Key("k0"))).ok()) << "reads go on";

  Txn deletion;  // takes no space
  for (int i = 0; i < 100; ++i) deletion.ops.push_back(Op::Delete("k" + std::to_string(i)));
  const Result<TxnResult> deleted = Run(store->Commit(deletion));
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  ASSERT_TRUE(Run(store->Compact(deleted->revision)).ok());
  ASSERT_TRUE(etcd.Control({"defrag"}));
  ASSERT_TRUE(etcd.Control({"alarm", "disarm"}));
  EXPECT_TRUE(PutAtLast(*store, "k").ok());
  EXPECT_TRUE(stores_.back()->health().ok()) << stores_.back()->health();
}

TEST_F(EtcdCluster, AMemberOfAnotherClusterIsNotUsed) {
  EtcdProcesses ours;
  EtcdProcesses other;
  EtcdOptions options;
  options.endpoints = {ours.endpoints()[0], other.endpoints()[0]};
  options.call_timeout = Duration::Seconds(2);
  const auto store = Open(options);
  ASSERT_TRUE(PutAtLast(*store, "a").ok());
  // Whoever answers first is the one that counts.
  const auto asked = Open(ours);
  const bool is_ours = !Run(asked->Range(Key("a")))->items.empty();
  EtcdProcesses& used = is_ours ? ours : other;
  used.Kill(0);
  // The first failure may be that of the connection.
  EXPECT_FALSE(Put(*store, "b", "1").ok());
  const Result<RangeResult> read = Run(store->Range(Key("a")));
  ASSERT_FALSE(read.ok()) << "an answer of the wrong etcd";
  EXPECT_NE(read.status().message().find("belongs to cluster"), std::string_view::npos)
      << read.status();
  EXPECT_FALSE(Put(*store, "b", "1").ok());
  used.Start(0);
  EXPECT_TRUE(PutAtLast(*store, "c").ok());
  EXPECT_TRUE(Run(store->Range(Key("a"))).ok());
  const auto elsewhere = Open(is_ours ? other : ours);
  EXPECT_TRUE(Run(elsewhere->Range(Key("b")))->items.empty()) << "nothing was written there";
}

}  // namespace
}  // namespace berth::store
