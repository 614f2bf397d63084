// SPDX-License-Identifier: Apache-2.0
// Defends the watch cache: it shows the store's state, its watches have neither gap nor duplicate
// whatever their start, slow readers are cut off, and losing the store's watch loses no change:
// whoever comes from the time that was missed is told the truth or Expired, never nothing.
#include "apiserver/cache/watch_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/k8s/event.h"
#include "apis/k8s/secret.h"
#include "apiserver/cache/keys.h"
#include "meta/at_rest.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/faults/faulty_store.h"
#include "store/memory/memory_store.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::k8s::kSecretKind;
using Type = RegistryEvent::Type;

meta::Object MakeMachine(const std::string& name, const std::string& tier = "") {
  Machine machine;
  machine.metadata.namespace_ = "default";
  machine.metadata.name = name;
  machine.metadata.uid = "uid-" + name;
  if (!tier.empty()) machine.metadata.labels["tier"] = tier;
  return meta::Object::Of(kMachineKind, std::move(machine));
}

class WatchCacheTest : public ::testing::Test {
 protected:
  ~WatchCacheTest() override { Stop(); }

  void Start(WatchCacheOptions options = {}) {
    auto started =
        rt::RunTask(loop_,
                    WatchCache::Start(loop_,
                                      *servers_store_,
                                      {&kMachineKind, &kSecretKind, &apis::k8s::kCoreEventKind},
                                      options));
    ASSERT_TRUE(started.ok()) << started.status();
    cache_ = *std::move(started);
  }
  void Stop() {
    if (cache_ != nullptr) EXPECT_TRUE(rt::RunTask(loop_, cache_->Close()).ok());
    cache_.reset();
  }
  store::Revision Commit(store::Op op) {
    store::Txn txn;
    txn.ops.push_back(std::move(op));
    auto result = rt::RunTask(loop_, store_->Commit(std::move(txn)));
    CHECK(result.ok()) << result.status();
    return result->revision;
  }
  store::Revision Put(const meta::Object& object) {
    const auto& metadata = object.metadata();
    return Commit(store::Op::Put(StoreKey(object.kind(), {metadata.namespace_, metadata.name}),
                                 meta::EncodeAtRest(object)));
  }
  // Somebody wrote it by hand, or a bit of it flipped.
  store::Revision PutAt(const std::string& suffix, const meta::Object& object) {
    return Commit(store::Op::Put(KeyPrefix(object.kind()) + suffix, meta::EncodeAtRest(object)));
  }
  store::Revision Remove(const std::string& name) {
    return Commit(store::Op::Delete(StoreKey(kMachineKind, {"default", name})));
  }
  // The server is cut off from the store, and others go on. Returns the first revision that it
  // misses.
  store::Revision Cut() {
    servers_store_->SetFaults({.refuse = 1, .end_watch = 1});
    const store::Revision last = Commit(store::Op::Put("last", Bytes("on its way")));
    CHECK(rt::RunTask(loop_, cache_->WaitFor(last)).ok());
    return last.Next();
  }
  // It reaches the store again, which has forgotten what was missed.
  void MendCompacted() {
    const store::Revision now = *rt::RunTask(loop_, store_->CurrentRevision());
    CHECK(rt::RunTask(loop_, store_->Compact(now)).ok());
    servers_store_->SetFaults({});
    CHECK(rt::RunTask(loop_, cache_->WaitFor(now)).ok());
  }
  // It reaches the store again, which has kept everything, but not its watch.
  void MendWithHistory() {
    const store::Revision now = *rt::RunTask(loop_, store_->CurrentRevision());
    servers_store_->SetFaults({.end_watch = 1});
    CHECK(rt::RunTask(loop_, cache_->WaitFor(now)).ok());
    servers_store_->SetFaults({});
  }
  void CatchUp() { ASSERT_TRUE(rt::RunTask(loop_, cache_->CatchUp()).ok()); }
  std::unique_ptr<RegistryWatch> Watch(WatchStart start) {
    auto watch = rt::RunTask(loop_, cache_->Watch(kMachineKind, std::move(start)));
    CHECK(watch.ok()) << watch.status();
    return *std::move(watch);
  }
  // "ADDED web-1@5" for each of the next events, until there are `count`.
  std::vector<std::string> Read(RegistryWatch& watch, size_t count) {
    std::vector<std::string> lines;
    while (lines.size() < count) {
      auto events = rt::RunTask(loop_, watch.Next());
      CHECK(events.ok()) << events.status();
      for (const RegistryEvent& event : *events) lines.push_back(Describe(event));
    }
    return lines;
  }
  static std::string Describe(const RegistryEvent& event) {
    const std::string at = "@" + std::to_string(event.object.revision.value);
    if (event.type == Type::kBookmark) return "BOOKMARK" + at;
    const auto view = meta::AtRestView::Parse(event.object.at_rest.view());
    const std::string name(view->uid().substr(4));
    switch (event.type) {
      case Type::kAdded: return "ADDED " + name + at;
      case Type::kModified: return "MODIFIED " + name + at;
      default: return "DELETED " + name + at;
    }
  }
  static std::string At(std::string_view text, store::Revision revision) {
    return std::string(text) + "@" + std::to_string(revision.value);
  }
  static WatchStart From(store::Revision revision) {
    return {.selection = {}, .resource_version = FormatResourceVersion(revision)};
  }

