// SPDX-License-Identifier: Apache-2.0
// Whenever the power goes: what was acknowledged or shown to a watcher is there afterwards, at the
// same revision; what was not is there whole or not at all; revisions have no gaps; a watch resumes
// where it was.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "rt/asio/asio_loop.h"
#include "rt/join_all.h"
#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/rocks/faults/faulty_disk.h"
#include "store/rocks/rocks_store.h"

namespace berth::store {
namespace {

constexpr int kWorkers = 4;
constexpr std::string_view kMarker = "marker";  // every transaction puts its number here

// A transaction that was sent, and what became of it as far as its sender knows.
struct Attempt {
  std::map<std::string, std::string> puts;
  std::set<std::string> deletes;
  std::optional<Revision> acknowledged;
};

using State = std::map<std::string, std::string>;
using Changes = std::vector<Event>;

std::string Text(const Event& event) {
  return std::to_string(event.kv.mod_revision.value) + " " + event.kv.key +
         (event.type == Event::Type::kDelete ? " deleted"
                                             : " = " + std::string(event.kv.value.view()));
}

void Replay(const Changes& changes, State& state) {
  for (const Event& event : changes) {
    if (event.type == Event::Type::kDelete) {
      EXPECT_EQ(state.erase(event.kv.key), 1U) << "deleted what was not there: " << Text(event);
    } else {
      state[event.kv.key] = event.kv.value.view();
    }
  }
}

// Everything that was ever tried on one disk, and everything that is known to have happened.
class History {
 public:
  explicit History(uint64_t seed) : random_(seed) {}

