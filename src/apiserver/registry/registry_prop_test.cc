// SPDX-License-Identifier: Apache-2.0
// Defends, for many seeds of random writers, watchers, restarts and store failures: a watch shows
// every change once and in order, list-then-watch equals the store, no acknowledged write is lost
// or undone, and no update overwrites another.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apis/k8s/config_map.h"
#include "apiserver/cache/keys.h"
#include "apiserver/registry/registry_world.h"
#include "base/log.h"
#include "base/strings.h"
#include "meta/at_rest.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::apiserver {
namespace {

using apis::k8s::ConfigMap;
using apis::k8s::kConfigMapKind;
using Type = client::WatchEvent::Type;

constexpr uint64_t kNames = 12;

int64_t Number(const std::string& text) { return ParseInt(text).value_or(-1); }

// What was acknowledged to the writers.
struct Ledger {
  std::map<std::string, int64_t> created;  // UID -> revision
  std::map<std::string, int> increments;   // UID -> acknowledged
  std::map<std::string, int> maybe;        // UID -> of unknown outcome
  int64_t last_acknowledged = 0;
};

enum class Checks { kStrict, kLevel };

// A client that follows all maps, with interruptions.
struct Follower {
  std::map<std::string, std::pair<std::string, int64_t>> state;  // name -> UID, revision
  std::string position;                                          // "": list first
  int64_t seen = 0;
  uint64_t events = 0;
  uint64_t lists = 0;
};

class Scenario {
 public:
  Scenario(uint64_t seed, Checks checks, WatchCacheOptions options)
      : checks_(checks), random_(seed * 77 + 1), world_(seed, options), followers_(3) {
    world_.MakeNamespace("default");
  }

  void Phase(int writers) {
    rt::TaskScope scope(world_.loop());
    for (int i = 0; i < writers; ++i) scope.Spawn("writer", Write());
    for (Follower& follower : followers_) scope.Spawn("follower", Follow(follower));
    world_.loop().RunFor(Duration::Millis(random_.Between(50, 400)));
    CHECK(rt::RunTask(world_.loop(), scope.Close()).ok());
  }
  void Restart() { world_.Restart(); }
  void SetFaults(store::StoreFaults faults) { world_.SetFaults(faults); }

  // Without faults and writers everything comes to agree.
  void CheckAtRest() {
    world_.SetFaults({});
    rt::TaskScope scope(world_.loop());
    for (Follower& follower : followers_) scope.Spawn("follower", Follow(follower));
    world_.loop().RunFor(Duration::Seconds(10));
    CHECK(rt::RunTask(world_.loop(), scope.Close()).ok());
    std::map<std::string, std::pair<std::string, int64_t>> present;
    std::map<std::string, int> counters;
    auto list = world_.Run(world_.client().List(kConfigMapKind, {}));
    ASSERT_TRUE(list.ok()) << list.status();
    for (const meta::Object& object : list->items) {
      const meta::ObjectMeta& metadata = object.metadata();
      present[metadata.name] = {metadata.uid, Number(metadata.resource_version)};
      const auto& data = object.as<ConfigMap>().data;
      if (data.contains("count")) counters[metadata.uid] = std::stoi(data.at("count"));
    }
    for (const Follower& follower : followers_) {
      EXPECT_EQ(follower.state, present);
    }
    for (const auto& [uid, count] : counters) {
      EXPECT_GE(count, ledger_.increments[uid]) << "an acknowledged update was lost";
      EXPECT_LE(count, ledger_.increments[uid] + ledger_.maybe[uid]) << "an update ran twice";
    }
    CheckHistory();
  }
  uint64_t events() const { return followers_[0].events; }
  uint64_t acknowledged() const { return ledger_.created.size(); }

 private:
  std::string Name() { return "m" + std::to_string(random_.Below(kNames)); }

