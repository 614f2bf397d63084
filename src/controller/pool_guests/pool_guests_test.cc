// SPDX-License-Identifier: Apache-2.0
// Defends that what is on a pool is followed while there is a reason and no longer, anew for every
// other reason, and that a pool is not known before all that is on it is.
#include "controller/pool_guests/pool_guests.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apiserver/registry/placement_world.h"
#include "rt/sleep.h"

namespace berth::controller {
namespace {

using apis::compute::MachinePool;
using apiserver::PlacementWorld;

// The names of the machines of one pool.
class Names final : public GuestFollower, private client::Sink {
 public:
  explicit Names(Deps deps) : GuestFollower(std::move(deps)) {
    Follow(apis::compute::kMachineKind, *this);
  }
  const std::set<std::string>& all() const { return names_; }

  bool is_marked = false;

 private:
  void OnListBegin() override { names_.clear(); }
  void OnListed(meta::Object object) override { names_.insert(object.metadata().name); }
  void OnListEnd() override { Wake(); }
  void OnEvent(client::WatchEvent event) override {
    if (event.type == client::WatchEvent::Type::kDeleted) {
      names_.erase(event.object.metadata().name);
    } else {
      names_.insert(event.object.metadata().name);
    }
    Wake();
  }

  std::set<std::string> names_;
};

std::string ReasonOf(const meta::Object& pool) {
  const auto& labels = pool.metadata().labels;
  const auto found = labels.find("reason");
  return found == labels.end() ? std::string() : found->second;
}

class PoolGuestsTest : public testing::Test, public Reconciler {
 protected:
  PoolGuestsTest() : alpha_(world_.MakePool("alpha", 100)), beta_(world_.MakePool("beta", 100)) {
    scope_.Spawn("guests", guests_.Run(Beside()));
    Pass();
  }
  ~PoolGuestsTest() override { EXPECT_TRUE(world_.Run(scope_.Close()).ok()); }

  void Place(const std::string& name, const std::string& pool, const std::string& uid) {
    const auto bound = world_.Bind(world_.MakeMachine(name), pool, uid);
    ASSERT_TRUE(bound.ok()) << bound.status();
    Pass();
  }
  meta::Object Pool(const std::string& name) {
    return PlacementWorld::Must(
        world_.Run(world_.client().Get(apis::compute::kMachinePoolKind, {"", name})));
  }
  // `reason` is JSON: a string or null.
  void Give(const std::string& reason) {
    ASSERT_TRUE(
        world_.Patch(Pool("alpha"), R"({"metadata":{"labels":{"reason":)" + reason + "}}}").ok());
  }
  void Pass() { world_.loop().RunFor(Duration::Seconds(2)); }
  size_t Unsynced() const {
    client::HealthReport report;
    guests_.Report(report);
    return report.all().at("names").unsynced;
  }
  rt::Task<Status> Beside() {
    is_beside_ = true;
    const Status slept = co_await rt::Sleep(Duration::Hours(1));
    is_beside_ = false;
    co_return slept;
  }

  PlacementWorld world_{5};
  const std::string alpha_;
  const std::string beta_;
  PoolGuests<Names> guests_{world_.loop(), world_.client(), "names", *this, ReasonOf};
  rt::TaskScope scope_{world_.loop()};
  std::vector<std::string> looked_;  // at these pools, since it was last cleared
  bool is_beside_ = false;