  rt::SimLoop loop_{7};
  std::unique_ptr<store::MemoryStore> memory_ = store::MemoryStore::Open(loop_);
  std::unique_ptr<store::Store> store_ = memory_->NewHandle();
  // The same as the server under test reaches it.
  std::unique_ptr<store::FaultyStore> servers_store_ =
      std::make_unique<store::FaultyStore>(*store_, 7, store::StoreFaults{});
  std::unique_ptr<WatchCache> cache_;
};

TEST_F(WatchCacheTest, ShowsWhatTheStoreHeldAtItsStartAndWhatCameLater) {
  Put(MakeMachine("a"));
  Start();
  EXPECT_NE(cache_->Of(kMachineKind).Find("default/a"), nullptr);
  const store::Revision revision = Put(MakeMachine("b"));
  CatchUp();
  ASSERT_NE(cache_->Of(kMachineKind).Find("default/b"), nullptr);
  EXPECT_EQ(cache_->Of(kMachineKind).Find("default/b")->revision, revision);
  Remove("a");
  CatchUp();
  EXPECT_EQ(cache_->Of(kMachineKind).Find("default/a"), nullptr);
}

TEST_F(WatchCacheTest, AWatchBeginsWithTheStateAndGoesOnWithChanges) {
  const auto a = Put(MakeMachine("a"));
  Start();
  auto watch = Watch({});
  EXPECT_EQ(Read(*watch, 1), std::vector{At("ADDED a", a)});
  const auto b = Put(MakeMachine("b"));
  const auto changed = Put(MakeMachine("a", "web"));
  const auto gone = Remove("b");
  EXPECT_EQ(Read(*watch, 3),
            (std::vector{At("ADDED b", b), At("MODIFIED a", changed), At("DELETED b", gone)}));
}

TEST_F(WatchCacheTest, AWatchFromARevisionDeliversWhatCameAfterIt) {
  Start();
  const auto a = Put(MakeMachine("a"));
  const auto b = Put(MakeMachine("b"));
  CatchUp();
  auto watch = Watch(From(a));
  EXPECT_EQ(Read(*watch, 1), std::vector{At("ADDED b", b)});
}

TEST_F(WatchCacheTest, AWatchOlderThanTheRingReadsHistoryAndJoinsTheRingWithoutGapOrDuplicate) {
  Start({.ring = {.events = 2}});
  const auto first = Put(MakeMachine("a"));
  std::vector<std::string> expected;
  for (int i = 0; i < 10; ++i) {
    const std::string name = "m" + std::to_string(i);
    expected.push_back(At("ADDED " + name, Put(MakeMachine(name))));
  }
  CatchUp();
  auto watch = Watch(From(first));
  std::vector<std::string> seen = Read(*watch, 10);
  for (int i = 10; i < 12; ++i) {
    const std::string name = "m" + std::to_string(i);
    expected.push_back(At("ADDED " + name, Put(MakeMachine(name))));
    for (std::string& line : Read(*watch, 1)) seen.push_back(std::move(line));
  }
  EXPECT_EQ(seen, expected);
}

