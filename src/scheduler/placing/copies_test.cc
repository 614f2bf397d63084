// SPDX-License-Identifier: Apache-2.0
// Defends that a copy of an object, made in the store by hand with its UID, takes no room of its
// own and none along when it goes, and that it comes when the original is gone (ADR 0038).
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/registry/poison.h"
#include "client/passing_client.h"
#include "scheduler/placing/scheduler_world.h"

namespace berth::scheduler {
namespace {

// Answers Gets of some machines with an error, and ends watches when it is told to.
class OddClient final : public client::PassingClient {
 public:
  explicit OddClient(client::Client& inner) : PassingClient(inner) {}

  rt::Task<Result<meta::Object>> Get(const meta::KindInfo& kind, client::ObjectKey key) override {
    ++gets[key.name];
    if (const auto error = errors.find(key.name); error != errors.end()) co_return error->second;
    co_return co_await inner().Get(kind, std::move(key));
  }
  rt::Task<Result<client::ObjectList>> List(const meta::KindInfo& kind,
                                            client::ListOptions options) override {
    if (is_deaf) co_return Unavailable("try later");
    co_return co_await inner().List(kind, std::move(options));
  }
  rt::Task<Result<std::unique_ptr<client::ObjectWatch>>> Watch(
      const meta::KindInfo& kind, client::WatchOptions options) override {
    if (is_deaf) co_return Unavailable("try later");
    CO_TRY(std::unique_ptr<client::ObjectWatch> watch,
           co_await inner().Watch(kind, std::move(options)));
    std::unique_ptr<client::ObjectWatch> ended = std::make_unique<Ended>(*this, std::move(watch));
    co_return ended;
  }

  std::map<std::string, Status> errors;  // by name
  std::map<std::string, int> gets;       // by name
  bool is_deaf = false;                  // watches are over, and begin with a list afterwards

 private:
  class Ended final : public client::ObjectWatch {
   public:
    Ended(OddClient& client, std::unique_ptr<client::ObjectWatch> watch)
        : client_(client), watch_(std::move(watch)) {}
    rt::Task<Result<std::vector<client::WatchEvent>>> Next() override {
      auto events = co_await watch_->Next();
      if (client_.is_deaf) co_return Expired("too old");
      co_return events;
    }

   private:
    OddClient& client_;
    std::unique_ptr<client::ObjectWatch> watch_;
  };
};

class CopiesTest : public testing::Test {
 protected:
  CopiesTest() : client_(world_.api().client()) {
    world_.UseClient(client_);
    const std::string pool = world_.MakePool("alpha", 2);
    world_.StartScheduler();
    world_.Join(pool, 2);
  }
  ~CopiesTest() override { world_.StopScheduler(); }

  // A machine that has its place.
  meta::Object Place(const std::string& name) {
    world_.MakeMachine(name);
    EXPECT_TRUE(world_.IsPlaced(name)) << world_.WhyNot(name);
    return meta::Object::Of(apis::compute::kMachineKind, world_.GetMachine(name));
  }
  meta::Object PutCopy(const meta::Object& original, const std::string& name) {
    meta::Object copy = original;
    copy.metadata().name = name;
    Put(copy);
    return copy;
  }
  void Put(const meta::Object& object) {
    apiserver::PutByHand(world_.api(), object);
    world_.RunFor(Duration::Seconds(1));
  }
  void Remove(const meta::Object& object) {
    apiserver::RemoveByHand(world_.api(), object);
    world_.RunFor(Duration::Seconds(1));
  }
  bool HasRoom(const meta::Object& object) {
    return world_.scheduler().board().PoolOf(ObjectKey::FromUid(object.metadata().uid)).has_value();
  }
  int64_t FreeCpus() {
    const auto pool = world_.scheduler().board().FindPool(PoolKind::kMachine, "alpha");
    return world_.scheduler().board().RoomOf(*pool).free.at("cpu") / 1000;
  }

  SchedulerWorld world_{29};
  OddClient client_;
};

TEST_F(CopiesTest, ACopyTakesNoRoomAndNoneAlong) {
  const meta::Object machine = Place("m");
  const meta::Object copy = PutCopy(machine, "copy");
  EXPECT_EQ(FreeCpus(), 1);
  Remove(copy);
  EXPECT_TRUE(HasRoom(machine));
  EXPECT_EQ(FreeCpus(), 1);
  Remove(machine);
  EXPECT_FALSE(HasRoom(machine));
  EXPECT_EQ(FreeCpus(), 2);
}

TEST_F(CopiesTest, TheCopyComesWhenTheOriginalIsGone) {
  const meta::Object machine = Place("m");
  const meta::Object copy = PutCopy(machine, "copy");
  Remove(machine);
  EXPECT_TRUE(HasRoom(copy));
  EXPECT_EQ(FreeCpus(), 1);
  Remove(copy);
  EXPECT_EQ(FreeCpus(), 2);
}

TEST_F(CopiesTest, ACopyThatCannotBeReadAtOnceIsTriedAgain) {
  const meta::Object machine = Place("m");
  const meta::Object copy = PutCopy(machine, "copy");
  client_.errors["copy"] = Unavailable("try later");
  Remove(machine);
  world_.RunFor(Duration::Minutes(1));
  EXPECT_GT(client_.gets["copy"], 3);
  EXPECT_LT(client_.gets["copy"], 60);
  EXPECT_FALSE(HasRoom(copy));
  client_.errors.clear();
  EXPECT_TRUE(world_.Until([&] { return HasRoom(copy); }));
}

// Machines that wait for their class are read in the same way.
TEST_F(CopiesTest, AMachineThatCannotBeReadAtOnceGetsItsClassLater) {
  world_.Join(world_.MakePool("beta", 8, "a", {"new"}));
  for (const char* name : {"a", "b"}) {
    world_.MakeMachine(name, "new");
    ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot(name).empty(); }));
  }
  world_.RunFor(Duration::Seconds(10));
  client_.errors["a"] = Unavailable("try later");
  world_.MakeClass("new", "1", "1Gi");
  EXPECT_TRUE(world_.IsPlaced("b")) << "it waits for nobody";
  world_.RunFor(Duration::Seconds(10));
  EXPECT_EQ(world_.PoolOf("a"), "");
  client_.errors.clear();
  EXPECT_TRUE(world_.IsPlaced("a"));
}