 private:
  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string pool) override {
    looked_.push_back(pool);
    co_return std::optional<Duration>();
  }
};

TEST_F(PoolGuestsTest, FollowsOnlyWhatIsOnAPoolWithAReason) {
  Place("one", "alpha", alpha_);
  Place("two", "beta", beta_);
  EXPECT_TRUE(is_beside_);
  EXPECT_EQ(guests_.size(), 0U);
  EXPECT_EQ(guests_.Find("alpha"), nullptr);
  EXPECT_EQ(guests_.FindSynced("alpha"), nullptr);
  EXPECT_EQ(looked_.size(), 0U);
  Give(R"("fire")");
  Pass();
  EXPECT_EQ(guests_.size(), 1U);
  ASSERT_NE(guests_.Find("alpha"), nullptr);
  EXPECT_EQ(guests_.Find("alpha")->all(), std::set<std::string>{"one"});
  EXPECT_EQ(guests_.Find("beta"), nullptr);
}

TEST_F(PoolGuestsTest, LooksAtAPoolWhenItOrItsGuestsChange) {
  Give(R"("fire")");
  Pass();
  EXPECT_TRUE(guests_.idle());
  looked_.clear();
  Place("one", "alpha", alpha_);
  EXPECT_FALSE(looked_.empty()) << "a guest came";
  looked_.clear();
  world_.Cordon("alpha");
  Pass();
  EXPECT_FALSE(looked_.empty()) << "the pool changed";
  looked_.clear();
  Place("two", "beta", beta_);
  world_.Cordon("beta");
  Pass();
  EXPECT_TRUE(looked_.empty()) << "no reason";
}

TEST_F(PoolGuestsTest, APoolIsShownWithoutItsReports) {
  Give(R"("fire")");
  Pass();
  const meta::Object* pool = guests_.FindSynced("alpha");
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->metadata().uid, alpha_);
  const auto& status = pool->as<MachinePool>().status;
  ASSERT_TRUE(status.agent.has_value());
  EXPECT_EQ(status.agent->mode, apis::core::kPoolModeSession);
  EXPECT_TRUE(status.capacity.empty());
  EXPECT_EQ(Unsynced(), 0U);
}

TEST_F(PoolGuestsTest, APoolIsNotKnownBeforeItsListIsComplete) {
  Place("one", "alpha", alpha_);
  // The list of its guests takes a while, too.
  world_.SetFaults({.delay = 1, .delay_max = Duration::Seconds(10)});
  Give(R"("fire")");
  EXPECT_TRUE(world_.loop().RunUntil([&] { return guests_.size() == 1; }, Duration::Seconds(10)));
  EXPECT_EQ(guests_.FindSynced("alpha"), nullptr);
  EXPECT_EQ(Unsynced(), 1U);
  world_.SetFaults({});
  world_.loop().RunFor(Duration::Seconds(10));
  EXPECT_NE(guests_.FindSynced("alpha"), nullptr);
  EXPECT_EQ(Unsynced(), 0U);
  EXPECT_EQ(guests_.Find("alpha")->all(), std::set<std::string>{"one"});
}

TEST_F(PoolGuestsTest, ThoseOfAPoolWithoutAReasonAreForgotten) {
  Give(R"("fire")");
  Pass();
  EXPECT_EQ(guests_.size(), 1U);
  Give("null");
  Pass();
  EXPECT_EQ(guests_.size(), 0U);
  looked_.clear();
  Place("late", "alpha", alpha_);
  EXPECT_TRUE(looked_.empty());
  Give(R"("fire")");
  Pass();
  EXPECT_EQ(guests_.size(), 1U);
}

TEST_F(PoolGuestsTest, ThoseOfAPoolThatIsGoneAreForgotten) {
  Give(R"("fire")");
  Pass();
  EXPECT_EQ(guests_.size(), 1U);
  ASSERT_TRUE(world_.Delete(Pool("alpha")).ok());
  Pass();
  EXPECT_EQ(guests_.size(), 0U);
}

TEST_F(PoolGuestsTest, AnotherReasonBeginsAnewAndTheSameDoesNot) {
  Place("one", "alpha", alpha_);
  Give(R"("fire")");
  Pass();
  ASSERT_NE(guests_.Find("alpha"), nullptr);
  guests_.Find("alpha")->is_marked = true;
  world_.Cordon("alpha");
  Pass();
  EXPECT_TRUE(guests_.Find("alpha")->is_marked);
  Give(R"("flood")");
  Pass();
  ASSERT_NE(guests_.Find("alpha"), nullptr);
  EXPECT_FALSE(guests_.Find("alpha")->is_marked);
  EXPECT_EQ(guests_.Find("alpha")->all(), std::set<std::string>{"one"});
}

TEST_F(PoolGuestsTest, EndsWithWhatItFollowsAndWhatIsBesideIt) {
  Give(R"("fire")");
  Pass();
  EXPECT_EQ(guests_.size(), 1U);
  EXPECT_TRUE(is_beside_);
  EXPECT_TRUE(world_.Run(scope_.Close()).ok());
  EXPECT_EQ(guests_.size(), 0U);
  EXPECT_FALSE(is_beside_);
}

}  // namespace
}  // namespace berth::controller