TEST_F(WatchCacheTest, AWatchOlderThanCompactionExpires) {
  Start({.ring = {.events = 1}});
  const auto first = Put(MakeMachine("a"));
  Put(MakeMachine("b"));
  const auto last = Put(MakeMachine("c"));
  CatchUp();
  ASSERT_TRUE(rt::RunTask(loop_, store_->Compact(last)).ok());
  const auto watch = rt::RunTask(loop_, cache_->Watch(kMachineKind, From(first)));
  EXPECT_EQ(watch.status().reason(), Reason::kExpired);
  EXPECT_EQ(watch.status().message(),
            "too old resource version: " + FormatResourceVersion(first) + " (" +
                FormatResourceVersion(last) + ")");
}

TEST_F(WatchCacheTest, WhoeverWatchesIsToldEveryDeletionThatWasMissed) {
  for (const char* name : {"a", "b", "c"}) Put(MakeMachine(name));
  Start();
  auto watch = Watch({});
  EXPECT_EQ(Read(*watch, 3).size(), 3U);
  const auto lost = Cut();
  Remove("a");
  Remove("b");
  meta::Object another = MakeMachine("b");
  another.metadata().uid = "uid-another-b";
  const auto again = Put(another);
  const auto changed = Put(MakeMachine("c", "web"));
  Put(MakeMachine("brief"));
  Remove("brief");
  const auto d = Put(MakeMachine("d"));
  MendCompacted();
  EXPECT_EQ(Read(*watch, 5),
            (std::vector{At("DELETED a", lost),
                         At("DELETED b", lost),
                         At("ADDED another-b", again),
                         At("MODIFIED c", changed),
                         At("ADDED d", d)}));
  const auto gone = Remove("d");
  EXPECT_EQ(Read(*watch, 1), std::vector{At("DELETED d", gone)});
}

// Another server of the same store has shown it a revision that this one never saw.
TEST_F(WatchCacheTest, AWatchFromTheTimeThatWasMissedExpiresIfThatIsCompacted) {
  const auto a = Put(MakeMachine("a"));
  Start();
  const auto lost = Cut();
  const auto then = Put(MakeMachine("b"));
  Remove("a");
  Remove("b");
  const auto found = Put(MakeMachine("c"));
  MendCompacted();
  for (const store::Revision from : {then, then.Next(), store::Revision{found.value - 1}}) {
    const auto watch = rt::RunTask(loop_, cache_->Watch(kMachineKind, From(from)));
    EXPECT_EQ(watch.status().reason(), Reason::kExpired) << from.value;
    EXPECT_EQ(watch.status().message(),
              "too old resource version: " + FormatResourceVersion(from) + " (" +
                  FormatResourceVersion(found) + ")");
  }
  auto before = Watch(From(a));
  EXPECT_EQ(Read(*before, 2), (std::vector{At("DELETED a", lost), At("ADDED c", found)}));
  auto behind = Watch(From(found));
  const auto gone = Remove("c");
  EXPECT_EQ(Read(*behind, 1), std::vector{At("DELETED c", gone)});
}

TEST_F(WatchCacheTest, AWatchFromTheTimeThatWasMissedIsToldItsHistory) {
  Put(MakeMachine("a"));
  Start();
  Cut();
  const auto then = Put(MakeMachine("b"));
  const auto gone_a = Remove("a");
  const auto gone_b = Remove("b");
  MendWithHistory();
  auto watch = Watch(From(then));
  EXPECT_EQ(Read(*watch, 2), (std::vector{At("DELETED a", gone_a), At("DELETED b", gone_b)}));
  const auto c = Put(MakeMachine("c"));
  EXPECT_EQ(Read(*watch, 1), std::vector{At("ADDED c", c)});
}

TEST_F(WatchCacheTest, HistoryIsNotLeftBeforeTheEndOfWhatWasMissed) {
  Start();
  Cut();
  const auto then = Put(MakeMachine("a"));
  for (int i = 0; i < 600; ++i) Put(MakeMachine("m" + std::to_string(i)));  // more than a page
  const auto gone = Remove("a");
  MendWithHistory();
  auto watch = Watch(From(then));
  const auto lines = Read(*watch, 601);
  ASSERT_EQ(lines.size(), 601U);
  EXPECT_EQ(lines.back(), At("DELETED a", gone));
}