  rt::Task<Status> Write() {
    for (;;) {
      const Duration pause = Duration::Micros(random_.Between(1, 3000));
      CO_TRY_STATUS(co_await rt::Sleep(pause));
      const uint64_t choice = random_.Below(4);
      Status status;
      if (choice == 0) {
        status = co_await Create(Name());
      } else if (choice == 1) {
        status = co_await Delete(Name());
      } else {
        status = co_await Increment(Name());
      }
      // Refusals are part of the game.
      if (status.Is(Reason::kCancelled)) co_return status;
    }
  }
  rt::Task<Status> Create(std::string name) {
    ConfigMap map;
    map.metadata.namespace_ = "default";
    map.metadata.name = name;
    if (random_.Chance(0.2)) map.metadata.finalizers = {"example.com/hold"};
    meta::Object object = meta::Object::Of(kConfigMapKind, std::move(map));
    const auto made = co_await world_.client().Create(std::move(object), {});
    if (made.ok()) {
      ledger_.created[made->metadata().uid] = Number(made->metadata().resource_version);
      Acknowledge(*made);
    }
    co_return made.status();
  }
  rt::Task<Status> Increment(std::string name) {
    std::string uid;
    Mutation mutation = [&uid](const meta::Object& current) -> Result<meta::Object> {
      uid = current.metadata().uid;
      meta::Object next = current;
      std::string& count = next.as<ConfigMap>().data["count"];
      count = std::to_string(count.empty() ? 1 : std::stoi(count) + 1);
      if (next.metadata().deletion_timestamp) next.metadata().finalizers.clear();
      return next;
    };
    const ObjectKey key{.namespace_ = "default", .name = std::move(name)};
    const auto written =
        co_await world_.registry().Mutate(kConfigMapKind, key, std::move(mutation), {});
    if (written.ok()) {
      ++ledger_.increments[uid];
      ledger_.last_acknowledged =
          std::max(ledger_.last_acknowledged, written->object.revision.value);
    } else if (!written.status().Is(Reason::kNotFound)) {
      ++ledger_.maybe[uid];
    }
    co_return written.status();
  }
  rt::Task<Status> Delete(std::string name) {
    const ObjectKey key{.namespace_ = "default", .name = std::move(name)};
    co_return co_await world_.client().Delete(kConfigMapKind, key, {});
  }
  void Acknowledge(const meta::Object& object) {
    ledger_.last_acknowledged =
        std::max(ledger_.last_acknowledged, Number(object.metadata().resource_version));
  }

  // Lists, watches, breaks off at random, goes on.
  rt::Task<Status> Follow(Follower& follower) {
    for (;;) {
      Status status;
      if (follower.position.empty()) status = co_await List(follower);
      if (status.ok()) status = co_await Watch(follower);
      if (status.Is(Reason::kCancelled)) co_return status;
      if (status.Is(Reason::kExpired)) follower.position.clear();
      const Duration pause = Duration::Micros(random_.Between(1, 5000));
      CO_TRY_STATUS(co_await rt::Sleep(pause));
    }
  }
  rt::Task<Status> List(Follower& follower) {
    CO_TRY(const client::ObjectList list, co_await world_.client().List(kConfigMapKind, {}));
    ++follower.lists;
    follower.state.clear();
    for (const meta::Object& object : list.items) {
      follower.state[object.metadata().name] = {object.metadata().uid,
                                                Number(object.metadata().resource_version)};
    }
    EXPECT_GE(Number(list.resource_version), follower.seen) << "a list went back in time";
    follower.position = list.resource_version;
    follower.seen = Number(list.resource_version);
    co_return OkStatus();
  }
  rt::Task<Status> Watch(Follower& follower) {
    client::WatchOptions options;
    options.resource_version = follower.position;
    CO_TRY(const std::unique_ptr<client::ObjectWatch> watch,
           co_await world_.client().Watch(kConfigMapKind, options));
    const auto reads = random_.Between(1, 20);
    for (int64_t i = 0; i < reads; ++i) {
      CO_TRY(const std::vector<client::WatchEvent> events, co_await watch->Next());
      for (const client::WatchEvent& event : events) Apply(follower, event);
      if (random_.Chance(0.1)) {
        const Duration pause = Duration::Millis(random_.Between(1, 30));
        CO_TRY_STATUS(co_await rt::Sleep(pause));
      }
    }
    co_return OkStatus();
  }
  void Apply(Follower& follower, const client::WatchEvent& event) {
    const int64_t revision = Number(event.resource_version);
    EXPECT_GE(revision, follower.seen) << "an event went back in time";
    if (checks_ == Checks::kStrict && event.type != Type::kBookmark) {
      EXPECT_GT(revision, follower.seen) << "an event came twice";
    }
    follower.seen = revision;
    follower.position = event.resource_version;
    if (event.type == Type::kBookmark) return;
    ++follower.events;
    const meta::ObjectMeta& metadata = event.object.metadata();
    const auto known = follower.state.find(metadata.name);
    if (checks_ == Checks::kStrict) {
      EXPECT_EQ(known == follower.state.end(), event.type == Type::kAdded) << metadata.name;
      if (known != follower.state.end()) EXPECT_EQ(known->second.first, metadata.uid);
    }
    if (event.type == Type::kDeleted) {
      if (known != follower.state.end()) follower.state.erase(known);
    } else {
      follower.state[metadata.name] = {metadata.uid, revision};
    }
  }