TEST_F(CopiesTest, TheNextCopyComesWhenTheFirstIsGoneToo) {
  const meta::Object machine = Place("m");
  PutCopy(machine, "copy-1");
  const meta::Object next = PutCopy(machine, "copy-2");
  client_.errors["copy-1"] = NotFound("gone");  // what the watch will say in a moment
  Remove(machine);
  EXPECT_TRUE(HasRoom(machine));
  EXPECT_EQ(client_.gets["copy-2"], 1);
  Remove(next);
  EXPECT_EQ(FreeCpus(), 2);
}

TEST_F(CopiesTest, AnObjectThatGetsTheUidOfAnotherLeavesItsOwn) {
  const meta::Object machine = Place("m");
  const meta::Object other = Place("other");
  EXPECT_EQ(FreeCpus(), 0);
  meta::Object changed = other;
  changed.metadata().uid = machine.metadata().uid;
  Put(changed);
  EXPECT_FALSE(HasRoom(other));
  EXPECT_EQ(FreeCpus(), 1);
  // Its own again.
  Put(other);
  EXPECT_TRUE(HasRoom(other));
  EXPECT_EQ(FreeCpus(), 0);
}

TEST_F(CopiesTest, AMachineThatWaitsAndGetsTheUidOfAnotherIsTriedNoMore) {
  const meta::Object machine = Place("m");
  world_.MakeMachine("waits", "large");
  ASSERT_TRUE(world_.Until([&] { return !world_.WhyNot("waits").empty(); }));
  EXPECT_EQ(world_.scheduler().placer().queue().size(), 1U);
  auto waits = world_.GetMachine("waits");
  waits.metadata.uid = machine.metadata().uid;
  Put(meta::Object::Of(apis::compute::kMachineKind, std::move(waits)));
  EXPECT_EQ(world_.scheduler().placer().queue().size(), 0U);
}

TEST_F(CopiesTest, AnObjectThatGetsANewUidTakesItsRoomAlong) {
  const meta::Object machine = Place("m");
  const meta::Object copy = PutCopy(machine, "copy");
  meta::Object changed = machine;
  changed.metadata().uid = "00000000-0000-4000-8000-000000000001";
  Put(changed);
  EXPECT_TRUE(HasRoom(changed));
  EXPECT_TRUE(HasRoom(copy)) << "the UID is its own now";
  EXPECT_EQ(FreeCpus(), 0);
}

// What happened while nobody watched shows in the next list.
class CopiesListedAnewTest : public CopiesTest {
 protected:
  // A while without a watch, in which `happens`.
  template <class Happens>
  void Away(Happens happens) {
    client_.is_deaf = true;
    world_.MakeMachine("ends-the-watch", "large");
    world_.RunFor(Duration::Seconds(1));
    happens();
    client_.is_deaf = false;
    world_.RunFor(Duration::Seconds(10));
  }
};

TEST_F(CopiesListedAnewTest, ACopyThatWentMeanwhileIsForgotten) {
  const meta::Object machine = Place("m");
  const meta::Object copy = PutCopy(machine, "copy");
  Away([&] { Remove(copy); });
  EXPECT_TRUE(HasRoom(machine));
  Remove(machine);
  EXPECT_EQ(FreeCpus(), 2);
  EXPECT_EQ(client_.gets["copy"], 0);
}

TEST_F(CopiesListedAnewTest, TheCopyComesWhenTheOriginalWentMeanwhile) {
  const meta::Object machine = Place("m");
  const meta::Object copy = PutCopy(machine, "copy");
  Away([&] { Remove(machine); });
  EXPECT_TRUE(HasRoom(copy));
  EXPECT_EQ(FreeCpus(), 1);
}

// The copy is listed before the object whose UID it has.
TEST_F(CopiesListedAnewTest, TheCopyStaysWhenTheOriginalHasGotANewUid) {
  const meta::Object machine = Place("m");
  const meta::Object copy = PutCopy(machine, "a-copy");
  Away([&] {
    meta::Object changed = machine;
    changed.metadata().uid = "00000000-0000-4000-8000-000000000001";
    Put(changed);
  });
  EXPECT_TRUE(HasRoom(copy));
  EXPECT_EQ(FreeCpus(), 0);
}

}  // namespace
}  // namespace berth::scheduler