TEST_F(WatchCacheTest, AWatchThatHistoryBroughtAheadOfWhatWasMissedExpires) {
  Start({.ring = {.events = 1}});
  const auto a = Put(MakeMachine("a"));
  const auto b = Put(MakeMachine("b"));
  const auto c = Put(MakeMachine("c"));
  CatchUp();
  auto watch = Watch(From(a));
  Cut();
  const auto d = Put(MakeMachine("d"));
  servers_store_->SetFaults({.refuse = 1});  // its own watch of the store was not lost
  EXPECT_EQ(Read(*watch, 3), (std::vector{At("ADDED b", b), At("ADDED c", c), At("ADDED d", d)}));
  Remove("b");
  MendCompacted();
  EXPECT_EQ(rt::RunTask(loop_, watch->Next()).status().reason(), Reason::kExpired);
}

TEST_F(WatchCacheTest, EachTimeThatWasMissedIsRemembered) {
  Put(MakeMachine("a"));
  Start();
  std::vector<store::Revision> missed;
  std::vector<store::Revision> seen;
  for (int i = 0; i < 12; ++i) {
    Cut();
    missed.push_back(Put(MakeMachine("a", std::to_string(i))));
    Put(MakeMachine("b"));
    Remove("b");
    MendCompacted();
    seen.push_back(Put(MakeMachine("c")));
    CatchUp();
  }
  const auto begin = [this](store::Revision from) {
    return rt::RunTask(loop_, cache_->Watch(kMachineKind, From(from))).status().reason();
  };
  for (const store::Revision from : missed) EXPECT_EQ(begin(from), Reason::kExpired);
  EXPECT_EQ(begin(seen.front()), Reason::kExpired) << "so many are not told apart";
  EXPECT_EQ(begin(seen[seen.size() - 2]), Reason::kOk);
}

TEST_F(WatchCacheTest, AFutureRevisionIsWaitedForAndThenRefused) {
  Start();
  const auto watch =
      rt::RunTask(loop_, cache_->Watch(kMachineKind, From({1000})), Duration::Seconds(4));
  EXPECT_EQ(watch.status().reason(), Reason::kTimeout);
  EXPECT_EQ(watch.status().message(), "Too large resource version: 1000, current: 1");
}

TEST_F(WatchCacheTest, AReaderThatFallsBehindTheRingIsCutOff) {
  Start({.ring = {.events = 4}});
  auto watch = Watch({});
  for (int i = 0; i < 6; ++i) Put(MakeMachine("m" + std::to_string(i)));
  CatchUp();
  const auto events = rt::RunTask(loop_, watch->Next());
  EXPECT_EQ(events.status().reason(), Reason::kExpired);
  EXPECT_EQ(rt::RunTask(loop_, watch->Next()).status().reason(), Reason::kExpired);
}

TEST_F(WatchCacheTest, AnIdleReaderWhoseEventsAreRareIsNotCutOff) {
  Start({.ring = {.events = 4}});
  auto tier = meta::Selector::Parse("tier=web");
  auto watch = Watch({.selection = {.namespace_ = "", .labels = *tier, .fields = {}}});
  for (int i = 0; i < 20; ++i) Put(MakeMachine("m" + std::to_string(i)));
  const auto web = Put(MakeMachine("w", "web"));
  EXPECT_EQ(Read(*watch, 1), std::vector{At("ADDED w", web)});
}

TEST_F(WatchCacheTest, EnteringAndLeavingASelectionAreAddedAndDeleted) {
  Start();
  auto tier = meta::Selector::Parse("tier=web");
  auto watch = Watch({.selection = {.namespace_ = "default", .labels = *tier, .fields = {}}});
  Put(MakeMachine("a"));
  const auto in = Put(MakeMachine("a", "web"));
  const auto out = Put(MakeMachine("a", "db"));
  EXPECT_EQ(Read(*watch, 2), (std::vector{At("ADDED a", in), At("DELETED a", out)}));
}