  // Every acknowledged creation is in the store's history, at its revision.
  void CheckHistory() {
    const std::string prefix = KeyPrefix(kConfigMapKind);
    store::WatchRequest request{.start = prefix, .end = store::PrefixEnd(prefix), .from = {1}};
    auto watch = world_.Run(world_.store().StartWatch(std::move(request)));
    ASSERT_TRUE(watch.ok()) << watch.status();
    std::map<std::string, int64_t> born;
    const auto now = world_.Run(world_.store().CurrentRevision());
    for (store::Revision at; at < *now;) {
      auto batch = world_.Run((*watch)->Next());
      ASSERT_TRUE(batch.ok()) << batch.status();
      at = batch->revision;
      for (const store::Event& event : batch->events) {
        if (event.type != store::Event::Type::kPut || event.previous) continue;
        const auto view = meta::AtRestView::Parse(event.kv.value.view());
        ASSERT_TRUE(view.ok());
        born[std::string(view->uid())] = event.kv.mod_revision.value;
      }
    }
    for (const auto& [uid, revision] : ledger_.created) EXPECT_EQ(born[uid], revision) << uid;
    EXPECT_LE(ledger_.last_acknowledged, now->value);
  }

  const Checks checks_;
  Random random_;
  RegistryWorld world_;
  Ledger ledger_;
  std::vector<Follower> followers_;
};

// A small ring makes watches fall behind and read history.
constexpr WatchCacheOptions kSmallRing = {
    .ring = {.events = 16, .bytes = 4096, .framed_events = 4, .framed_burst = 8}};

TEST(RegistryProperties, WatchesHaveNeitherGapNorDuplicate) {
  uint64_t events = 0;
  for (uint64_t seed = 1; seed <= 20 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Scenario scenario(seed, Checks::kStrict, kSmallRing);
    for (int phase = 0; phase < 4; ++phase) {
      scenario.Phase(4);
      scenario.Restart();
    }
    scenario.CheckAtRest();
    events += scenario.events();
  }
  EXPECT_GT(events, 300U) << "the test has tested nothing";
}

TEST(RegistryProperties, StoreFailuresLoseNothingThatWasAcknowledged) {
  log::Configure({.level = log::Level::kError, .format = log::Format::kText});
  uint64_t acknowledged = 0;
  for (uint64_t seed = 1; seed <= 20 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Scenario scenario(seed, Checks::kLevel, kSmallRing);
    scenario.SetFaults({.refuse = 0.05,
                        .lose_answer = 0.05,
                        .delay = 0.2,
                        .delay_max = Duration::Millis(20),
                        .end_watch = 0.05});
    for (int phase = 0; phase < 4; ++phase) scenario.Phase(4);
    scenario.CheckAtRest();
    acknowledged += scenario.acknowledged();
  }
  EXPECT_GT(acknowledged, 100U) << "the test has tested nothing";
}

}  // namespace
}  // namespace berth::apiserver
