// SPDX-License-Identifier: Apache-2.0
// Defends what an informer keeps of an object, and what it shows of it.
#include "client/cache/informer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine_pool.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::client {
namespace {

using apis::compute::kMachinePoolKind;
using apis::compute::MachinePool;

meta::Object PoolAt(const std::string& revision, const std::string& state) {
  meta::Object object(kMachinePoolKind);
  object.metadata().name = "pool";
  object.metadata().uid = "uid";
  object.metadata().resource_version = revision;
  object.as<MachinePool>().status.state = state;
  object.as<MachinePool>().spec.provider_id = "provider";
  return object;
}

// One change, then the end.
class OneChange final : public ObjectWatch {
 public:
  rt::Task<Result<std::vector<WatchEvent>>> Next() override {
    if (std::exchange(is_over_, true)) co_return Cancelled();
    std::vector<WatchEvent> events(1);
    events[0] = {.type = WatchEvent::Type::kModified,
                 .object = PoolAt("2", "Ready"),
                 .resource_version = "2"};
    co_return events;
  }

 private:
  bool is_over_ = false;
};

// Has one pool, which changes once. Nobody writes.
class PoolClient final : public Client {
 public:
  rt::Task<Result<ObjectList>> List(const meta::KindInfo&, ListOptions) override {
    ObjectList list;
    list.items.push_back(PoolAt("1", "Pending"));
    list.resource_version = "1";
    co_return list;
  }
  rt::Task<Result<std::unique_ptr<ObjectWatch>>> Watch(const meta::KindInfo&,
                                                       WatchOptions) override {
    std::unique_ptr<ObjectWatch> watch = std::make_unique<OneChange>();
    co_return watch;
  }
  rt::Task<Result<meta::Object>> Get(const meta::KindInfo&, ObjectKey) override {
    co_return Cancelled();
  }
  rt::Task<Result<meta::Object>> Create(meta::Object, WriteOptions) override {
    co_return Cancelled();
  }
  rt::Task<std::vector<Result<meta::Object>>> CreateBatch(std::vector<meta::Object>,
                                                          WriteOptions) override {
    co_return std::vector<Result<meta::Object>>();
  }
  rt::Task<Result<meta::Object>> Update(meta::Object, WriteOptions) override {
    co_return Cancelled();
  }
  rt::Task<Result<meta::Object>> Patch(
      const meta::KindInfo&, ObjectKey, PatchType, std::string, WriteOptions) override {
    co_return Cancelled();
  }
  rt::Task<Status> Delete(const meta::KindInfo&, ObjectKey, DeleteOptions) override {
    co_return Cancelled();
  }
};

// "before > now" of every change, by state and provider, and what is kept in the end.
std::vector<std::string> Follow(Informer::Forget forget) {
  std::vector<std::string> seen;
  const auto text = [](const meta::Object* object) {
    if (object == nullptr) return std::string("none");
    const auto& pool = object->as<MachinePool>();
    return pool.status.state + '/' + pool.spec.provider_id;
  };
  rt::SimLoop loop(1);
  PoolClient client;
  Informer informer(
      loop,
      client,
      kMachinePoolKind,
      [&](const meta::Object* before, const meta::Object* now) {
        seen.push_back(text(before) + " > " + text(now));
      },
      std::move(forget));
  EXPECT_TRUE(rt::RunTask(loop, informer.Run()).Is(Reason::kCancelled));
  const meta::Object* kept = informer.Find({.namespace_ = "", .name = "pool"});
  EXPECT_NE(kept, nullptr);
  if (kept != nullptr) EXPECT_EQ(kept->metadata().resource_version, "2");
  seen.push_back(text(kept));
  return seen;
}

TEST(Informer, KeepsObjectsWholeIfNotToldOtherwise) {
  const std::vector<std::string> expected = {
      "none > Pending/provider", "Pending/provider > Ready/provider", "Ready/provider"};
  EXPECT_EQ(Follow(nullptr), expected);
}

TEST(Informer, ShowsAChangeWholeAndKeepsWhatItsOwnerNeeds) {
  const std::vector<std::string> expected = {
      "none > Pending/provider", "/provider > Ready/provider", "/provider"};
  EXPECT_EQ(Follow([](meta::Object& pool) { pool.ClearField("status"); }), expected);
}

}  // namespace
}  // namespace berth::client