TEST_F(WatchCacheTest, WatchersOfOnePoolSeeItsObjectsComeAndGo) {
  Start();
  const auto bound = [](const std::string& name, const std::string& pool) {
    meta::Object object = MakeMachine(name);
    if (!pool.empty()) object.as<Machine>().spec.machine_pool_ref.emplace().name = pool;
    return object;
  };
  const auto watch_pool = [this](const std::string& pool) {
    auto fields = meta::FieldSelector::Parse("spec.machinePoolRef.name=" + pool);
    return Watch({.selection = {.namespace_ = "", .labels = {}, .fields = *fields}});
  };
  auto p = watch_pool("p");
  auto q = watch_pool("q");
  auto unbound = watch_pool("");
  const auto made = Put(bound("a", ""));
  const auto to_p = Put(bound("a", "p"));
  const auto to_q = Put(bound("a", "q"));
  const auto gone = Remove("a");
  EXPECT_EQ(Read(*p, 2), (std::vector{At("ADDED a", to_p), At("DELETED a", to_q)}));
  EXPECT_EQ(Read(*q, 2), (std::vector{At("ADDED a", to_q), At("DELETED a", gone)}));
  EXPECT_EQ(Read(*unbound, 2), (std::vector{At("ADDED a", made), At("DELETED a", to_p)}));
}

TEST_F(WatchCacheTest, OtherNamespacesAndKindsAreNotSeen) {
  Start();
  auto watch = Watch({.selection = {.namespace_ = "default", .labels = {}, .fields = {}}});
  meta::Object elsewhere = MakeMachine("x");
  elsewhere.metadata().namespace_ = "default-2";
  Put(elsewhere);
  apis::k8s::Secret secret;
  secret.metadata.namespace_ = "default";
  secret.metadata.name = "s";
  secret.metadata.uid = "uid-s";
  Put(meta::Object::Of(kSecretKind, std::move(secret)));
  const auto a = Put(MakeMachine("a"));
  EXPECT_EQ(Read(*watch, 1), std::vector{At("ADDED a", a)});
}

TEST_F(WatchCacheTest, BookmarksComeOnceAMinuteWhileNothingHappens) {
  Start();
  const auto a = Put(MakeMachine("a"));
  CatchUp();
  WatchStart start = From(a);
  start.bookmarks = true;
  auto watch = Watch(std::move(start));
  const Time before = loop_.Now();
  EXPECT_EQ(Read(*watch, 1), std::vector{At("BOOKMARK", a)});
  const Duration waited = loop_.Now() - before;
  EXPECT_GE(waited, Duration::Minutes(1));
  EXPECT_LE(waited, Duration::Seconds(75));
}

TEST_F(WatchCacheTest, AWatchTellsTheStateAndWhenItEndsIfAskedFor) {
  Start();
  const auto a = Put(MakeMachine("a"));
  const auto b = Put(MakeMachine("b"));
  CatchUp();
  for (const std::string& version : {std::string(), std::string("0"), FormatResourceVersion(a)}) {
    auto watch = Watch({.selection = {},
                        .resource_version = version,
                        .bookmarks = true,
                        .initial = InitialState::kTold});
    EXPECT_EQ(Read(*watch, 3), (std::vector{At("ADDED a", a), At("ADDED b", b), At("BOOKMARK", b)}))
        << version;
  }
  auto empty = Watch({.selection = {.namespace_ = "nobody", .labels = {}, .fields = {}},
                      .bookmarks = true,
                      .initial = InitialState::kTold});
  const auto end = rt::RunTask(loop_, empty->Next());
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->front().ends_state);
  auto silent = Watch({.selection = {}, .initial = InitialState::kNotTold});
  auto plain = Watch({.selection = {}, .initial = InitialState::kTold});
  EXPECT_EQ(Read(*plain, 2), (std::vector{At("ADDED a", a), At("ADDED b", b)}));
  const auto c = Put(MakeMachine("c"));
  EXPECT_EQ(Read(*silent, 1), std::vector{At("ADDED c", c)});
  EXPECT_EQ(Read(*plain, 1), std::vector{At("ADDED c", c)});
}

TEST_F(WatchCacheTest, WatchersOfOneEventShareItsFrames) {
  Start();
  auto one = Watch({});
  auto two = Watch({});
  Put(MakeMachine("a"));
  const auto first = rt::RunTask(loop_, one->Next());
  const auto second = rt::RunTask(loop_, two->Next());
  ASSERT_TRUE(first.ok() && second.ok());
  first->front().frames->Keep(3, Bytes("frame"));
  ASSERT_NE(second->front().frames->Find(3), nullptr);
  EXPECT_EQ(second->front().frames->Find(3)->view(), "frame");
  EXPECT_EQ(second->front().frames->Find(4), nullptr);
}