  // A new transaction that puts up to four keys and deletes up to two.
  Txn NewTxn(size_t& number) {
    number = attempts_.size();
    Attempt& attempt = attempts_.emplace_back();
    // Large values make writes span the blocks of a log.
    std::string value = std::to_string(number) + ":";
    value.append(random_.Chance(0.1) ? random_.Below(40'000) : random_.Below(200), 'x');
    attempt.puts[std::string(kMarker)] = std::to_string(number);
    for (auto n = random_.Below(4); n > 0; --n) attempt.puts[RandomKey()] = value;
    for (auto n = random_.Below(3); n > 0; --n) {
      std::string key = RandomKey();
      if (!attempt.puts.contains(key)) attempt.deletes.insert(std::move(key));
    }
    Txn txn;
    for (const auto& [key, put] : attempt.puts) txn.ops.push_back(Op::Put(key, Bytes(put)));
    for (const auto& key : attempt.deletes) txn.ops.push_back(Op::Delete(key));
    return txn;
  }
  void Acknowledge(size_t number, Revision at) { attempts_[number].acknowledged = at; }
  // A recovery forgets revisions that were given away already.
  void Recovered() { has_gaps_ = true; }
  void Watched(const Event& event) { watched_.push_back(event); }

  // Compares what the store has with what it must have.
  void Check(Revision compacted, const State& base, const Changes& changes, const State& now) {
    State expected;
    for (const auto& [revision, known] : known_) {
      if (revision <= compacted) Replay(known, expected);
    }
    EXPECT_EQ(base, expected) << "the state at the compacted revision " << compacted.value;
    Learn(compacted, changes);
    Replay(changes, expected);
    EXPECT_EQ(now, expected);
    CheckAcknowledged();
    CheckWatched();
  }
  // What is known for sure, for a compaction that may be repeated after the next crash.
  Revision known_through() const { return known_.empty() ? Revision{} : known_.rbegin()->first; }
  size_t acknowledged_count() const { return acknowledged_count_; }

 private:
  std::string RandomKey() { return "key" + std::to_string(random_.Below(10)); }

  void Learn(Revision compacted, const Changes& changes) {
    std::map<Revision, Changes> by_revision;
    for (const Event& event : changes) by_revision[event.kv.mod_revision].push_back(event);
    Revision expected = std::max(compacted.Next(), Revision{2});
    for (auto& [revision, events] : by_revision) {
      if (has_gaps_) expected = std::max(expected, revision);
      EXPECT_EQ(revision, expected) << "a gap in the revisions";
      expected = revision.Next();
      CheckWhole(revision, events);
      known_[revision] = std::move(events);
    }
  }

  void CheckWhole(Revision revision, const Changes& events) {
    std::map<std::string, std::string> puts;
    for (const Event& event : events) {
      if (event.type == Event::Type::kPut) puts[event.kv.key] = event.kv.value.view();
    }
    ASSERT_TRUE(puts.contains(std::string(kMarker))) << "half a transaction at " << revision.value;
    const auto number = static_cast<size_t>(std::stoull(puts[std::string(kMarker)]));
    ASSERT_LT(number, attempts_.size());
    EXPECT_EQ(puts, attempts_[number].puts) << "half a transaction at " << revision.value;
    for (const Event& event : events) {
      if (event.type == Event::Type::kPut) continue;
      EXPECT_TRUE(attempts_[number].deletes.contains(event.kv.key)) << Text(event);
    }
    const auto [place, is_new] = places_.emplace(number, revision);
    EXPECT_EQ(place->second, revision) << "transaction " << number << " happened twice";
  }

  void CheckAcknowledged() {
    acknowledged_count_ = 0;
    for (size_t i = 0; i < attempts_.size(); ++i) {
      if (!attempts_[i].acknowledged.has_value()) continue;
      ++acknowledged_count_;
      const auto place = places_.find(i);
      ASSERT_TRUE(place != places_.end()) << "acknowledged transaction " << i << " is lost";
      EXPECT_EQ(place->second, *attempts_[i].acknowledged);
    }
  }

  void CheckWatched() {
    std::set<std::string> known;
    for (const auto& [revision, events] : known_) {
      for (const Event& event : events) known.insert(Text(event));
    }
    for (const Event& event : watched_) {
      EXPECT_TRUE(known.contains(Text(event)))
          << "a watcher saw what never happened: " << Text(event);
    }
  }

  Random random_;
  std::vector<Attempt> attempts_;
  std::map<Revision, Changes> known_;
  std::map<size_t, Revision> places_;
  std::vector<Event> watched_;
  size_t acknowledged_count_ = 0;
  bool has_gaps_ = false;
};

// --- what runs on the store ---

rt::Task<Status> Work(Store* store, History* history, int commits) {
  for (int i = 0; i < commits; ++i) {
    size_t number = 0;
    Txn txn = history->NewTxn(number);
    CO_TRY(TxnResult result, co_await store->Commit(std::move(txn)));
    history->Acknowledge(number, result.revision);
  }
  co_return OkStatus();
}

rt::Task<Status> CompactKnown(Store* store, History* history) {
  const Revision revision = history->known_through();
  if (revision.value == 0) co_return OkStatus();
  co_return co_await store->Compact(revision);
}

rt::Task<Status> Collect(Watch* watch, History* history) {
  while (true) {
    CO_TRY(WatchBatch batch, co_await watch->Next());
    for (const Event& event : batch.events) history->Watched(event);
  }
}

rt::Task<Status> RunWorkers(Store* store, History* history, int commits, bool compacts) {
  rt::Context& context = co_await rt::CurrentContext{};
  WatchRequest request{.start = "", .end = std::string(kNoEnd), .from = {}};
  CO_TRY(std::unique_ptr<Watch> watch, co_await store->StartWatch(std::move(request)));
  rt::TaskScope watching(context.loop());
  watching.Spawn("collect", Collect(watch.get(), history));
  std::vector<rt::Task<Status>> workers;
  for (int i = 0; i < kWorkers; ++i) workers.push_back(Work(store, history, commits));
  if (compacts) workers.push_back(CompactKnown(store, history));
  const auto ended = co_await rt::JoinAll(std::move(workers));
  CO_TRY_STATUS(co_await watching.Close());
  co_return OkStatus();
}

State ToState(const RangeResult& range) {
  State state;
  for (const KeyValue& kv : range.items) state[kv.key] = kv.value.view();
  return state;
}

rt::Task<Status> CheckStore(Store* store, History* history) {
  CO_TRY(const Revision compacted, co_await store->CompactedRevision());
  CO_TRY(const Revision revision, co_await store->CurrentRevision());
  RangeRequest all;
  all.end = kNoEnd;
  CO_TRY(RangeResult now, co_await store->Range(all));
  all.revision = std::max(compacted, Revision{1});
  CO_TRY(RangeResult base, co_await store->Range(all));
  WatchRequest request{
      .start = "", .end = std::string(kNoEnd), .from = std::max(compacted.Next(), Revision{2})};
  CO_TRY(std::unique_ptr<Watch> watch, co_await store->StartWatch(std::move(request)));
  Changes changes;
  for (Revision seen = all.revision; seen < revision;) {
    CO_TRY(WatchBatch batch, co_await watch->Next());
    for (Event& event : batch.events) changes.push_back(std::move(event));
    seen = batch.revision;
  }
  history->Check(compacted, ToState(base), changes, ToState(now));
  co_return OkStatus();
}

template <class LoopType>
struct World {
  explicit World(uint64_t seed, RocksOptions::Threads with_threads)
      : disk(seed), history(seed), random(seed), threads(with_threads) {}

  // Runs workers until the power fails, then checks what is left.
  void Round(LoopType& loop, int commits) {
    disk.CutPowerAfter(random.Below(150) + (random.Chance(0.2) ? 0 : 40));
    RunUntilPowerFails(loop, commits);
    CheckAfterPowerCut(loop);
  }

  // Runs workers on a disk that is full twice, then until the power fails, then checks.
  void RoundWithFullDisk(LoopType& loop, int commits) {
    RunWithFullDisk(loop, commits);
    disk.SetRoom(std::nullopt);
    CheckAfterPowerCut(loop);
  }

  void CheckAfterPowerCut(LoopType& loop) {
    disk.RestorePower();
    auto store = RocksStore::Open(loop, Options());
    ASSERT_TRUE(store.ok()) << store.status();
    const auto handle = (*store)->NewHandle();
    const Status checked = rt::RunTask(loop, CheckStore(handle.get(), &history));
    ASSERT_TRUE(checked.ok()) << checked;
    ASSERT_TRUE(rt::RunTask(loop, (*store)->Close()).ok());
  }

  void RunUntilPowerFails(LoopType& loop, int commits) {
    auto store = RocksStore::Open(loop, Options());
    if (!store.ok()) return;  // it failed already while the store was opened
    const auto handle = (*store)->NewHandle();
    const Status ran =
        rt::RunTask(loop, RunWorkers(handle.get(), &history, commits, random.Chance(0.3)));
    EXPECT_TRUE(ran.ok()) << ran;
    disk.CutPowerAfter(0);
  }

  void RunWithFullDisk(LoopType& loop, int commits) {
    auto store = RocksStore::Open(loop, Options());
    ASSERT_TRUE(store.ok()) << store.status();
    const auto handle = (*store)->NewHandle();
    history.Recovered();
    for (int i = 0; i < 2; ++i) {
      disk.SetRoom(random.Below(100'000));
      const bool compacts = random.Chance(0.3);
      EXPECT_TRUE(rt::RunTask(loop, RunWorkers(handle.get(), &history, commits, compacts)).ok());
      disk.SetRoom(std::nullopt);
      if (i == 1) disk.CutPowerAfter(random.Below(80));
      const Status recovered = rt::RunTask(loop, (*store)->Recover());
      EXPECT_TRUE(recovered.ok() || !disk.has_power()) << recovered;
      if (recovered.ok()) recoveries += 1;
    }
    EXPECT_TRUE(rt::RunTask(loop, RunWorkers(handle.get(), &history, commits, false)).ok());
    disk.CutPowerAfter(0);
  }

  RocksOptions Options() {
    RocksOptions options;
    options.dir = "/store";
    options.env = disk.env();
    options.threads = threads;
    options.memtable_bytes = 64 * 1024;  // files are written and logs change often
    return options;
  }

  FaultyDisk disk;
  History history;
  Random random;
  RocksOptions::Threads threads;
  int recoveries = 0;
};

TEST(RocksCrash, LosesNothingAcknowledgedAtAnyPoint) {
  size_t acknowledged = 0;
  for (uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World<rt::SimLoop> world(seed, RocksOptions::Threads::kNone);
    for (uint64_t round = 0; round < 4 && !HasFailure(); ++round) {
      rt::SimLoop loop(seed * 10 + round);
      world.Round(loop, 20);
    }
    acknowledged += world.history.acknowledged_count();
  }
  EXPECT_GT(acknowledged, 5'000U) << "the power fails too early to test anything";
}

TEST(RocksCrash, LosesNothingAcknowledgedAfterAFullDisk) {
  size_t acknowledged = 0;
  int recoveries = 0;
  for (uint64_t seed = 1; seed <= 30 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World<rt::AsioLoop> world(seed, RocksOptions::Threads::kOwn);
    for (int round = 0; round < 2 && !HasFailure(); ++round) {
      rt::AsioLoop loop;
      world.RoundWithFullDisk(loop, 20);
    }
    acknowledged += world.history.acknowledged_count();
    recoveries += world.recoveries;
  }
  EXPECT_GT(acknowledged, 2'000U);
  EXPECT_GT(recoveries, 60);
}

TEST(RocksCrash, LosesNothingAcknowledgedWithItsOwnThreads) {
  for (uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World<rt::AsioLoop> world(seed, RocksOptions::Threads::kOwn);
    for (int round = 0; round < 3 && !HasFailure(); ++round) {
      rt::AsioLoop loop;
      world.Round(loop, 30);
    }
  }
}

}  // namespace
}  // namespace berth::store