TEST_F(WatchCacheTest, ABurstKeepsItsFramesUntilEverybodyHasReadIt) {
  Start({.ring = {.framed_events = 2, .framed_burst = 8}});
  auto one = Watch({});
  auto two = Watch({});
  for (int i = 0; i < 6; ++i) Put(MakeMachine("m" + std::to_string(i)));
  CatchUp();
  const auto first = rt::RunTask(loop_, one->Next());
  ASSERT_TRUE(first.ok());
  ASSERT_EQ(first->size(), 6U);
  for (const RegistryEvent& event : *first) event.frames->Keep(3, Bytes("frame"));
  const auto second = rt::RunTask(loop_, two->Next());
  ASSERT_TRUE(second.ok());
  for (const RegistryEvent& event : *second) EXPECT_NE(event.frames->Find(3), nullptr);
  // The next event finds nobody behind: only the newest keep theirs.
  Put(MakeMachine("next"));
  CatchUp();
  EXPECT_EQ(first->front().frames->Find(3), nullptr);
  EXPECT_NE(first->back().frames->Find(3), nullptr);
}

TEST_F(WatchCacheTest, ClosingEndsWaitingWatches) {
  Start();
  auto watch = Watch({});
  rt::TaskScope scope(loop_);
  std::optional<Result<std::vector<RegistryEvent>>> answer;
  scope.Spawn("next", rt::internal::StoreResult(watch->Next(), &answer));
  EXPECT_TRUE(rt::RunTask(loop_, cache_->Close()).ok());
  loop_.RunFor(Duration::Millis(1));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status().reason(), Reason::kUnavailable);
  watch.reset();
}

TEST_F(WatchCacheTest, FieldSelectorsOfAViewMeanTheStoredFields) {
  apis::k8s::CoreEvent event;
  event.metadata.namespace_ = "default";
  event.metadata.name = "e";
  event.metadata.uid = "uid-e";
  event.involved_object.name = "web";
  event.type = "Normal";
  const StoredObject stored{
      .at_rest = meta::EncodeAtRest(meta::Object::Of(apis::k8s::kCoreEventKind, event)),
      .revision = {1}};
  const auto matches = [&stored](const char* text) {
    const Matcher matcher(
        apis::k8s::kEventKind,
        {.namespace_ = "", .labels = {}, .fields = *meta::FieldSelector::Parse(text)});
    return matcher.Matches("default/e", stored);
  };
  EXPECT_TRUE(matches("regarding.name=web,type=Normal"));
  EXPECT_FALSE(matches("regarding.name=db"));
  EXPECT_FALSE(matches("type=Warning"));
  EXPECT_TRUE(matches("metadata.name=e,metadata.namespace=default"));
}

TEST_F(WatchCacheTest, WhatCannotBeReadIsSetAsideAndNobodyIsKeptFromTheRest) {
  const std::string key = StoreKey(kMachineKind, {"default", "b"});
  Put(MakeMachine("a"));
  Commit(store::Op::Put(key, Bytes("written by somebody else")));
  Start();
  const KindCache& machines = cache_->Of(kMachineKind);
  EXPECT_NE(machines.Find("default/a"), nullptr);
  EXPECT_EQ(machines.Find("default/b"), nullptr);
  EXPECT_NE(machines.FindAside("default/b"), nullptr);
  auto watch = Watch({});
  EXPECT_EQ(Read(*watch, 1).size(), 1U);
  // Whoever has never been shown it is not told that it is gone.
  Remove("b");
  const auto c = Put(MakeMachine("c"));
  EXPECT_EQ(Read(*watch, 1), std::vector{At("ADDED c", c)});
  EXPECT_TRUE(machines.aside().empty());
}

TEST_F(WatchCacheTest, WatchersKeepTheLastStateThatCouldBeRead) {
  const std::string key = StoreKey(kMachineKind, {"default", "a"});
  Put(MakeMachine("a"));
  Start();
  auto watch = Watch({});
  EXPECT_EQ(Read(*watch, 1).size(), 1U);
  Commit(store::Op::Put(key, Bytes("noise")));
  Commit(store::Op::Put(key, Bytes("more noise")));
  const auto b = Put(MakeMachine("b"));
  EXPECT_EQ(Read(*watch, 1), std::vector{At("ADDED b", b)});
  // Mended: a change of what they know.
  const auto mended = Put(MakeMachine("a", "web"));
  EXPECT_EQ(Read(*watch, 1), std::vector{At("MODIFIED a", mended)});
  Commit(store::Op::Put(key, Bytes("noise again")));
  const auto gone = Remove("a");
  EXPECT_EQ(Read(*watch, 1), std::vector{At("DELETED a", gone)});
}

TEST_F(WatchCacheTest, WhatIsNamedOtherwiseThanItsKeyIsSetAside) {
  meta::Object elsewhere = MakeMachine("b");
  elsewhere.metadata().namespace_ = "other";
  meta::Object nowhere = MakeMachine("b");
  nowhere.metadata().namespace_ = "";
  meta::Object nameless = MakeMachine("b");
  nameless.metadata().name = "";
  const std::pair<const char*, meta::Object> odd[] = {{"default/b", MakeMachine("a")},
                                                      {"default/b", MakeMachine("b/c")},
                                                      {"default/b/c", MakeMachine("b/c")},
                                                      {"default/b", elsewhere},
                                                      {"default/b", nameless},
                                                      {"b", nowhere},
                                                      {"b", MakeMachine("b")}};
  for (const auto& [suffix, object] : odd) {
    PutAt(suffix, object);
    Start();
    const KindCache& machines = cache_->Of(kMachineKind);
    EXPECT_EQ(machines.Find(suffix), nullptr) << suffix << " " << object.metadata().name;
    EXPECT_NE(machines.FindAside(suffix), nullptr) << suffix << " " << object.metadata().name;
    Commit(store::Op::Delete(KeyPrefix(kMachineKind) + suffix));
    CatchUp();
    EXPECT_TRUE(machines.aside().empty());
    // The same while it is followed.
    PutAt(suffix, object);
    CatchUp();
    EXPECT_EQ(machines.Find(suffix), nullptr) << suffix << " " << object.metadata().name;
    EXPECT_NE(machines.FindAside(suffix), nullptr) << suffix << " " << object.metadata().name;
    Commit(store::Op::Delete(KeyPrefix(kMachineKind) + suffix));
    Stop();
  }
}

TEST_F(WatchCacheTest, WatchersKeepTheStateInWhichItHadItsName) {
  Put(MakeMachine("a"));
  Start();
  auto watch = Watch({});
  EXPECT_EQ(Read(*watch, 1).size(), 1U);
  PutAt("default/a", MakeMachine("x"));
  const auto b = Put(MakeMachine("b"));
  EXPECT_EQ(Read(*watch, 1), std::vector{At("ADDED b", b)});
  const auto mended = Put(MakeMachine("a", "web"));
  EXPECT_EQ(Read(*watch, 1), std::vector{At("MODIFIED a", mended)});
}

TEST_F(WatchCacheTest, HistoryTellsNothingThatIsNamedOtherwiseThanItsKey) {
  Start({.ring = {.events = 1}});
  const auto first = Put(MakeMachine("a"));
  PutAt("default/b", MakeMachine("x"));
  const auto c = Put(MakeMachine("c"));
  const auto d = Put(MakeMachine("d"));
  CatchUp();
  auto watch = Watch(From(first));
  EXPECT_EQ(Read(*watch, 2), (std::vector{At("ADDED c", c), At("ADDED d", d)}));
}

TEST_F(WatchCacheTest, HowManyCannotBeReadIsCounted) {
  metrics::Registry metrics;
  WatchCacheOptions options;
  options.unreadable = &metrics.GetGauge("unreadable", "");
  Commit(store::Op::Put(StoreKey(kMachineKind, {"default", "a"}), Bytes("noise")));
  Start(options);
  EXPECT_EQ(options.unreadable->value(), 1);
  Commit(store::Op::Put(StoreKey(kSecretKind, {"default", "b"}), Bytes("noise")));
  CatchUp();
  EXPECT_EQ(options.unreadable->value(), 2);
  Put(MakeMachine("a"));
  CatchUp();
  EXPECT_EQ(options.unreadable->value(), 1);
  Stop();
}

}  // namespace
}  // namespace berth::apiserver
